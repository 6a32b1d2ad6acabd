package device

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/arena"
	"github.com/rdmashim/rdmashim/rnic"
	"github.com/rdmashim/rdmashim/rnic/cm"
	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/rnic/link/capture"
	"github.com/rdmashim/rdmashim/rnic/link/rules"
	"github.com/rdmashim/rdmashim/rnic/link/shm"
	"github.com/rdmashim/rdmashim/rnic/link/sim"
	"github.com/rdmashim/rdmashim/rnic/link/udp"
	"github.com/rdmashim/rdmashim/uapi/internal/errs"
)

// startDevice is the starter of the process's devices.
func startDevice(spec Spec, at netip.AddrPort, name string, log *slog.Logger) (*Device, error) {
	if spec.Kind == Sim {
		return startSim(spec, at, name, log)
	}
	return startSoft(spec, at, name, log)
}

// startSoft starts a soft RNIC on a UDP socket.
func startSoft(spec Spec, at netip.AddrPort, name string, log *slog.Logger) (*Device, error) {
	if v := os.Getenv(envShm); v != "" && v != "on" && v != "off" {
		return nil, errs.Explain(syscall.EINVAL, "%s=%q in the environment; write on or off", envShm, v)
	}
	bound := at
	if spec.unbound {
		if sockets := readSockets(); !spec.addr.IsValid() && sockets.taken(at.Addr()) {
			return nil, errs.Explain(syscall.EADDRINUSE, "a device has %v", at)
		}
		spec.pcap, bound = "", netip.AddrPortFrom(at.Addr(), 0)
	}
	l, err := udp.Listen(bound, udp.Options{NoGSO: spec.noGSO, NoGRO: spec.noGRO, Buffer: spec.buffer})
	if err != nil {
		return nil, err
	}
	var near link.Near
	if !spec.noShm {
		if l, near, err = joinMemory(l, log); err != nil {
			return nil, err
		}
	}
	if spec.unbound {
		l = unbound{l, at}
	}
	s, err := startRNIC(spec, l, near, name, log)
	if err != nil {
		return nil, err
	}
	s.Route = func(peer netip.Addr) (int, error) {
		room, err := l.PathMTU(peer)
		return rnic.PathMTU(room), err
	}
	return s, nil
}

// unbound is a link of a device that can be looked at as if it were at an
// address, and has another UDP port.
type unbound struct {
	link.Link
	at netip.AddrPort
}

func (u unbound) Caps() link.Caps {
	c := u.Link.Caps()
	c.Local = u.at
	return c
}

// joinMemory puts rings in shared memory beside a link, where that can be done.
// It closes the link of a device whose address another one has.
func joinMemory(l link.Link, log *slog.Logger) (link.Link, link.Near, error) {
	o, err := shm.EnvOptions()
	if o.Logger = log; err == nil {
		var s *shm.Link
		if s, err = shm.Wrap(l, o); err == nil {
			return s, s, nil
		}
	}
	if errors.Is(err, shm.ErrTwice) {
		l.Close()
		return nil, nil, err
	}
	if !errors.Is(err, syscall.ENOTSUP) {
		log.Warn("no shared memory with devices of this host: they are reached by UDP", "device", l.Caps().Local, "err", err)
	}
	return l, nil, nil
}

// simNetworks are the in-memory networks that have a name, and how many
// devices are on each.
var simNetworks struct {
	mu    sync.Mutex
	named map[string]*simNetwork // guarded by mu
}

type simNetwork struct {
	*sim.Network
	users int
}

// startSim starts a soft RNIC on an in-memory network.
func startSim(spec Spec, at netip.AddrPort, name string, log *slog.Logger) (*Device, error) {
	network, leave := JoinSim(spec.Net)
	l, err := network.Attach(at)
	if err != nil {
		leave()
		return nil, err
	}
	s, err := startRNIC(spec, l, nil, name, log)
	if err != nil {
		leave()
		return nil, err
	}
	stop := s.stop
	s.stop = func() error {
		defer leave()
		return stop()
	}
	return s, nil
}

// JoinSim returns the in-memory network of a name, and the function that leaves
// it; a network of no name is private.
func JoinSim(name string) (network *sim.Network, leave func()) {
	if name == "" {
		return sim.NewNetwork(sim.Options{}), func() {}
	}
	simNetworks.mu.Lock()
	defer simNetworks.mu.Unlock()
	n := simNetworks.named[name]
	if n == nil {
		if simNetworks.named == nil {
			simNetworks.named = make(map[string]*simNetwork)
		}
		n = &simNetwork{Network: sim.NewNetwork(sim.Options{})}
		simNetworks.named[name] = n
	}
	n.users++
	return n.Network, func() {
		simNetworks.mu.Lock()
		defer simNetworks.mu.Unlock()
		if n.users--; n.users == 0 {
			delete(simNetworks.named, name)
		}
	}
}

