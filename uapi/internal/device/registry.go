package device

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"syscall"

	"github.com/rdmashim/rdmashim/uapi/internal/errs"
)

// starter starts a device at an address; port 0 is any.
type starter func(spec Spec, at netip.AddrPort, name string, log *slog.Logger) (*Device, error)

// registry has the soft devices of this process. A device's identity is
// its kind, network, address and UDP port.
type registry struct {
	start starter // nil: startDevice

	mu      sync.Mutex
	devices []*Device      // guarded by mu
	serial  map[Kind]int   // guarded by mu; numbers the names
	hosts   map[string]int // guarded by mu: how often the kernel's devices are open, by name

	readers statsSocket
}

// countHost counts n more times that a device of the kernel is open.
func (r *registry) countHost(name string, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.hosts == nil {
		r.hosts = map[string]int{}
	}
	r.hosts[name] += n
}

// hasHost reports whether this process has a device of the kernel open.
func (r *registry) hasHost(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.hosts[name] > 0
}

// acquire finds or starts the device. Every acquire needs a release.
func (r *registry) acquire(spec Spec, log *slog.Logger) (*Device, error) {
	d, err := r.obtain(spec, log)
	if err == nil {
		r.readers.update(d, r.list, log)
	}
	return d, err
}

// obtain is acquire without the socket for readers.
func (r *registry) obtain(spec Spec, log *slog.Logger) (*Device, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if spec.role == roleBeside {
		return r.acquireBeside(spec, log)
	}
	if spec.addr.IsValid() && spec.port != 0 {
		at := netip.AddrPortFrom(spec.addr, spec.udpPort())
		if d := r.find(spec, at); d != nil {
			if d.Spec.comparable() != spec.comparable() {
				return nil, errs.Explain(syscall.EINVAL, "%s is open in this process with other options: %s; use the same, or close it first",
					d.OpenName(), cmp.Or(d.Spec.text, "none"))
			}
			d.users++
			return d, nil
		}
		return r.launch(spec, at, log)
	}
	if spec.addr.IsValid() || spec.Kind == Sim {
		return r.launch(spec, netip.AddrPortFrom(spec.addr, spec.udpPort()), log)
	}
	return r.acquireLoopback(spec, log)
}

// The UDP ports of devices beside another: from where ephemeral ports begin to
// where the source ports of RoCEv2 do that only tell flows apart (IBA A17).
const firstBeside, lastBeside = 0x8000, 0xbfff

// acquireBeside finds or starts the process's device beside the owner of an
// address's UDP port 4791. Preconditions: mu is held.
func (r *registry) acquireBeside(spec Spec, log *slog.Logger) (*Device, error) {
	for _, d := range r.devices {
		if d.Spec.role == roleBeside && d.Addr.Addr() == spec.addr && d.Spec.comparable() == spec.comparable() {
			d.users++
			return d, nil
		}
	}
	for tries := 0; ; tries++ {
		port := firstBeside + rand.N(lastBeside-firstBeside+1)
		d, err := r.launch(spec, netip.AddrPortFrom(spec.addr, uint16(port)), log)
		if err == nil && d.neighbour != nil {
			d.neighbour.own = func() (func(), error) { return r.own(spec.addr, log) }
		}
		if err == nil || tries == 32 || !errors.Is(err, syscall.EADDRINUSE) {
			return d, err
		}
	}
}

// own takes UDP port 4791 of an address, for the sake of requests that are sent
// on.
func (r *registry) own(addr netip.Addr, log *slog.Logger) (release func(), err error) {
	spec := softSpec(addr)
	spec.role = roleSuccessor
	d, err := r.acquire(spec, log)
	if err != nil {
		return nil, err
	}
	return func() { _ = r.release(d) }, nil
}

