package device

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/rdmashim/rdmashim/uapi/internal/errs"
	"github.com/rdmashim/rdmashim/uapi/loopback"
)

// Kinds are the kinds of devices that may be opened; none means all.
type Kinds []string

func (k Kinds) has(kind Kind) bool {
	return len(k) == 0 || slices.Contains(k, string(kind))
}

// Way is a device that a Chooser has chosen, and how to open it.
type Way struct {
	Spec     Spec
	Label    string // what errors call it
	GIDIndex *int   // of a kernel device: the entry with the address
	Dials    bool   // it is to dial an address of this host: no peer knows its own
}

// Chooser chooses devices by address, and opens a C on the first that it can:
// for package uapi, its Device.
type Chooser[C any] struct {
	Kinds Kinds
	Open  func(Way) (C, error)
}

// Named opens the device of a Spec, which Parse made of name and errors call
// label, if it has the address; the zero address is the device's own.
func (o *Chooser[C]) Named(spec Spec, name, label string, addr netip.Addr) (c C, err error) {
	switch {
	case !o.Kinds.has(spec.Kind):
		return c, errs.Explain(syscall.EINVAL, "%s is of kind %s, and %s was asked for", label, spec.Kind, strings.Join(o.Kinds, " or "))
	case spec.Kind == Host && addr.IsValid():
		c, ok, failed := o.hostAt(addr, spec.host)
		switch {
		case ok:
			return c, nil
		case len(failed) > 0:
			return c, errs.Tried(failed)
		}
		return c, errs.Explain(syscall.EADDRNOTAVAIL, "%s does not have the address %v", label, addr)
	case spec.addr.IsValid() && addr.IsValid() && spec.addr != addr:
		return c, errs.Explain(syscall.EADDRNOTAVAIL, "%s is on %v, not %v", label, spec.addr, addr)
	case !spec.addr.IsValid():
		spec.addr = addr
	}
	if spec.Kind != Soft {
		return o.Open(Way{Spec: spec, Label: label})
	}
	if !spec.addr.IsValid() {
		spec.addr = Loopbacks()[0]
	}
	c, err = o.softAt(spec)
	if err != nil && label != name {
		err = fmt.Errorf("%s: %w", label, err)
	}
	return c, err
}

// At opens the device of an address of this machine: the kernel's device that
// has it, else the soft device on it. The zero address is 127.0.0.1.
func (o *Chooser[C]) At(addr netip.Addr) (C, error) {
	if !addr.IsValid() {
		addr = Loopbacks()[0]
	}
	c, ok, failed := o.hostAt(addr)
	if ok {
		return c, nil
	}
	if o.Kinds.has(Soft) {
		c, err := o.softAt(softSpec(addr))
		if err == nil {
			return c, nil
		}
		if errors.Is(err, syscall.EADDRNOTAVAIL) {
			err = noDevice(addr, o.Kinds)
		}
		failed = append(failed, err)
	}
	if len(failed) == 0 {
		failed = append(failed, noDevice(addr, o.Kinds))
	}
	return c, errs.Tried(failed)
}

// Toward opens the device on the way to the first of the addresses that has
// one.
func (o *Chooser[C]) Toward(remotes []netip.AddrPort) (c C, err error) {
	var failed []error
	for _, remote := range remotes {
		local, err := routeSource(remote.Addr())
		if err == nil {
			if c, err = o.from(local, remote.Addr()); err == nil {
				return c, nil
			}
			err = fmt.Errorf("no device for the route to %v from %v: %w", remote.Addr(), local, err)
		}
		failed = append(failed, err)
	}
	return c, errs.Tried(failed)
}

// from opens the device at local from which remote is reached.
func (o *Chooser[C]) from(local, remote netip.Addr) (C, error) {
	here := local == remote.Unmap() || remote.IsLoopback()
	c, ok, failed := o.hostAt(local)
	switch {
	case ok:
		return c, nil
	case !o.Kinds.has(Soft):
		return c, errs.Tried(append(failed, noDevice(local, o.Kinds)))
	}
	var err error
	switch {
	case !here || devices.owns(local):
		c, err = o.Open(Way{Spec: softSpec(local), Label: softName(local), Dials: here})
	case local.Is4() && local.IsLoopback() && len(Loopbacks()) > 1:
		c, err = o.clientLoopback(remote)
	default:
		c, err = o.beside(softSpec(local), true)
	}
	if err != nil {
		err = errs.Tried(append(failed, err))
	}
	return c, err
}

