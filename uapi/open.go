package uapi

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/emu"
	"github.com/rdmashim/rdmashim/kshim/host"
	"github.com/rdmashim/rdmashim/kshim/trace"
	"github.com/rdmashim/rdmashim/rnic"
	"github.com/rdmashim/rdmashim/rnic/cm"
	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/rnic/link/capture"
	"github.com/rdmashim/rdmashim/rnic/link/sim"
	"github.com/rdmashim/rdmashim/rnic/link/udp"
	"github.com/rdmashim/rdmashim/rnic/link/udp/ports"
)

// This file is the only one that puts parts together: everything else here
// speaks to a kernel through kshim/verbs and does not know which one it is.

// devices are the soft devices of this process.
var devices = &registry{start: map[deviceKind]starter{kindSoft: startSoft, kindSim: startSim}}

// Open opens a device by name; "" is RDMASHIM_DEVICE or "soft".
//
//	soft             soft RNIC on the first free of 127.0.0.1 … 127.0.0.16
//	soft:10.0.0.1    on that address; soft:[::1]
//	sim              private soft RNIC on an in-memory network
//	sim?net=NAME     on an in-memory network shared in this process
//	rxe0, host:rxe0  the real kernel's device
//
// Options follow a question mark: loss=1%, reorder=10%, dup=1%, corrupt=0.1%
// and delay=2ms make the device's sending side misbehave as seed=7 decides;
// mtu=1024 limits its packets; port=N moves it to another UDP port, 0 to any;
// gso=off and gro=off let each packet be a datagram of its own for the system,
// when it is sent or received, where it could take many at a time;
// pcap=FILE writes its packets, both ways and as they are on the wire, to a
// pcapng file, which is complete when the device has stopped. A new FILE is this
// user's alone, and a symbolic link is ELOOP. A FILE that cannot be opened fails
// Open; one that can later not be written does not disturb the device (counter
// pcap_drop, and a warning to the logger). Each device needs a file of its own,
// EBUSY: {device} in FILE stands for the device's name, soft0, and {pid} for the
// process;
// stats=off keeps the device's counters to the process: without it, other
// processes of the same user read them through a socket below $XDG_RUNTIME_DIR
// or the directory for temporary files (package stats, rdmashim top). It costs a
// goroutine that waits; a socket that cannot be made is no error. A sim device
// has it with stats=on only.
// A device of the kernel knows doorbell=raw instead, which makes posting a little
// quicker and lets the garbage collector wait for it (kshim/host.Options).
//
// The kernel's devices are those of rdma_rxe; one of another driver is
// EPROTONOSUPPORT. ENODEV says that there is none of that name, EACCES that its
// file below /dev/infiniband may not be opened, ENOTSUP that this system has no
// such kernel.
//
// A soft device's identity is its address and UDP port: opening it again in
// this process gives another context on the same device, with other options
// EINVAL. Every plain "soft" takes the next free address; when port 4791 is
// taken on all, it takes a free port and says so. An address that was asked
// for and is taken is EADDRINUSE. The last Close stops the device.
//
// With RDMASHIM_TRACE=1 in the environment, every call to the device's kernel is
// printed to standard error, with RDMASHIM_TRACE=FILE appended to a file, as
// strace does (kshim/trace).
func Open(device string) (*Context, error) { return OpenWith(device, OpenConfig{}) }

// OpenWith is Open as configured.
func OpenWith(device string, config OpenConfig) (*Context, error) {
	if device == "" {
		device = defaultDeviceName()
	}
	c, err := open(device, config)
	if err != nil {
		return nil, &OpError{Op: "Open", Object: device, Err: err}
	}
	return c, nil
}

func open(device string, config OpenConfig) (*Context, error) {
	spec, err := parseDevice(device)
	if err != nil {
		return nil, err
	}
	c, err := openSpec(spec, config)
	if err != nil {
		return nil, explainOpen(spec, device, err)
	}
	return c, nil
}

