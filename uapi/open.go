package uapi

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"strings"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/host"
	"github.com/rdmashim/rdmashim/kshim/trace"
	"github.com/rdmashim/rdmashim/uapi/internal/errs"
)

// Three files put parts together: open.go knows the real kernel and the tracer,
// minikernel.go the emulated kernel, softdevice.go the soft RNIC and its links.
// Everything else here speaks to a kernel through kshim/verbs and does not know
// which one it is.

// devices are the soft devices of this process.
var devices = &registry{}

// Open opens a device by name; "" is RDMASHIM_DEVICE or "soft".
//
//	soft             soft RNIC on the first free of 127.0.0.1 … 127.0.0.16
//	soft:10.0.0.1    on that address; soft:[::1]
//	sim              private soft RNIC on an in-memory network
//	sim?net=NAME     on an in-memory network shared in this process
//	rxe0, host:rxe0  the real kernel's device
//	soft0            a soft device that this process has open, by its own name
//
// Options follow a question mark, apart by &:
//   - loss=1%, reorder=10%, dup=1%, corrupt=0.1% and delay=2ms make the device's
//     sending side misbehave as seed=7 decides.
//   - mtu=1024 limits its packets.
//   - port=N moves it to another UDP port, 0 to any.
//   - gso=off and gro=off let each packet be a datagram of its own for the
//     system, when it is sent or received, where it could take many at a time.
//   - shm=off reaches devices of this host by UDP. Without it connections
//     between them go through shared memory, where their processes are of one
//     user and one network namespace (Linux). With RDMASHIM_SHM=off in the
//     environment, shm=off is the default, and shm=on turns it on.
//   - pcap=FILE writes its packets, both ways and as they are on the wire, to a
//     pcapng file, which is complete when the device has stopped. A new FILE is
//     this user's alone, and a symbolic link is ELOOP. A FILE that cannot be
//     opened fails Open; a later failure to write does not disturb the device
//     (counter pcap_drop, and a warning to the logger). Each device needs a file
//     of its own, EBUSY: {device} in FILE stands for the device's name, soft0,
//     and {pid} for the process.
//   - stats=off keeps the device's counters to the process. Without it, other
//     processes of the same user read them through a socket below
//     $XDG_RUNTIME_DIR or the directory for temporary files (package stats,
//     rdmashim top). It costs a goroutine that waits; a socket that cannot be
//     made is no error. A sim device has it with stats=on only.
//   - extensions=off speaks with soft devices as with all others: queue pairs go
//     back N, and have no private MTU.
//   - name=rxe0 names the device, guid=0200:0000:0000:0001 its node.
//   - bind=off makes a device to be looked at: it neither takes its address nor
//     meets peers.
//
// A device of the kernel knows doorbell=raw instead, which makes posting a
// little quicker and lets the garbage collector wait for it
// (kshim/host.Options).
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
	name, said := orDefault(device)
	c, err := open(name, config)
	return c, opError("Open", said, err)
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

// openBeside opens a soft device on another UDP port of its address, which
// connects as if it had 4791: soft devices reach it.
func openBeside(spec deviceSpec, config OpenConfig) (*Context, error) {
	spec.role = roleBeside
	c, err := openSpec(spec, config)
	return c, opError("Open", softName(spec.addr)+", another UDP port", err)
}

// softAt is the soft device on an address, without options.
func softAt(addr netip.Addr) deviceSpec {
	return deviceSpec{kind: kindSoft, addr: addr, deviceOptions: defaultOptions()}
}

func openSpec(spec deviceSpec, config OpenConfig) (*Context, error) {
	if kinds := deviceKinds(config.Kinds); !kinds.has(spec.kind) {
		return nil, errs.Explain(syscall.EINVAL, "it is of kind %s, and %s was asked for", spec.kind, strings.Join(kinds, " or "))
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

// acquire returns the device that a name asks for, and the function that gives
// it back.
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

// explainOpen adds advice to the error of a kernel device that is not there:
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
