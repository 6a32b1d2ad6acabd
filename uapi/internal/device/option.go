package device

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/refuse"
	"github.com/rdmashim/rdmashim/rnic/link/rules"
)

// maxFaultDelay bounds delay=, so that a typing error does not look like a
// dead link.
const maxFaultDelay = 10 * time.Second

// options are the options after the question mark in a device name.
type options struct {
	loss, reorder, dup, corrupt float64 // 0 … 1
	delay                       time.Duration
	seed                        uint64
	rules                       string // of faults of packets, a line each
	calls                       string // of calls
	port                        int    // UDP port, 0 any, -1 not given
	mtu                         int    // bytes, 0 not given
	guid                        uint64 // the node's, 0 a random one
	unbound                     bool   // it does not take its UDP port
	buffer                      int    // bytes to ask for a socket's buffers, 0 not given
	noGSO, noGRO                bool
	noShm                       bool // devices of this host are reached by UDP as well
	noExtensions                bool // soft devices are spoken with as any other
	rawDoorbell                 bool
	stats                       bool   // other processes may read the device's counters
	name                        string // the kernel's name of the device, "" is the next free
	pcap                        string // file for a capture of the device's packets, "" none
}

// envShm is the variable of the environment in which off makes shm=off the
// default.
const envShm = "RDMASHIM_SHM"

// defaultOptions are those of a name without options.
func defaultOptions(kind Kind) options {
	return options{port: -1, noShm: os.Getenv(envShm) == "off", stats: kind == Soft}
}

// option is one option of the parser's table.
type option struct {
	name, form string
	kinds      string // which kinds know it
	set        func(*Spec, string) error
}

var optionTable = []option{
	{"loss", "1% or 0.01", "soft sim", func(s *Spec, v string) error { return setFraction(&s.loss, v) }},
	{"reorder", "10%", "soft sim", func(s *Spec, v string) error { return setFraction(&s.reorder, v) }},
	{"dup", "1%", "soft sim", func(s *Spec, v string) error { return setFraction(&s.dup, v) }},
	{"corrupt", "0.1%", "soft sim", func(s *Spec, v string) error { return setFraction(&s.corrupt, v) }},
	{"delay", "2ms", "soft sim", setDelay},
	{"seed", "7", "soft sim", setSeed},
	{faultOption, "drop op=ACK nth=3, or call=CREATE_QP errno=ENOMEM, or @FILE", "soft sim host", setFault},
	{"port", "4791, 0 takes any", "soft sim", setPort},
	{"mtu", "256, 512, 1024, 2048 or 4096", "soft sim", setMTU},
	{"extensions", "on or off", "soft sim", func(s *Spec, v string) error { return setSwitch(&s.noExtensions, v, "off") }},
	{"guid", "0200:0000:0000:0001", "soft sim", setGUID},
	{"bind", "on or off", "soft", func(s *Spec, v string) error { return setSwitch(&s.unbound, v, "off") }},
	{"shm", "on or off", "soft", func(s *Spec, v string) error { return setSwitch(&s.noShm, v, "off") }},
	{"buffer", "bytes, as 212992", "soft", setBuffer},
	{"gso", "off", "soft", func(s *Spec, v string) error { return setSwitch(&s.noGSO, v, "off") }},
	{"gro", "off", "soft", func(s *Spec, v string) error { return setSwitch(&s.noGRO, v, "off") }},
	{"pcap", "FILE", "soft sim", setPcap},
	{"name", "rxe0", "soft sim", setName},
	{"stats", "on or off", "soft sim", func(s *Spec, v string) error { return setSwitch(&s.stats, v, "on") }},
	{"net", "NAME", "sim", setNet},
	{"doorbell", "syscall or raw", "host", setDoorbell},
}

// faultOption is the only option that may be given several times.
const faultOption = "fault"

// parseOptions reads the text's option=value pairs, separated by &. A repeated
// option is an error: one of the two would be silently ignored.
func (s *Spec) parseOptions() error {
	seen := make(map[string]bool)
	for part := range strings.SplitSeq(s.text, "&") {
		if part == "" {
			continue
		}
		key, value, hasValue := strings.Cut(part, "=")
		option := findOption(s.Kind, key)
		switch {
		case option == nil:
			return fmt.Errorf("unknown option %q; %s", key, knownOptions(s.Kind))
		case !hasValue:
			return fmt.Errorf("option %q has no value; write %s=%s", key, key, option.form)
		case seen[key] && key != faultOption:
			return fmt.Errorf("option %q is given twice", key)
		}
		seen[key] = true
		if err := option.set(s, value); err != nil {
			return fmt.Errorf("option %s=%q: %v", key, value, err)
		}
	}
	return nil
}

