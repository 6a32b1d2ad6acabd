package uapi

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/uapi/internal/errs"
)

// backend is a device with the facts that its kernel does not tell. open.go and
// softdevice.go make backends.
type backend struct {
	spec    deviceSpec
	addr    netip.AddrPort // where it answers
	name    string         // the kernel's name: "soft0"
	netDev  string         // the interface it sends on
	mtu     int            // its port's active MTU in bytes
	notices []string       // automatic choices that are worth telling

	process func(name string) (k kshim.Kernel, exit func(), err error) // a new client of its kernel
	route   func(peer netip.Addr) (mtu int, err error)                 // largest path MTU on the way to peer, 0 for none; nil: not known
	stop    func() error

	// redirect sends the peers that ask this device for a service to another
	// UDP port of its address; nil on a kernel device.
	redirect  func(service uint64, port uint16) (end func(), err error)
	mapper    *portMapper // of the owner of an address's UDP port 4791
	neighbour *neighbour  // of a device beside it

	users int // contexts; guarded by the registry's mu
}

// device returns the name by which Open gets this backend.
func (s *backend) device() string {
	if s.spec.kind == kindHost {
		name := string(kindHost) + ":" + s.spec.host
		if s.spec.rawDoorbell {
			name += "?doorbell=raw"
		}
		return name
	}
	name := nameAt(s.spec.kind, s.addr.Addr())
	sep := "?"
	if s.spec.net != "" {
		name += sep + "net=" + s.spec.net
		sep = "&"
	}
	if s.addr.Port() != RoCEPort {
		name += sep + "port=" + strconv.Itoa(int(s.addr.Port()))
	}
	return name
}

// starter starts a device at an address; port 0 is any.
type starter func(spec deviceSpec, at netip.AddrPort, name string, log *slog.Logger) (*backend, error)

// registry holds the soft devices of this process. A device's identity is
// its kind, network, address and UDP port.
type registry struct {
	start starter // nil: startDevice

	mu       sync.Mutex
	backends []*backend         // guarded by mu
	serial   map[deviceKind]int // guarded by mu; numbers the names
	hosts    map[string]int     // guarded by mu: contexts on the kernel's devices, by name
}

// countHost notes that n more contexts are open on a device of the kernel.
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
func (r *registry) acquire(spec deviceSpec, log *slog.Logger) (*backend, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if spec.role == roleBeside {
		return r.acquireBeside(spec, log)
	}
	if spec.addr.IsValid() && spec.port != 0 {
		at := netip.AddrPortFrom(spec.addr, spec.udpPort())
		if s := r.find(spec, at); s != nil {
			if s.spec.comparable() != spec.comparable() {
				return nil, errs.Explain(syscall.EINVAL, "%s is open in this process with other options: %s; use the same, or close it first",
					s.device(), s.spec.optionString())
			}
			s.users++
			return s, nil
		}
		return r.launch(spec, at, log)
	}
	if spec.addr.IsValid() || spec.kind == kindSim {
		return r.launch(spec, netip.AddrPortFrom(spec.addr, spec.udpPort()), log)
	}
	return r.acquireLoopback(spec, log)
}

// The UDP ports of devices beside another: from where ephemeral ports begin to
// where the source ports of RoCEv2 do that only tell flows apart (IBA A17).
const firstBeside, lastBeside = 0x8000, 0xbfff

// acquireBeside finds or starts the process's device beside the owner of an
// address's UDP port 4791. Preconditions: mu is held.
func (r *registry) acquireBeside(spec deviceSpec, log *slog.Logger) (*backend, error) {
	for _, s := range r.backends {
		if s.spec.role == roleBeside && s.addr.Addr() == spec.addr && s.spec.comparable() == spec.comparable() {
			s.users++
			return s, nil
		}
	}
	for tries := 0; ; tries++ {
		port := firstBeside + rand.N(lastBeside-firstBeside+1)
		s, err := r.launch(spec, netip.AddrPortFrom(spec.addr, uint16(port)), log)
		if err == nil && s.neighbour != nil {
			s.neighbour.own = func() (func(), error) { return r.own(spec.addr, log) }
		}
		if err == nil || tries == 32 || !errors.Is(err, syscall.EADDRINUSE) {
			return s, err
		}
	}
}

// own takes UDP port 4791 of an address, for the sake of requests that are sent
// on.
func (r *registry) own(addr netip.Addr, log *slog.Logger) (release func(), err error) {
	spec := softAt(addr)
	spec.role = roleSuccessor
	s, err := r.acquire(spec, log)
	if err != nil {
		return nil, err
	}
	return func() { _ = r.release(s) }, nil
}