// routeSource is the address from which the system would send to remote.
func routeSource(remote netip.Addr) (netip.Addr, error) {
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(remote, RoCEPort))) // sends nothing
	if err != nil {
		return netip.Addr{}, loopback.Explain(err)
	}
	defer conn.Close()
	local := conn.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap()
	return local, nil
}

// hostAt opens the kernel's device that has an address, of the named ones if
// any are named. It fails without an error when no device has it.
func (o *Chooser[C]) hostAt(addr netip.Addr, named ...string) (c C, ok bool, failed []error) {
	if runtime.GOOS != "linux" || !o.Kinds.has(Host) {
		return c, false, nil
	}
	for _, d := range hostDevices("/sys/class/infiniband") {
		i := slices.IndexFunc(d.GIDs, func(g GID) bool { return g.Type == gidV2 && g.Addr == addr.WithZone("") })
		if i < 0 || len(named) > 0 && !slices.Contains(named, d.Name) {
			continue
		}
		spec, err := Parse(d.Device)
		if err == nil {
			if c, err = o.Open(Way{Spec: spec, Label: d.Device, GIDIndex: &d.GIDs[i].Index}); err == nil {
				return c, true, nil
			}
		}
		failed = append(failed, err)
	}
	return c, false, failed
}

const gidV2 = "RoCE v2"

// softSpec is the soft device on an address, without options.
func softSpec(addr netip.Addr) Spec {
	return Spec{Kind: Soft, addr: addr, options: defaultOptions(Soft)}
}

// An owner that is beginning or ending has its UDP port and no port mapper: it
// is asked again for ownerPatience.
const ownerPatience, ownerPause = time.Second, 5 * time.Millisecond

// softAt opens the soft device on an address, beside that of another process
// that lets it.
func (o *Chooser[C]) softAt(spec Spec) (C, error) {
	for began := time.Now(); ; time.Sleep(ownerPause) {
		c, err := o.Open(Way{Spec: spec, Label: softName(spec.addr)})
		if !errors.Is(err, syscall.EADDRINUSE) || spec.udpPort() != RoCEPort {
			return c, err
		}
		switch shared := mayShare(spec.addr); {
		case shared == nil:
			return o.beside(spec, false)
		case !errors.Is(shared, syscall.ECONNREFUSED), time.Since(began) >= ownerPatience:
			return c, err
		}
	}
}

// beside opens a soft device on another UDP port of its address, which connects
// as if it had 4791: soft devices reach it.
func (o *Chooser[C]) beside(spec Spec, dials bool) (C, error) {
	spec.role = roleBeside
	return o.Open(Way{Spec: spec, Label: softName(spec.addr) + ", another UDP port", Dials: dials})
}

// clientAddrs is the number of its own addresses that a process tries.
const clientAddrs = 16

// clientLoopback opens a device on a loopback address that no program listens
// on by habit.
func (o *Chooser[C]) clientLoopback(remote netip.Addr) (C, error) {
	for i := range clientAddrs {
		addr := clientAddr(os.Getpid() + i)
		if addr == remote {
			continue
		}
		c, err := o.Open(Way{Spec: softSpec(addr), Label: softName(addr), Dials: true})
		if !errors.Is(err, syscall.EADDRINUSE) {
			return c, err
		}
	}
	return o.beside(softSpec(Loopbacks()[0]), true)
}

// clientAddr is 127.128.0.0 plus n. Linux numbers no process beyond 2^22.
func clientAddr(n int) netip.Addr {
	return netip.AddrFrom4([4]byte{127, byte(128 + n>>16&0x7f), byte(n >> 8), byte(n)})
}

// noDevice is the error that no device has an address; it lists the addresses
// that there are.
func noDevice(addr netip.Addr, kinds Kinds) error {
	var there []string
	list, _ := List()
	for _, d := range list {
		if !kinds.has(Kind(d.Kind)) || d.Kind == string(Sim) {
			continue
		}
		var addrs []string
		for _, g := range d.GIDs {
			if a := g.Addr.String(); g.Type == gidV2 && !slices.Contains(addrs, a) {
				addrs = append(addrs, a)
			}
		}
		if d.Kind == string(Host) {
			there = append(there, fmt.Sprintf("%s (%s)", d.Device, strings.Join(addrs, " ")))
		} else {
			there = append(there, d.Device)
		}
	}
	if len(there) == 0 {
		return errs.Explain(syscall.EADDRNOTAVAIL, "no device has the address %v; there is none of kind %s", addr, strings.Join(kinds, " or "))
	}
	return errs.Explain(syscall.EADDRNOTAVAIL, "no device has the address %v; there are %s", addr, strings.Join(there, ", "))
}
