package device

import (
	"errors"
	"net/netip"
	"strconv"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/uapi/internal/errs"
)

// Device is a device with the facts that its kernel does not tell. open.go and
// softdevice.go make devices.
type Device struct {
	Spec    Spec
	Addr    netip.AddrPort // where it answers
	Name    string         // the kernel's name: "soft0"
	NetDev  string         // the interface it sends on
	MTU     int            // its port's active MTU in bytes
	Notices []string       // automatic choices that are worth telling

	// Route is the largest path MTU on the way to peer, 0 for none; nil: not
	// known.
	Route func(peer netip.Addr) (mtu int, err error)

	Judge kshim.Judge // of completions, which the client asks; nil: nobody, or the kernel does

	process func(name string) (k kshim.Kernel, exit func(), err error) // a new client of its kernel
	stop    func() error

	// redirect sends the peers that ask this device for a service to another
	// UDP port of its address; nil on a kernel device.
	redirect  func(service uint64, port uint16) (end func(), err error)
	mapper    *portMapper // of the owner of an address's UDP port 4791
	neighbour *neighbour  // of a device beside it

	users int // clients; guarded by the registry's mu
}

// OpenName returns the name by which Open gets this device.
func (d *Device) OpenName() string {
	if d.Spec.Kind == Host {
		name := string(Host) + ":" + d.Spec.host
		if d.Spec.rawDoorbell {
			name += "?doorbell=raw"
		}
		return name
	}
	name := nameAt(d.Spec.Kind, d.Addr.Addr())
	sep := "?"
	if d.Spec.Net != "" {
		name += sep + "net=" + d.Spec.Net
		sep = "&"
	}
	if d.Addr.Port() != RoCEPort {
		name += sep + "port=" + strconv.Itoa(int(d.Addr.Port()))
	}
	return name
}

// Beside reports whether another process has UDP port 4791 of the device's
// address: the device has another one, and connects as if it had 4791.
func (d *Device) Beside() bool { return d.Spec.role == roleBeside }

// Taken returns the error of a listener on an address of the device. Of a port
// that is taken it names the process that has it, if that is known: of a
// wildcard, or beside one, Linux answers EADDRNOTAVAIL.
func (d *Device) Taken(addr netip.AddrPort, err error) error {
	taken := &takenError{service: uint64(abi.UCMPSTCP)<<16 | uint64(addr.Port())}
	if errors.As(err, &taken) {
		return taken
	}
	if taken.pid = d.mapper.taker(taken.service); taken.pid != 0 && errors.Is(err, syscall.EADDRINUSE) {
		return taken
	}
	if addr.Port() != 0 && (errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, syscall.EADDRNOTAVAIL)) {
		return errs.Explain(syscall.EADDRINUSE, "port %d is taken by another listener", addr.Port())
	}
	return err
}

// Carries is the largest path MTU on the route to a peer, 0 if it does not even
// carry the smallest. Without a route there may be one when packets go.
func (d *Device) Carries(peer netip.Addr) int {
	if d.Route != nil {
		if most, err := d.Route(peer); err == nil {
			return most
		}
	}
	return abi.MTU4096.Bytes()
}
