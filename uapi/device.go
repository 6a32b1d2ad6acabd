package uapi

import (
	"fmt"
	"math"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/uapi/internal/errs"
)

// DefaultDevice is the device that an empty name opens when RDMASHIM_DEVICE is
// not set.
const DefaultDevice = "soft"

// RoCEPort is the UDP port that RoCEv2 is assigned (IBA annex A17.9.2.2).
const RoCEPort = 4791

// maxDeviceName bounds the text that the parser looks at, in bytes; no sensible
// name is longer.
const maxDeviceName = 1024

// maxFaultDelay bounds delay=, so that a typing error does not look like a
// dead link.
const maxFaultDelay = 10 * time.Second

type deviceKind string

const (
	kindSoft deviceKind = "soft" // soft RNIC on UDP sockets
	kindSim  deviceKind = "sim"  // soft RNIC on an in-memory network
	kindHost deviceKind = "host" // the real kernel's device
)

// deviceRole is a soft device's part on an address that processes share. No
// device name sets it.
type deviceRole uint8

const (
	roleNone      deviceRole = iota
	roleBeside               // on another UDP port, it connects as if it had 4791
	roleSuccessor            // it has 4791 for the sake of those beside
)

// deviceSpec is a parsed device name. Two specs that compare equal ask for the
// same device with the same options.
type deviceSpec struct {
	kind deviceKind
	addr netip.Addr // zero: choose one
	host string     // kindHost: the kernel's name of the device
	net  string     // kindSim: name of the shared in-memory network, "" is a private one
	role deviceRole
	deviceOptions
}

// deviceOptions are the options after the question mark in a device name.
type deviceOptions struct {
	loss, reorder, dup, corrupt float64 // 0 … 1
	delay                       time.Duration
	seed                        uint64
	port                        int    // UDP port, 0 any, -1 not given
	mtu                         int    // bytes, 0 not given
	guid                        uint64 // the node's, 0 a random one
	unbound                     bool   // it does not take its UDP port
	noGSO, noGRO                bool
	noShm                       bool // devices of this host are reached by UDP as well
	noExtensions                bool // soft devices are spoken with as any other
	rawDoorbell                 bool
	name                        string      // the kernel's name of the device, "" is the next free
	pcap                        string      // file for a capture of the device's packets, "" none
	stats                       statsOption // whether other processes may read the device's counters
}

// defaultOptions are those of a name without options. RDMASHIM_SHM=off in the
// environment makes shm=off the default.
func defaultOptions() deviceOptions {
	return deviceOptions{port: -1, noShm: os.Getenv("RDMASHIM_SHM") == "off"}
}

// statsOption is the option stats=: whether other processes may read the
// device. The default is on for a soft device, off for a sim device.
type statsOption string

const (
	statsDefault statsOption = ""
	statsOn      statsOption = "on"
	statsOff     statsOption = "off"
)

// statsReadable reports whether other processes may read the device's counters.
func (s *deviceSpec) statsReadable() bool {
	return s.stats == statsOn || s.stats == statsDefault && s.kind == kindSoft
}

// deviceOption is one option of the parser's table.
type deviceOption struct {
	name, form string
	kinds      string // which kinds know it
	set        func(*deviceSpec, string) error
}

var deviceOptionTable = []deviceOption{
	{"loss", "1% or 0.01", "soft sim", func(s *deviceSpec, v string) error { return setFraction(&s.loss, v) }},
	{"reorder", "10%", "soft sim", func(s *deviceSpec, v string) error { return setFraction(&s.reorder, v) }},
	{"dup", "1%", "soft sim", func(s *deviceSpec, v string) error { return setFraction(&s.dup, v) }},
	{"corrupt", "0.1%", "soft sim", func(s *deviceSpec, v string) error { return setFraction(&s.corrupt, v) }},
	{"delay", "2ms", "soft sim", setDelay},
	{"seed", "7", "soft sim", setSeed},
	{"port", "4791, 0 takes any", "soft sim", setPort},
	{"mtu", "256, 512, 1024, 2048 or 4096", "soft sim", setMTU},
	{"extensions", "on or off", "soft sim", func(s *deviceSpec, v string) error { return setOff(&s.noExtensions, v) }},
	{"guid", "0200:0000:0000:0001", "soft sim", setGUID},
	{"bind", "on or off", "soft", func(s *deviceSpec, v string) error { return setOff(&s.unbound, v) }},
	{"shm", "on or off", "soft", func(s *deviceSpec, v string) error { return setOff(&s.noShm, v) }},
	{"gso", "off", "soft", func(s *deviceSpec, v string) error { return setOff(&s.noGSO, v) }},
	{"gro", "off", "soft", func(s *deviceSpec, v string) error { return setOff(&s.noGRO, v) }},
	{"pcap", "FILE", "soft sim", setPcap},
	{"name", "rxe0", "soft sim", setName},
	{"stats", "on or off", "soft sim", setStats},
	{"net", "NAME", "sim", setNet},
	{"doorbell", "syscall or raw", "host", setDoorbell},
}

