package uapi

import (
	"github.com/rdmashim/rdmashim/uapi/internal/device"
)

// DefaultDevice is the device that an empty name opens when RDMASHIM_DEVICE is
// not set.
const DefaultDevice = "soft"

// RoCEPort is the UDP port that RoCEv2 is assigned (IBA annex A17.9.2.2).
const RoCEPort = device.RoCEPort

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
//     sending side misbehave as seed=7 decides; fault=drop op=ACK nth=3 does
//     so with single packets (docs/faults.md).
//   - mtu=1024 limits its packets.
//   - port=N moves it to another UDP port, 0 to any.
//   - gso=off and gro=off let each packet be a datagram of its own for the
//     system, when it is sent or received, where it could take many at a time.
//   - shm=off reaches devices of this host by UDP. Without it connections
//     between them go through shared memory, where their processes are of one
//     user and one network namespace (Linux), or share the directory that
//     RDMASHIM_SHM_DIR names (docs/containers.md). With RDMASHIM_SHM=off in the
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
// this process gives another Device on it, with other options
// EINVAL. Every plain "soft" takes the next free address; when port 4791 is
// taken on all, it takes a free port and says so. An address that was asked
// for and is taken is EADDRINUSE. The last Close stops the device.
//
// With RDMASHIM_TRACE=1 in the environment, every call to the device's kernel
// is printed to standard error, with RDMASHIM_TRACE=FILE appended to a file, as
// strace does (kshim/trace).
func Open(name string, config OpenConfig) (*Device, error) {
	name, label := orDefault(name)
	spec, err := device.Parse(name)
	var d *Device
	if err == nil {
		d, err = open(device.Way{Spec: spec}, config)
		err = device.Advise(name, spec, err)
	}
	return d, opError("Open", label, err)
}

// CheckDevice says whether Open understands a device name and its options
// (EINVAL with the reason if not), without opening anything: the device need
// not be there. An empty name is the default, as for Open.
func CheckDevice(name string) error {
	name, label := orDefault(name)
	_, err := device.Parse(name)
	return opError("CheckDevice", label, err)
}

// open opens a device by its kernel.
func open(way device.Way, config OpenConfig) (*Device, error) {
	client, err := device.Open(way.Spec, config.kinds(), config.logger(), config.Trace)
	if err != nil {
		return nil, err
	}
	if way.GIDIndex != nil {
		config.GIDIndex = way.GIDIndex
	}
	kernel := client.Kernel
	if config.wrap != nil {
		kernel = config.wrap(kernel)
	}
	d, err := newDevice(kernel, client.Device, config)
	if err != nil {
		_ = client.Close()
		return nil, err
	}
	d.release, d.dials = client.Close, way.Dials
	opened.add(d)
	return d, nil
}

// chooser opens the devices that package device chooses.
func (c OpenConfig) chooser() *device.Chooser[*Device] {
	return &device.Chooser[*Device]{Kinds: c.kinds(), Open: func(way device.Way) (*Device, error) {
		d, err := open(way, c)
		return d, opError("Open", way.Label, device.Advise(way.Label, way.Spec, err))
	}}
}