// acquireLoopback starts a device on the next free loopback address.
func (r *registry) acquireLoopback(spec deviceSpec, log *slog.Logger) (*backend, error) {
	var taken error
	for _, addr := range loopbacks() {
		at := netip.AddrPortFrom(addr, spec.udpPort())
		if r.holds(addr) {
			continue
		}
		s, err := r.launch(spec, at, log)
		if err == nil {
			return s, nil
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
	s, err := r.launch(spec, netip.AddrPortFrom(loopbacks()[0], 0), log)
	if err != nil {
		return nil, err
	}
	if spec.port < 0 {
		notice := fmt.Sprintf("UDP port %d is taken on every loopback address, likely by rdma_rxe or other soft devices; "+
			"using %v, which soft devices reach and RDMA cards and rdma_rxe do not", RoCEPort, s.addr)
		s.notices = append(s.notices, notice)
		log.Warn(notice, "device", s.name)
	}
	return s, nil
}

// launch starts a device. Preconditions: mu is held.
func (r *registry) launch(spec deviceSpec, at netip.AddrPort, log *slog.Logger) (*backend, error) {
	if r.serial == nil {
		r.serial = make(map[deviceKind]int)
	}
	name := fmt.Sprintf("%s%d", spec.kind, r.serial[spec.kind])
	if spec.name != "" {
		name = spec.name
	}
	start := r.start
	if start == nil {
		start = startDevice
	}
	s, err := start(spec, at, name, log)
	if err != nil {
		return nil, err
	}
	if spec.name == "" {
		r.serial[spec.kind]++
	}
	s.spec, s.name, s.users = spec, name, 1
	r.backends = append(r.backends, s)
	if spec.kind == kindSoft && s.redirect != nil && s.addr.Port() == RoCEPort && !spec.unbound {
		s.mapper = openPortMapper(s.addr.Addr(), s.redirect, log)
	}
	return s, nil
}

// release gives one acquire back; the last one stops the device.
func (r *registry) release(s *backend) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.users--
	if s.users > 0 {
		return nil
	}
	r.backends = slices.DeleteFunc(r.backends, func(other *backend) bool { return other == s })
	s.mapper.close()
	return s.stop()
}

// find is the running device of that identity, or nil. Preconditions: mu is
// held.
func (r *registry) find(spec deviceSpec, at netip.AddrPort) *backend {
	if spec.kind == kindSim && spec.net == "" {
		return nil // private: no other context shares it
	}
	for _, s := range r.backends {
		if s.spec.kind == spec.kind && s.spec.net == spec.net && s.addr == at {
			return s
		}
	}
	return nil
}

// named acquires the running device of a name in the mini kernel; nil if there
// is none.
func (r *registry) named(name string) *backend {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.backends {
		if s.name == name {
			s.users++
			return s
		}
	}
	return nil
}

// holds reports whether a soft device of this process is on the address.
func (r *registry) holds(addr netip.Addr) bool {
	return slices.ContainsFunc(r.backends, func(s *backend) bool { return s.spec.kind == kindSoft && s.addr.Addr() == addr })
}

// owns reports whether a soft device of this process is on the address at UDP
// port 4791.
func (r *registry) owns(addr netip.Addr) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.find(deviceSpec{kind: kindSoft}, netip.AddrPortFrom(addr, RoCEPort)) != nil
}

// list is a snapshot of the running devices.
func (r *registry) list() []*backend {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.backends)
}

// udpPort is the UDP port asked for, 0 for any.
func (s *deviceSpec) udpPort() uint16 {
	if s.port < 0 {
		return RoCEPort
	}
	return uint16(s.port)
}

// comparable returns the options without those that are part of the identity.
func (s deviceSpec) comparable() deviceOptions {
	s.port = 0
	return s.deviceOptions
}

// optionString names the options that are set, as they are written.
func (s *deviceSpec) optionString() string {
	var set []string
	for _, share := range []struct {
		name  string
		value float64
	}{{"loss", s.loss}, {"reorder", s.reorder}, {"dup", s.dup}, {"corrupt", s.corrupt}} {
		if share.value != 0 {
			set = append(set, fmt.Sprintf("%s=%v%%", share.name, share.value*100))
		}
	}
	if s.delay != 0 {
		set = append(set, fmt.Sprintf("delay=%v", s.delay))
	}
	if s.seed != 0 {
		set = append(set, fmt.Sprintf("seed=%d", s.seed))
	}
	if s.mtu != 0 {
		set = append(set, fmt.Sprintf("mtu=%d", s.mtu))
	}
	if s.guid != 0 {
		set = append(set, fmt.Sprintf("guid=%016x", s.guid))
	}
	if s.unbound {
		set = append(set, "bind=off")
	}
	if s.noGSO {
		set = append(set, "gso=off")
	}
	if s.noGRO {
		set = append(set, "gro=off")
	}
	if s.noExtensions {
		set = append(set, "extensions=off")
	}
	if s.noShm {
		set = append(set, "shm=off")
	}
	if s.pcap != "" {
		set = append(set, "pcap="+s.pcap)
	}
	if s.name != "" {
		set = append(set, "name="+s.name)
	}
	if s.stats != statsDefault {
		set = append(set, "stats="+string(s.stats))
	}
	if len(set) == 0 {
		return "none"
	}
	return strings.Join(set, "&")
}

// loopbacks are the addresses that a plain soft device may take. Only Linux
// answers on all of 127.0.0.0/8.
func loopbacks() []netip.Addr {
	n := 1
	if runtime.GOOS == "linux" {
		n = 16
	}
	addrs := make([]netip.Addr, n)
	for i := range addrs {
		addrs[i] = netip.AddrFrom4([4]byte{127, 0, 0, byte(1 + i)})
	}
	return addrs
}