// capturePackets puts the capture that pcap= asks for on a link. It closes the
// link when it cannot.
func capturePackets(spec Spec, l link.Link, name string, log *slog.Logger) (link.Link, error) {
	if spec.pcap == "" {
		return l, nil
	}
	file := captureFile(spec.pcap, name)
	captured, err := capture.Wrap(l, file, capture.Options{Name: name, Failed: func(err error) {
		log.Warn("the capture ends here: its file cannot be written; the device goes on", "device", name, "file", file, "err", err)
	}})
	if errors.Is(err, syscall.EBUSY) {
		err = fmt.Errorf("%w; {device} and {pid} in the name given to pcap= stand for the device's and the process's", err)
	}
	if err != nil {
		l.Close()
		return nil, err
	}
	return captured, nil
}

// captureFile returns the file for a device's packets: programs that open
// several devices by one name, and several processes, write a capture for each.
// A packet between two devices would be twice in one that they share.
func captureFile(pcap, device string) string {
	return strings.NewReplacer("{device}", device, "{pid}", strconv.Itoa(os.Getpid())).Replace(pcap)
}

// warnOfIdle says which rules of a device that has ended never hit a packet.
func warnOfIdle(set *rules.Set, name string, log *slog.Logger) {
	texts := set.Texts()
	for i, n := range set.Hits() {
		if n == 0 {
			log.Warn("a rule of faults never hit a packet", "device", name, "rule", texts[i])
		}
	}
}

// vacancy is how long a service without its listener is not refused at once:
// perftest listens for each of its connections anew, for datagrams at the same
// port, too, a second later, and its peer asks as soon as the last message
// before is acknowledged.
const vacancy = 2 * cm.Second

// startRNIC puts a soft RNIC on a link and adds it to the emulated kernel.
func startRNIC(spec Spec, l link.Link, near link.Near, name string, log *slog.Logger) (*Device, error) {
	addr := netip.AddrPortFrom(l.Caps().Local.Addr().Unmap(), l.Caps().Local.Port())
	l, err := capturePackets(spec, l, name, log)
	if err != nil {
		return nil, err
	}
	ruled, err := rules.Parse(spec.rules)
	if err != nil {
		l.Close()
		return nil, err
	}
	faults := link.Faults{Loss: spec.loss, Reorder: spec.reorder, Dup: spec.dup, Corrupt: spec.corrupt, Delay: spec.delay, Seed: spec.seed}
	if spec.rules != "" {
		faults.Rules = ruled
	}
	faulty := link.WithFaults(l, faults)
	driver, err := mini().driver(spec.Kind)
	if err != nil {
		faulty.Close()
		return nil, err
	}
	config := rnic.Config{
		Name: name, Link: faulty, Near: near, MTU: spec.mtu, NoExtensions: spec.noExtensions, GUID: spec.guid,
		Logger: slog.New(slog.NewMultiHandler(log.Handler(), driver.Logger().With("device", name).Handler())),
	}
	var beside *neighbour
	if spec.role == roleBeside {
		beside = newNeighbour(addr.Addr(), addr.Port(), log)
		config.PeerPort, config.Announce = RoCEPort, beside.announce
	}
	if spec.Kind == Soft {
		config.CM.Vacancy = vacancy
	}
	if spec.role == roleSuccessor {
		config.CM.Grace = 2 * cm.Second // those beside try each 10 ms, 20 ms, 40 ms …
	}
	device, err := rnic.New(config)
	if err != nil {
		faulty.Close()
		return nil, err
	}
	port, err := device.QueryPort(1)
	if err == nil {
		err = driver.Register(device)
	}
	if err != nil {
		device.Close()
		return nil, err
	}
	noSpare := arena.Keep() // connections come and go
	return &Device{
		Addr:      addr,
		NetDev:    device.NetDev(),
		MTU:       port.ActiveMTU.Bytes(),
		process:   processesOn(name),
		redirect:  device.Redirect,
		neighbour: beside,

		stop: func() error {
			defer noSpare()
			err := mini().Unregister(name)
			warnOfIdle(ruled, name, log)
			if errors.Is(err, syscall.ENOENT) {
				return nil // Rmmod was first
			}
			return err
		},
	}, nil
}