// deviceForms ends an error about a device name: the forms of names that there
// are.
const deviceForms = `known forms are soft, soft:10.0.0.1, soft:[::1], sim, sim?net=NAME, rxe0 and host:rxe0`

// parseDevice reads a device name:
//
//	soft | soft:ADDR | sim | sim:ADDR | host:NAME | NAME   [?option=value&…]
//
// It accepts a bare % (1%), which net/url does not. Errors are EINVAL.
func parseDevice(name string) (deviceSpec, error) {
	spec := deviceSpec{deviceOptions: defaultOptions()}
	if len(name) > maxDeviceName {
		return spec, badDevice("%q…: the name is longer than %d bytes", name[:32], maxDeviceName)
	}
	base, options, hasOptions := strings.Cut(name, "?")
	kind, rest, hasRest := strings.Cut(base, ":")
	switch kind {
	case "soft", "sim":
		spec.kind = deviceKind(kind)
		if hasRest {
			addr, err := parseDeviceAddr(rest)
			if err != nil {
				return spec, badDevice("%q: %v", name, err)
			}
			spec.addr = addr
		}
	case "host":
		spec.kind, spec.host = kindHost, rest
	default:
		spec.kind, spec.host = kindHost, base
	}
	if spec.kind == kindHost && !isKernelName(spec.host) {
		if guess := meantDevice(name); guess != "" {
			return spec, badDevice("%q is not a device name; did you mean %q?", name, guess)
		}
		return spec, badDevice("%q is not a device name: %s", name, deviceForms)
	}
	if !hasOptions {
		return spec, nil
	}
	if err := spec.parseOptions(options); err != nil {
		if guess := meantDevice(name); guess != "" && spec.kind == kindHost {
			return spec, badDevice("%q: %v; did you mean %q?", name, err, guess)
		}
		return spec, badDevice("%q: %v", name, err)
	}
	return spec, nil
}

// meantDevice guesses the device meant by a name that no device has: a kind in
// capitals, a soft device's kernel name, an address without its kind. It
// returns "" for other names.
func meantDevice(name string) string {
	base, options, hasOptions := strings.Cut(name, "?")
	kind, rest, hasRest := strings.Cut(base, ":")
	guess := ""
	if at, err := netip.ParseAddrPort(base); err == nil {
		guess = (&backend{spec: deviceSpec{kind: kindSoft}, addr: at}).device()
	} else if addr, err := parseDeviceAddr(base); err == nil {
		guess = (&backend{spec: deviceSpec{kind: kindSoft}, addr: netip.AddrPortFrom(addr, RoCEPort)}).device()
	} else if lower := strings.ToLower(kind); lower != kind && (lower == "soft" || lower == "sim" || lower == "host") {
		guess = lower
		if hasRest {
			guess += ":" + rest
		}
	} else if number := strings.TrimPrefix(strings.TrimPrefix(lower, "soft"), "sim"); number != lower && !hasRest {
		if _, err := strconv.ParseUint(number, 10, 16); err == nil {
			guess = strings.TrimSuffix(lower, number)
		}
	}
	if guess == "" || !hasOptions {
		return guess
	}
	if strings.Contains(guess, "?") {
		return guess + "&" + options
	}
	return guess + "?" + options
}

// parseOptions reads option=value pairs separated by &. A repeated option is
// an error: one of the two would be silently ignored.
func (s *deviceSpec) parseOptions(text string) error {
	seen := make(map[string]bool)
	for part := range strings.SplitSeq(text, "&") {
		if part == "" {
			continue
		}
		key, value, hasValue := strings.Cut(part, "=")
		option := findDeviceOption(s.kind, key)
		switch {
		case option == nil:
			return fmt.Errorf("unknown option %q; %s", key, knownOptions(s.kind))
		case !hasValue:
			return fmt.Errorf("option %q has no value; write %s=%s", key, key, option.form)
		case seen[key]:
			return fmt.Errorf("option %q is given twice", key)
		}
		seen[key] = true
		if err := option.set(s, value); err != nil {
			return fmt.Errorf("option %s=%q: %v", key, value, err)
		}
	}
	return nil
}

func findDeviceOption(kind deviceKind, key string) *deviceOption {
	for i := range deviceOptionTable {
		if o := &deviceOptionTable[i]; o.name == key && strings.Contains(o.kinds, string(kind)) {
			return o
		}
	}
	return nil
}

func knownOptions(kind deviceKind) string {
	var known []string
	for _, o := range deviceOptionTable {
		if strings.Contains(o.kinds, string(kind)) {
			known = append(known, o.name+"="+o.form)
		}
	}
	return fmt.Sprintf("%s knows %s", kind, strings.Join(known, "; "))
}

