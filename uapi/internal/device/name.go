package device

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"syscall"

	"github.com/rdmashim/rdmashim/uapi/internal/errs"
)

// RoCEPort is the UDP port that RoCEv2 is assigned (IBA annex A17.9.2.2).
const RoCEPort = 4791

// maxName bounds the text that the parser looks at, in bytes; no sensible
// name is longer.
const maxName = 1024

// Kind is what a device is made of.
type Kind string

const (
	Soft Kind = "soft" // soft RNIC on UDP sockets
	Sim  Kind = "sim"  // soft RNIC on an in-memory network
	Host Kind = "host" // the real kernel's device
)

// role is a soft device's part on an address that processes share. No
// device name sets it.
type role uint8

const (
	roleNone      role = iota
	roleBeside         // on another UDP port, it connects as if it had 4791
	roleSuccessor      // it has 4791 for the sake of those beside
)

// Spec is a parsed device name.
type Spec struct {
	Kind Kind
	Net  string     // Sim: name of the shared in-memory network, "" is a private one
	addr netip.Addr // zero: choose one
	host string     // Host: the kernel's name of the device
	role role
	text string // the options as they were written, for errors
	options
}

// forms ends an error about a device name: the forms of names that there
// are.
const forms = `known forms are soft, soft:10.0.0.1, soft:[::1], sim, sim?net=NAME, rxe0 and host:rxe0`

// Parse reads a device name:
//
//	soft | soft:ADDR | sim | sim:ADDR | host:NAME | NAME   [?option=value&…]
//
// It accepts a bare % (1%), which net/url does not. Errors are EINVAL.
func Parse(name string) (Spec, error) {
	var spec Spec
	if len(name) > maxName {
		return spec, badName("%q…: the name is longer than %d bytes", name[:32], maxName)
	}
	base, options, _ := strings.Cut(name, "?")
	kind, rest, hasRest := strings.Cut(base, ":")
	switch kind {
	case "soft", "sim":
		spec.Kind = Kind(kind)
		if hasRest {
			addr, err := parseAddr(rest)
			if err != nil {
				return spec, badName("%q: %v", name, err)
			}
			spec.addr = addr
		}
	case "host":
		spec.Kind, spec.host = Host, rest
	default:
		spec.Kind, spec.host = Host, base
	}
	if spec.Kind == Host && !isKernelName(spec.host) {
		if guess := meant(name); guess != "" {
			return spec, badName("%q is not a device name; did you mean %q?", name, guess)
		}
		return spec, badName("%q is not a device name: %s", name, forms)
	}
	spec.text, spec.options = options, defaultOptions(spec.Kind)
	if err := spec.parseOptions(); err != nil {
		if guess := meant(name); guess != "" && spec.Kind == Host {
			return spec, badName("%q: %v; did you mean %q?", name, err, guess)
		}
		return spec, badName("%q: %v", name, err)
	}
	return spec, nil
}

// meant guesses the device meant by a name that no device has: a kind in
// capitals, a soft device's kernel name, an address without its kind. It
// returns "" for other names.
func meant(name string) string {
	base, options, hasOptions := strings.Cut(name, "?")
	kind, rest, hasRest := strings.Cut(base, ":")
	guess := ""
	if at, err := netip.ParseAddrPort(base); err == nil {
		guess = (&Device{Spec: Spec{Kind: Soft}, Addr: at}).OpenName()
	} else if addr, err := parseAddr(base); err == nil {
		guess = (&Device{Spec: Spec{Kind: Soft}, Addr: netip.AddrPortFrom(addr, RoCEPort)}).OpenName()
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

// parseAddr reads ADDR or [ADDR]; an IPv6 address may carry a zone.
func parseAddr(text string) (netip.Addr, error) {
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
		return netip.Addr{}, fmt.Errorf("%q is not an IP address (host names are not looked up; 'rdmashim devices' lists addresses)", text)
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

func badName(format string, args ...any) error {
	return errs.Explain(syscall.EINVAL, "device "+format, args...)
}

// softName is the name of the soft device on an address.
func softName(addr netip.Addr) string { return nameAt(Soft, addr) }

func nameAt(kind Kind, addr netip.Addr) string {
	if addr.Is6() {
		return string(kind) + ":[" + addr.String() + "]"
	}
	return string(kind) + ":" + addr.String()
}
