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
var devices = &registry{}

// MiniKernel is the emulated kernel that this process's soft and sim devices
// are devices of. Open loads its modules soft and sim and adds a device to one
// of them, "soft0", and the last Close of the device takes it away again. Each
// context sees its own device and no other, as if it were in a network
// namespace of its own; a Process of the Machine sees them all.
//
// Insmod of soft or sim adds a device for each parameter, which is what follows
// the colon in a device's name ("127.0.0.5?mtu=1024", and "" for none), and
// keeps them until Rmmod. Open takes the names of devices that are there,
// "soft0", also of those that a module of the program's own registered.
func MiniKernel() *emu.Machine { return mini().Machine }

func mini() *miniKernel {
	booted.Do(func() { booted.kernel = boot() })
	return booted.kernel
}

var booted struct {
	sync.Once
	kernel *miniKernel
}

// miniKernel is the process's emulated kernel with its two drivers.
type miniKernel struct {
	*emu.Machine

	mu     sync.Mutex
	loaded map[deviceKind]*emu.Driver // guarded by mu
}

func boot() *miniKernel {
	k := &miniKernel{Machine: emu.New(emu.Options{}), loaded: map[deviceKind]*emu.Driver{}}
	for _, kind := range []deviceKind{kindSoft, kindSim} {
		if err := k.Install(k.module(kind)); err != nil {
			panic(err) // the names are good, and the machine is new
		}
	}
	return k
}

// module is the soft RNIC's driver for one kind of link.
func (k *miniKernel) module(kind deviceKind) emu.Module {
	var held []*backend // for Insmod's parameters
	release := func() (err error) {
		k.set(kind, nil)
		for _, s := range held {
			err = errors.Join(err, devices.release(s))
		}
		held = nil
		return err
	}
	return emu.Module{
		Name:  string(kind),
		Needs: []string{"ib_uverbs"},
		Init: func(this *emu.Driver) error {
			k.set(kind, this)
			for _, param := range this.Params {
				spec, err := parseDevice(moduleDevice(kind, param))
				if err == nil {
					var s *backend
					if s, err = devices.acquire(spec, slog.New(slog.DiscardHandler)); err == nil {
						held = append(held, s)
						continue
					}
				}
				return errors.Join(err, release())
			}
			return nil
		},
		Exit: func(*emu.Driver) error { return release() },
	}
}

// moduleDevice is the device name of a module's parameter.
func moduleDevice(kind deviceKind, param string) string {
	if param == "" || param[0] == '?' {
		return string(kind) + param
	}
	return string(kind) + ":" + param
}

func (k *miniKernel) set(kind deviceKind, d *emu.Driver) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.loaded[kind] = d
}

// driver is the loaded module of a kind, loading it first if needed.
func (k *miniKernel) driver(kind deviceKind) (*emu.Driver, error) {
	for {
		k.mu.Lock()
		d := k.loaded[kind]
		k.mu.Unlock()
		if d != nil {
			return d, nil
		}
		if err := k.Modprobe(string(kind)); err != nil {
			return nil, err
		}
	}
}

// Open opens a device by name; "" is RDMASHIM_DEVICE or "soft".
//
//	soft             soft RNIC on the first free of 127.0.0.1 … 127.0.0.16
//	soft:10.0.0.1    on that address; soft:[::1]
//	sim              private soft RNIC on an in-memory network
//	sim?net=NAME     on an in-memory network shared in this process
//	rxe0, host:rxe0  the real kernel's device
//	soft0            a soft device that this process has open, by its own name
//
// Options follow a question mark: loss=1%, reorder=10%, dup=1%, corrupt=0.1%
// and delay=2ms make the device's sending side misbehave as seed=7 decides;
// mtu=1024 limits its packets; port=N moves it to another UDP port, 0 to any;
// gso=off and gro=off let each packet be a datagram of its own for the system,
// when it is sent or received, where it could take many at a time; pcap=FILE
// writes its packets, both ways and as they are on the wire, to a pcapng file,
// which is complete when the device has stopped. A new FILE is this user's
// alone, and a symbolic link is ELOOP. A FILE that cannot be opened fails Open;
// one that can later not be written does not disturb the device (counter
// pcap_drop, and a warning to the logger). Each device needs a file of its own,
// EBUSY: {device} in FILE stands for the device's name, soft0, and {pid} for
// the process; stats=off keeps the device's counters to the process: without
// it, other processes of the same user read them through a socket below
// $XDG_RUNTIME_DIR or the directory for temporary files (package stats,
// rdmashim top). It costs a goroutine that waits; a socket that cannot be made
// is no error. A sim device has it with stats=on only. A device of the kernel
// knows doorbell=raw instead, which makes posting a little quicker and lets the
// garbage collector wait for it (kshim/host.Options).
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
// With RDMASHIM_TRACE=1 in the environment, every call to the device's kernel
// is printed to standard error, with RDMASHIM_TRACE=FILE appended to a file, as
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
	kernel, exit, err := s.process(fmt.Sprintf("uapi(%d)", os.Getpid()))
	if err != nil {
		release()
		return nil, err
	}
	kernel, untrace, err := trace.Env(kernel, s.name)
	if err != nil {
		exit()
		release()
		return nil, err
	}
	if config.Trace != nil {
		kernel = trace.New(kernel, config.Trace)
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
	statsSocket.add(c)
	return c, nil
}