// acquireLoopback starts a device on the next free loopback address.
func (r *registry) acquireLoopback(spec Spec, log *slog.Logger) (*Device, error) {
	var taken error
	for _, addr := range Loopbacks() {
		at := netip.AddrPortFrom(addr, spec.udpPort())
		if r.hasSoft(addr) {
			continue
		}
		d, err := r.launch(spec, at, log)
		if err == nil {
			return d, nil
		}
		if file := (*fs.PathError)(nil); errors.As(err, &file) {
			return nil, err // of pcap=FILE, the same at every address
		}
		if !errors.Is(err, syscall.EADDRINUSE) && !errors.Is(err, syscall.EADDRNOTAVAIL) && !errors.Is(err, syscall.EACCES) {
			return nil, err
		}
		taken = err
	}
	if spec.port > 0 {
		if taken == nil {
			taken = errs.Explain(syscall.EADDRINUSE, "this process has a device on each of them")
		}
		return nil, fmt.Errorf("UDP port %d is not free on any loopback address: %w", spec.port, taken)
	}
	d, err := r.launch(spec, netip.AddrPortFrom(Loopbacks()[0], 0), log)
	if err != nil {
		return nil, err
	}
	if spec.port < 0 {
		notice := fmt.Sprintf("UDP port %d is taken on every loopback address, likely by rdma_rxe or other soft devices; "+
			"using %v, which soft devices reach and RDMA cards and rdma_rxe do not", RoCEPort, d.Addr)
		d.Notices = append(d.Notices, notice)
		log.Warn(notice, "device", d.Name)
	}
	return d, nil
}

// launch starts a device. Preconditions: mu is held.
func (r *registry) launch(spec Spec, at netip.AddrPort, log *slog.Logger) (*Device, error) {
	if r.serial == nil {
		r.serial = make(map[Kind]int)
	}
	name := fmt.Sprintf("%s%d", spec.Kind, r.serial[spec.Kind])
	if spec.name != "" {
		name = spec.name
	}
	start := r.start
	if start == nil {
		start = startDevice
	}
	d, err := start(spec, at, name, log)
	if err != nil {
		return nil, err
	}
	if spec.name == "" {
		r.serial[spec.Kind]++
	}
	d.Spec, d.Name, d.users = spec, name, 1
	r.devices = append(r.devices, d)
	if spec.Kind == Soft && d.redirect != nil && d.Addr.Port() == RoCEPort && !spec.unbound {
		d.mapper = openPortMapper(d.Addr.Addr(), d.redirect, log)
	}
	return d, nil
}

// release gives one acquire back; the last one stops the device.
func (r *registry) release(d *Device) error {
	defer r.readers.update(d, r.list, slog.Default())
	r.mu.Lock()
	defer r.mu.Unlock()
	d.users--
	if d.users > 0 {
		return nil
	}
	r.devices = slices.DeleteFunc(r.devices, func(other *Device) bool { return other == d })
	d.mapper.close()
	return d.stop()
}

// find is the running device of that identity, or nil. Preconditions: mu is
// held.
func (r *registry) find(spec Spec, at netip.AddrPort) *Device {
	if spec.Kind == Sim && spec.Net == "" {
		return nil // private: nothing shares it
	}
	for _, d := range r.devices {
		if d.Spec.Kind == spec.Kind && d.Spec.Net == spec.Net && d.Addr == at {
			return d
		}
	}
	return nil
}

// named acquires the running device of a name in the mini kernel; nil if there
// is none.
func (r *registry) named(name string) *Device {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, d := range r.devices {
		if d.Name == name {
			d.users++
			return d
		}
	}
	return nil
}

// hasSoft reports whether a soft device of this process is on the address.
func (r *registry) hasSoft(addr netip.Addr) bool {
	return slices.ContainsFunc(r.devices, func(d *Device) bool { return d.Spec.Kind == Soft && d.Addr.Addr() == addr })
}

// owns reports whether a soft device of this process is on the address at UDP
// port 4791.
func (r *registry) owns(addr netip.Addr) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.find(Spec{Kind: Soft}, netip.AddrPortFrom(addr, RoCEPort)) != nil
}

// list is a snapshot of the running devices.
func (r *registry) list() []*Device {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.devices)
}