// parseDeviceAddr reads ADDR or [ADDR]; an IPv6 address may carry a zone.
func parseDeviceAddr(text string) (netip.Addr, error) {
	inner := text
	if strings.HasPrefix(inner, "[") {
		if !strings.HasSuffix(inner, "]") {
			return netip.Addr{}, fmt.Errorf("%q lacks its closing bracket; another UDP port is an option: ?port=N", text)
		}
		inner = inner[1 : len(inner)-1]
	}
	addr, err := netip.ParseAddr(inner)
	if err != nil {
		if _, e := netip.ParseAddrPort(text); e == nil {
			return netip.Addr{}, fmt.Errorf("%q has a port; another UDP port is an option: ?port=N", text)
		}
		return netip.Addr{}, fmt.Errorf("%q is not an IP address (host names are not looked up)", text)
	}
	addr = addr.Unmap()
	if addr.IsUnspecified() || addr.IsMulticast() {
		return netip.Addr{}, fmt.Errorf("%s is not an address of one interface", addr)
	}
	return addr, nil
}

// isKernelName reports whether the kernel accepts a device name
// (IB_DEVICE_NAME_MAX, no path separators).
func isKernelName(name string) bool {
	if name == "" || len(name) > 63 || name == "." || name == ".." {
		return false
	}
	for _, r := range name {
		ok := r == '_' || r == '-' || r == '.' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
		if !ok {
			return false
		}
	}
	return true
}

// setFraction reads 5% or 0.05 into 0 … 1.
func setFraction(dst *float64, text string) error {
	number, percent := strings.CutSuffix(text, "%")
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || math.IsNaN(v) {
		return fmt.Errorf("not a share; write 1%% or 0.01")
	}
	switch {
	case percent:
		v /= 100
	case v == 1: // taken at its word, a slip for 1 % loses every packet in silence
		return fmt.Errorf("is it one percent or all? write 1%% or 100%%")
	case v > 1 && v <= 100:
		return fmt.Errorf("more than 1; write %s%% for a percentage", number)
	}
	if v < 0 || v > 1 {
		return fmt.Errorf("outside 0%% … 100%%")
	}
	*dst = v
	return nil
}

func setDelay(s *deviceSpec, text string) error {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > maxFaultDelay {
		return fmt.Errorf("not a duration of 0 … %v; write 2ms", maxFaultDelay)
	}
	s.delay = d
	return nil
}

func setGUID(s *deviceSpec, text string) error {
	v, err := strconv.ParseUint(strings.ReplaceAll(text, ":", ""), 16, 64)
	if err != nil || v == 0 {
		return fmt.Errorf("not 64 bits in hexadecimal digits, other than 0")
	}
	s.guid = v
	return nil
}

func setSeed(s *deviceSpec, text string) error {
	v, err := strconv.ParseUint(text, 0, 64)
	if err != nil {
		return fmt.Errorf("not a whole number of 64 bits")
	}
	s.seed = v
	return nil
}

func setPort(s *deviceSpec, text string) error {
	v, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return fmt.Errorf("not a UDP port 0 … 65535")
	}
	s.port = int(v)
	return nil
}

func setMTU(s *deviceSpec, text string) error {
	v, err := strconv.Atoi(text)
	if err != nil || !isPathMTU(v) {
		return fmt.Errorf("not a path MTU: 256, 512, 1024, 2048 or 4096")
	}
	s.mtu = v
	return nil
}

// setOff reads on or off; on is the default.
func setOff(off *bool, text string) error {
	if text != "on" && text != "off" {
		return fmt.Errorf("not on or off")
	}
	*off = text == "off"
	return nil
}

// setStats stores a value that equals the default as the default, so that
// devices with equal options compare equal.
func setStats(s *deviceSpec, text string) error {
	if text != string(statsOn) && text != string(statsOff) {
		return fmt.Errorf("not on or off")
	}
	if s.stats = statsOption(text); s.statsReadable() == (&deviceSpec{kind: s.kind}).statsReadable() {
		s.stats = statsDefault
	}
	return nil
}

func setNet(s *deviceSpec, text string) error {
	if text == "" || len(text) > 128 {
		return fmt.Errorf("a network's name has 1 … 128 bytes")
	}
	s.net = text
	return nil
}

func setDoorbell(s *deviceSpec, text string) error {
	if text != "syscall" && text != "raw" {
		return fmt.Errorf("not syscall or raw")
	}
	s.rawDoorbell = text == "raw"
	return nil
}

func setPcap(s *deviceSpec, text string) error {
	if text == "" || strings.ContainsRune(text, 0) {
		return fmt.Errorf("not a file's name")
	}
	s.pcap = text
	return nil
}

func setName(s *deviceSpec, text string) error {
	if !isKernelName(text) {
		return fmt.Errorf("not a device's name")
	}
	s.name = text
	return nil
}

// isPathMTU holds for the five path MTUs of IBA 9.6.1 (bytes of payload).
func isPathMTU(n int) bool { return n > 0 && abi.FitMTU(n).Bytes() == n }

func badDevice(format string, args ...any) error {
	return errs.Explain(syscall.EINVAL, "device "+format, args...)
}
