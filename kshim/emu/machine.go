package emu

import (
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/driver"
)

// Machine is one emulated kernel: the devices registered with it, and the
// device files and attributes that show them. It is safe for concurrent use.
type Machine struct {
	log        *slog.Logger
	ringOffset atomic.Uint64                  // where the next ring can be mapped
	kmsg       kmsg                           // the kernel log
	all        namespace                      // of processes that see every device
	changes    atomic.Uint64                  // of the devices
	driven     atomic.Pointer[[]kshim.Driven] // the devices that programs may drive

	mu        sync.Mutex
	devices   map[int]*device   // guarded by mu, as are all; by index
	installed map[string]Module // by name
	modules   []*module         // loaded, in this order
	uverbs    *module           // ib_uverbs, if it is loaded
}

// New returns a machine without devices, whose module ib_uverbs is loaded, as
// on a system with rdma-core.
func New() *Machine {
	m := &Machine{devices: map[int]*device{}, installed: map[string]Module{}}
	m.log = slog.New(&m.kmsg)
	m.all.machine = m
	m.installed[moduleUverbs] = uverbsModule()
	_ = m.Insmod(moduleUverbs) // its init does not fail, nor has it been loaded
	return m
}

// device is a registered Device with the core's state of it, struct ib_device
// and ib_uverbs_device.
type device struct {
	driver.Device
	name   string
	index  int       // among the machine's devices
	minor  int       // N in uverbsN, or noMinor; guarded by Machine.mu
	owner  *module   // the module whose device it is; nil: of none that can be unloaded
	ns     namespace // of processes that see this device only
	attr   abi.QueryDeviceResp
	counts [numKinds]atomic.Int32 // objects that exist, per kind

	numbers  [numKinds]atomic.Uint32 // the next object's, per kind
	contexts atomic.Uint32           // the next context's number

	mu    sync.Mutex
	gone  bool                     // guarded by mu: unregistered
	files map[*uverbsFile]struct{} // guarded by mu: open files
	qps   map[uint32]*queuePair    // guarded by mu: by number, for sysfs
}

// Register adds a device, with its attributes and, if ib_uverbs is loaded, the
// next free /dev/infiniband/uverbsN. EEXIST when the name is taken, EINVAL when
// it is none. Modules register theirs through a Driver; this is for devices
// that no module owns.
func (m *Machine) Register(d driver.Device) error { return m.register(d, nil) }

func (m *Machine) register(d driver.Device, owner *module) error {
	name := d.Name()
	if name == "" || strings.ContainsAny(name, "/\x00") || name == "." || name == ".." {
		return &Error{Op: "register", Path: strconv.Quote(name), Msg: "not a device name", Errno: syscall.EINVAL}
	}
	dev := &device{
		Device: d, name: name, minor: noMinor, owner: owner, attr: d.QueryDevice(),
		files: map[*uverbsFile]struct{}{}, qps: map[uint32]*queuePair{},
	}
	dev.ns = namespace{machine: m, only: dev}
	m.mu.Lock()
	defer m.mu.Unlock()
	if owner != nil && (owner.gone || owner.state == ModuleUnloading) {
		return &Error{Op: "register", Path: name, Msg: "module " + owner.Name + " is being unloaded", Errno: syscall.ENODEV}
	}
	if m.find(name) != nil {
		return &Error{Op: "register", Path: name, Msg: "a device of that name is registered", Errno: syscall.EEXIST}
	}
	if s, ok := d.(driver.EventSource); ok {
		s.SetEvents(dev)
	}
	for m.devices[dev.index] != nil {
		dev.index++
	}
	m.devices[dev.index] = dev
	m.log.Info("infiniband " + name + ": registered")
	if m.uverbs != nil {
		m.addNode(dev)
	}
	m.changed()
	return nil
}

// changed follows each change of the devices. Preconditions: mu is held.
func (m *Machine) changed() {
	var list []kshim.Driven
	for _, d := range m.devices {
		if p, ok := d.Device.(kshim.Driven); ok {
			list = append(list, p)
		}
	}
	m.driven.Store(&list)
	m.changes.Add(1)
}

// Progress lets each device work once, as kshim.Driven's does by a file, for a
// program of which it is not known what it polls.
func (m *Machine) Progress() {
	if list := m.driven.Load(); list != nil {
		for _, d := range *list {
			d.Progress()
		}
	}
}

// Unregister takes a device away, as when its card is pulled out: its paths
// vanish, everything that clients hold on it is destroyed, and their
// asynchronous files give DEVICE_FATAL, then EIO. Their calls are EIO, but for
// those that destroy objects, which succeed once for each, Munmap and Close;
// their mappings stay. Then the device is closed. ENOENT when there is none of
// that name.
func (m *Machine) Unregister(name string) error {
	m.mu.Lock()
	d := m.find(name)
	if d == nil {
		m.mu.Unlock()
		return &Error{Op: "unregister", Path: name, Msg: "no such device", Errno: syscall.ENOENT}
	}
	delete(m.devices, d.index)
	m.changed()
	m.mu.Unlock()
	m.log.Info("infiniband " + name + ": unregistered")

	d.mu.Lock()
	d.gone = true
	files := slices.Collect(maps.Keys(d.files))
	d.mu.Unlock()
	for _, f := range files {
		f.disassociate()
	}
	m.all.unregisterCM(d)
	d.ns.unregisterCM(d)
	return d.Close()
}

// find returns the device of a name. Preconditions: mu is held.
func (m *Machine) find(name string) *device {
	for _, d := range m.devices {
		if d.name == name {
			return d
		}
	}
	return nil
}

// list returns the devices in the order of their indices.
func (m *Machine) list() []*device {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sorted()
}

// sorted is list. Preconditions: mu is held.
func (m *Machine) sorted() []*device {
	all := slices.Collect(maps.Values(m.devices))
	slices.SortFunc(all, func(a, b *device) int { return a.index - b.index })
	return all
}

// portValid is rdma_is_port_valid.
func (d *device) portValid(port uint8) bool { return port >= 1 && port <= d.attr.PhysPortCnt }

// limit is how many objects of a kind the device says it has.
func (d *device) limit(k kind) uint32 {
	switch k {
	case kindPD:
		return d.attr.MaxPD
	case kindMR:
		return d.attr.MaxMR
	case kindMW:
		return d.attr.MaxMW
	case kindCQ:
		return d.attr.MaxCQ
	case kindAH:
		return d.attr.MaxAH
	case kindSRQ:
		return d.attr.MaxSRQ
	default:
		return d.attr.MaxQP
	}
}

// charge counts one more object of a kind. The kernel leaves this to the
// driver. That it is ENOMEM for every kind is a meant difference: see doc.go.
func (d *device) charge(k kind) error {
	if n := d.counts[k].Add(1); uint32(n) > d.limit(k) {
		d.counts[k].Add(-1)
		return fail(syscall.ENOMEM, "the device's %d %ss are in use", d.limit(k), k)
	}
	return nil
}

func (d *device) uncharge(k kind) { d.counts[k].Add(-1) }

// publish gives ring memory an offset at which it can be mapped. Offsets are
// never used twice, and lie apart as pages do.
func (f *file) publish(ring []byte) uint64 {
	if f.host != nil {
		return f.host.Offset(ring)
	}
	const page = 4096
	size := (uint64(len(ring)) + page - 1) &^ (page - 1)
	return f.proc.machine.ringOffset.Add(size+page) - size
}