// acquire gives the device that a name asks for, and what gives it back.
func acquire(spec deviceSpec, log *slog.Logger) (s *backend, release func() error, err error) {
	if spec.kind == kindHost {
		s = devices.named(spec.host)
	} else {
		s, err = devices.acquire(spec, log)
	}
	if s == nil && err == nil {
		if s = moduleBackend(spec); s == nil {
			if s, err = hostBackend(spec); err != nil {
				return nil, nil, err
			}
		}
		devices.countHost(spec.host, 1)
		return s, func() error { devices.countHost(spec.host, -1); return nil }, nil
	}
	return s, func() error {
		err := devices.release(s)
		s.neighbour.wait()
		return err
	}, err
}

// moduleBackend is a device of the mini kernel that a module of the program's
// own registered; nil if there is none of the name.
func moduleBackend(spec deviceSpec) *backend {
	process := func(client string) (kshim.Kernel, func(), error) {
		p, err := mini().ProcessOn(spec.host, client)
		if err != nil {
			return nil, nil, err
		}
		return p, p.Exit, nil
	}
	_, exit, err := process("looking for " + spec.host)
	if err != nil {
		return nil
	}
	exit()
	return &backend{spec: spec, name: spec.host, process: process}
}

// hostBackend is a device of the kernel, which runs by itself.
func hostBackend(spec deviceSpec) (*backend, error) {
	kernel, err := host.New(host.Options{RawDoorbell: spec.rawDoorbell})
	if err != nil {
		return nil, err
	}
	return &backend{
		spec:    spec,
		name:    spec.host,
		process: func(string) (kshim.Kernel, func(), error) { return kernel, func() {}, nil },
	}, nil
}

// explainOpen adds what to do to the error of a kernel device that is not
// there: the name may have been meant otherwise.
func explainOpen(spec deviceSpec, device string, err error) error {
	if spec.kind != kindHost || !errors.Is(err, syscall.ENODEV) && !errors.Is(err, syscall.ENOTSUP) {
		return err
	}
	if guess := meantDevice(device); guess != "" {
		return fmt.Errorf("%w; did you mean %q?", err, guess)
	}
	return fmt.Errorf("%w; soft devices need no kernel device, and 'rdmashim doctor' says what the kernel lacks (%s)", err, deviceForms)
}

// startDevice is the starter of the process's devices.
func startDevice(spec deviceSpec, at netip.AddrPort, name string, log *slog.Logger) (*backend, error) {
	if spec.kind == kindSim {
		return startSim(spec, at, name, log)
	}
	return startSoft(spec, at, name, log)
}

// startSoft starts a soft RNIC on a UDP socket.
func startSoft(spec deviceSpec, at netip.AddrPort, name string, log *slog.Logger) (*backend, error) {
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
func startSim(spec deviceSpec, at netip.AddrPort, name string, log *slog.Logger) (*backend, error) {
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

// capturePackets puts the capture that pcap= asks for on a link, which it
// closes when it cannot.
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

// captureFile is where a device's packets go: programs that open several
// devices by one name, and several processes, write a capture for each. A
// packet between two devices would be twice in one that they share.
func captureFile(pcap, device string) string {
	return strings.NewReplacer("{device}", device, "{pid}", strconv.Itoa(os.Getpid())).Replace(pcap)
}

// startRNIC puts a soft RNIC on a link and adds it to the emulated kernel.
func startRNIC(spec deviceSpec, l link.Link, name string, log *slog.Logger) (*backend, error) {
	addr := netip.AddrPortFrom(l.Caps().Local.Addr().Unmap(), l.Caps().Local.Port())
	l, err := capturePackets(spec, l, name, log)
	if err != nil {
		return nil, err
	}
	faulty := link.WithFaults(l, link.Faults{
		Loss: spec.loss, Reorder: spec.reorder, Dup: spec.dup, Corrupt: spec.corrupt, Delay: spec.delay, Seed: spec.seed,
	})
	driver, err := mini().driver(spec.kind)
	if err != nil {
		faulty.Close()
		return nil, err
	}
	config := rnic.Config{
		Name: name, Link: faulty, MTU: spec.mtu,
		Logger: slog.New(slog.NewMultiHandler(log.Handler(), driver.Logger().With("device", name).Handler())),
	}
	var beside *neighbour
	if spec.role == roleBeside {
		beside = newNeighbour(addr.Addr(), addr.Port(), log)
		config.PeerPort, config.Announce = RoCEPort, beside.announce
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
	return &backend{
		addr:   addr,
		netDev: device.NetDev(),
		mtu:    port.ActiveMTU.Bytes(),
		process: func(client string) (kshim.Kernel, func(), error) {
			p, err := mini().ProcessOn(name, client)
			if err != nil {
				return nil, nil, err
			}
			return p, p.Exit, nil
		},
		redirect:  device.Redirect,
		neighbour: beside,

		stop: func() error {
			err := mini().Unregister(name)
			if errors.Is(err, syscall.ENOENT) {
				return nil // Rmmod was first
			}
			return err
		},
	}, nil
}