// openBeside opens a device on another UDP port of an address, which connects
// as if it had 4791: soft devices reach it.
func openBeside(addr netip.Addr, config OpenConfig) (*Context, error) {
	c, err := openSpec(deviceSpec{kind: kindSoft, addr: addr, role: roleBeside, deviceOptions: deviceOptions{port: -1}}, config)
	if err != nil {
		return nil, &OpError{Op: "Open", Object: softName(addr) + ", another UDP port", Err: err}
	}
	return c, nil
}

func openSpec(spec deviceSpec, config OpenConfig) (*Context, error) {
	if kinds := deviceKinds(config.Kinds); !kinds.has(spec.kind) {
		return nil, explain(syscall.EINVAL, "it is of kind %s, and %s was asked for", spec.kind, strings.Join(kinds, " or "))
	}
	s, release, err := acquire(spec, config.logger())
	if err != nil {
		return nil, err
	}
	kernel, exit := s.process(fmt.Sprintf("uapi(%d)", os.Getpid()))
	kernel, untrace, err := trace.Env(kernel, s.name)
	if err != nil {
		exit()
		release()
		return nil, err
	}
	if config.wrap != nil {
		kernel = config.wrap(kernel)
	}
	c, err := newContext(kernel, s, config)
	if err != nil {
		exit()
		untrace()
		release()
		return nil, err
	}
	c.release = func() error {
		exit()
		untrace()
		return release()
	}
	opened.add(c)
	offers.add(c)
	return c, nil
}

// acquire gives the device that a name asks for, and what gives it back.
func acquire(spec deviceSpec, log *slog.Logger) (s *station, release func() error, err error) {
	if spec.kind == kindHost {
		if s, err = hostStation(spec); err != nil {
			return nil, nil, err
		}
		devices.countHost(spec.host, 1)
		return s, func() error { devices.countHost(spec.host, -1); return nil }, nil
	}
	s, err = devices.acquire(spec, log)
	return s, func() error {
		err := devices.release(s)
		s.neighbour.wait()
		return err
	}, err
}

// hostStation is a device of the kernel, which runs by itself.
func hostStation(spec deviceSpec) (*station, error) {
	kernel, err := host.New(host.Options{RawDoorbell: spec.rawDoorbell})
	if err != nil {
		return nil, err
	}
	return &station{
		spec:    spec,
		name:    spec.host,
		process: func(string) (kshim.Kernel, func()) { return kernel, func() {} },
	}, nil
}

// explainOpen adds what to do to the error of a kernel device that is not there:
// the name may have been meant otherwise.
func explainOpen(spec deviceSpec, device string, err error) error {
	if spec.kind != kindHost || !errors.Is(err, syscall.ENODEV) && !errors.Is(err, syscall.ENOTSUP) {
		return err
	}
	if guess := meantDevice(device); guess != "" {
		return fmt.Errorf("%w; did you mean %q?", err, guess)
	}
	return fmt.Errorf("%w; soft devices need no kernel device, and 'rdmashim doctor' says what the kernel lacks (%s)", err, deviceForms)
}

// startSoft starts a soft RNIC on a UDP socket.
func startSoft(spec deviceSpec, at netip.AddrPort, name string, log *slog.Logger) (*station, error) {
	l, err := udp.Listen(at, udp.Options{NoGSO: spec.noGSO, NoGRO: spec.noGRO})
	if err != nil {
		return nil, err
	}
	s, err := startRNIC(spec, l, name, log)
	if err != nil {
		return nil, err
	}
	if routed, ok := l.(link.Routed); ok {
		s.route = func(peer netip.Addr) (int, error) {
			room, err := routed.PathMTU(peer)
			return rnic.PathMTU(room), err
		}
	}
	return s, nil
}

// roceSockets are the UDP sockets of this machine; known is false where the
// system does not tell.
type roceSockets struct {
	list  []ports.Socket
	known bool
}

func heldPorts() (h roceSockets) {
	h.list, h.known = ports.Sockets(os.DirFS("/"))
	return h
}