func findOption(kind Kind, key string) *option {
	for i := range optionTable {
		if o := &optionTable[i]; o.name == key && strings.Contains(o.kinds, string(kind)) {
			return o
		}
	}
	return nil
}

func knownOptions(kind Kind) string {
	var known []string
	for _, o := range optionTable {
		if strings.Contains(o.kinds, string(kind)) {
			known = append(known, o.name+"="+o.form)
		}
	}
	return fmt.Sprintf("%s knows %s", kind, strings.Join(known, "; "))
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

func setDelay(s *Spec, text string) error {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > maxFaultDelay {
		return fmt.Errorf("not a duration of 0 … %v; write 2ms", maxFaultDelay)
	}
	s.delay = d
	return nil
}

func setGUID(s *Spec, text string) error {
	v, err := strconv.ParseUint(strings.ReplaceAll(text, ":", ""), 16, 64)
	if err != nil || v == 0 {
		return fmt.Errorf("not 64 bits in hexadecimal digits, other than 0")
	}
	s.guid = v
	return nil
}

func setSeed(s *Spec, text string) error {
	v, err := strconv.ParseUint(text, 0, 64)
	if err != nil {
		return fmt.Errorf("not a whole number of 64 bits")
	}
	s.seed = v
	return nil
}

// setFault adds rules of faults, between semicolons, or those of files.
func setFault(s *Spec, text string) error {
	packets, calls, err := refuse.Split(text)
	if err != nil {
		return err
	}
	s.rules, s.calls = refuse.Join(s.rules, packets), refuse.Join(s.calls, calls)
	set, err := rules.Parse(s.rules) // of all together
	if err == nil && s.Kind == Host && len(set.Texts()) > 0 {
		return fmt.Errorf("packets of a kernel device are its kernel's: only rules with call=, wc= or event=")
	}
	if err == nil {
		_, err = refuse.Parse(s.calls)
	}
	return err
}

func setPort(s *Spec, text string) error {
	v, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return fmt.Errorf("not a UDP port 0 … 65535")
	}
	s.port = int(v)
	return nil
}

func setMTU(s *Spec, text string) error {
	v, err := strconv.Atoi(text)
	if err != nil || !abi.IsPathMTU(v) {
		return fmt.Errorf("not a path MTU: 256, 512, 1024, 2048 or 4096")
	}
	s.mtu = v
	return nil
}

func setBuffer(s *Spec, text string) error {
	v, err := strconv.ParseUint(text, 10, 31)
	if err != nil || v == 0 {
		return fmt.Errorf("not a number of bytes; write buffer=212992")
	}
	s.buffer = int(v)
	return nil
}

// setSwitch reads on or off, of which set makes dst true.
func setSwitch(dst *bool, text, set string) error {
	if text != "on" && text != "off" {
		return fmt.Errorf("not on or off")
	}
	*dst = text == set
	return nil
}

func setNet(s *Spec, text string) error {
	if text == "" || len(text) > 128 {
		return fmt.Errorf("a network's name has 1 … 128 bytes")
	}
	s.Net = text
	return nil
}

func setDoorbell(s *Spec, text string) error {
	if text != "syscall" && text != "raw" {
		return fmt.Errorf("not syscall or raw")
	}
	s.rawDoorbell = text == "raw"
	return nil
}

func setPcap(s *Spec, text string) error {
	if text == "" || strings.ContainsRune(text, 0) {
		return fmt.Errorf("not a file's name")
	}
	s.pcap = text
	return nil
}

func setName(s *Spec, text string) error {
	if !isKernelName(text) {
		return fmt.Errorf("not a device's name")
	}
	s.name = text
	return nil
}

// udpPort is the UDP port asked for, 0 for any.
func (s *Spec) udpPort() uint16 {
	if s.port < 0 {
		return RoCEPort
	}
	return uint16(s.port)
}

// comparable returns the options without those that are part of the identity,
// or of one Open only.
func (s Spec) comparable() options {
	s.port, s.calls = 0, ""
	return s.options
}