// taken reports whether packets to the address's RoCE port get to a socket,
// bound whether the socket is at that very address.
func (h *roceSockets) taken(a netip.Addr) bool {
	at := netip.AddrPortFrom(a, RoCEPort)
	return slices.ContainsFunc(h.list, func(s ports.Socket) bool { return s.Takes(at) })
}

func (h *roceSockets) bound(a netip.Addr) bool {
	at := netip.AddrPortFrom(a, RoCEPort)
	return slices.ContainsFunc(h.list, func(s ports.Socket) bool { return s.Local == at })
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
func startSim(spec deviceSpec, at netip.AddrPort, name string, log *slog.Logger) (*station, error) {
	network, leave := joinSimNetwork(spec.net)
	l, err := network.Attach(at)
	if err != nil {
		leave()
		return nil, err
	}
	s, err := startRNIC(spec, l, name, log)
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

func joinSimNetwork(name string) (network *sim.Network, leave func()) {
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

// capturePackets puts the capture that pcap= asks for on a link, which it closes
// when it cannot.
func capturePackets(spec deviceSpec, l link.Link, name string, log *slog.Logger) (link.Link, error) {
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

// captureFile is where a device's packets go: programs that open several devices by
// one name, and several processes, write a capture for each. A packet between two
// devices would be twice in one that they share.
func captureFile(pcap, device string) string {
	return strings.NewReplacer("{device}", device, "{pid}", strconv.Itoa(os.Getpid())).Replace(pcap)
}

// startRNIC puts a soft RNIC on a link and an emulated kernel in front of it.
func startRNIC(spec deviceSpec, l link.Link, name string, log *slog.Logger) (*station, error) {
	addr := netip.AddrPortFrom(l.Caps().Local.Addr().Unmap(), l.Caps().Local.Port())
	l, err := capturePackets(spec, l, name, log)
	if err != nil {
		return nil, err
	}
	faulty := link.WithFaults(l, link.Faults{
		Loss: spec.loss, Reorder: spec.reorder, Dup: spec.dup, Corrupt: spec.corrupt, Delay: spec.delay, Seed: spec.seed,
	})
	var device *rnic.Device
	config := rnic.Config{Name: name, Link: faulty, MTU: spec.mtu, Logger: log}
	var beside *neighbour
	if spec.role == roleBeside {
		beside = newNeighbour(addr.Addr(), addr.Port(), log)
		config.PeerPort, config.Announce = RoCEPort, beside.announce
	}
	if spec.role == roleSuccessor {
		config.CM.Grace = 2 * cm.Second // those beside try each 10 ms, 20 ms, 40 ms …
	}
	soft := softModule(config, &device)
	machine := emu.New(emu.Options{Logger: log})
	if err = machine.Install(soft); err == nil {
		err = machine.Insmod(soft.Name)
	}
	if err != nil {
		faulty.Close()
		return nil, err
	}
	port, err := device.QueryPort(1)
	if err != nil {
		machine.Rmmod(soft.Name)
		return nil, err
	}
	return &station{
		addr:   addr,
		netDev: device.NetDev(),
		mtu:    port.ActiveMTU.Bytes(),
		process: func(name string) (kshim.Kernel, func()) {
			p := machine.Process(name)
			return p, p.Exit
		},
		redirect:  device.Redirect,
		neighbour: beside,

		stop: func() error { return machine.Rmmod(soft.Name) },
	}, nil
}

// softModule is the soft RNIC's driver, as a module of the emulated kernel: its
// init starts the one device that it has, its exit stops it.
func softModule(c rnic.Config, device **rnic.Device) emu.Module {
	return emu.Module{
		Name:  "soft",
		Needs: []string{"ib_uverbs"},
		Init: func(this *emu.Driver) error {
			d, err := rnic.New(c)
			if err != nil {
				return err
			}
			if err := this.Register(d); err != nil {
				d.Close()
				return err
			}
			*device = d
			return nil
		},
		Exit: func(this *emu.Driver) error { return this.Unregister(c.Name) },
	}
}
