package uapi

import (
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/verbs"
	"github.com/rdmashim/rdmashim/uapi/internal/device"
	"github.com/rdmashim/rdmashim/uapi/internal/errs"
	"github.com/rdmashim/rdmashim/uapi/internal/handle"
)

// Device is an open device and all that a program made on it. Its methods
// are safe for concurrent use; requests of one queue pair take effect in the
// order in which they were posted.
//
// The device owns what is made on it: Close destroys everything that is left.
type Device struct {
	log     *slog.Logger
	where   *device.Device // what was opened
	kernel  kshim.Kernel
	verbs   *verbs.Context
	pd      *verbs.PD    // the device's own
	release func() error // gives the device back
	chosen  choice       // port, GID, MTU
	dials   bool         // opened to dial an address of this host: no peer knows its own
	limits  limits
	cm      managed

	qps     handle.Map[queuePair] // by number; changed with mu held
	windows handle.Map[window]    // by the upper 24 bits of their keys; changed with mu held
	closed  atomic.Bool           // set with mu held

	mu        sync.Mutex
	regions   map[MR]*region          // guarded by mu
	queues    map[CQ]*completionQueue // guarded by mu
	addresses map[AH]*addressHandle   // guarded by mu
	domains   map[PD]*domain          // guarded by mu
	shared    map[SRQ]*sharedQueue    // guarded by mu
	pairs     map[QP]*queuePair       // guarded by mu
}

// Handles of all objects but queue pairs are unique in the process, so that
// those of another device are never taken for one's own. Queue pair numbers
// are the device's.
var (
	regionHandles  handle.Table[region]
	queueHandles   handle.Table[completionQueue]
	addressHandles handle.Table[addressHandle]
	domainHandles  handle.Table[domain]
	sharedHandles  handle.Table[sharedQueue]
	windowHandles  handle.Table[window]
)

// enter gives an object its handle, which it returns, and an entry in the
// device's own table. If there is no handle left it undoes the object; a closed
// device has.
func enter[H ~int, T any](d *Device, handles *handle.Table[T], own *map[H]*T, object *T, out *H, undo func() error) (H, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed.Load() {
		return -1, errDeviceClosed
	}
	if handles.Put(object, func(h int) { *out = H(h) }) == 0 {
		_ = undo()
		return -1, errs.Explain(syscall.ENOMEM, "the process has no handle left")
	}
	(*own)[*out] = object
	return *out, nil
}

// leave makes a handle stale and reports whether this call did it.
func leave[H ~int, T any](d *Device, handles *handle.Table[T], own *map[H]*T, h H) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(*own, h)
	return handles.Remove(int(h))
}

func removeAll[H ~int, T any](handles *handle.Table[T], own map[H]*T) {
	for h := range own {
		handles.Remove(int(h))
	}
}

// newDevice opens a device through its kernel.
func newDevice(kernel kshim.Kernel, source *device.Device, config OpenConfig) (*Device, error) {
	v, err := verbs.Open(kernel, source.Name)
	if err != nil {
		return nil, err
	}
	v.SetJudge(source.Judge)
	d := &Device{
		log:       config.logger(),
		where:     source,
		kernel:    kernel,
		verbs:     v,
		regions:   make(map[MR]*region),
		queues:    make(map[CQ]*completionQueue),
		addresses: make(map[AH]*addressHandle),
		domains:   make(map[PD]*domain),
		shared:    make(map[SRQ]*sharedQueue),
		pairs:     make(map[QP]*queuePair),
	}
	if err = d.choose(config); err == nil {
		d.pd, err = v.AllocPD()
	}
	if err != nil {
		v.Close()
		return nil, err
	}
	d.log.Debug("device opened", "device", source.OpenName(), "name", source.Name, "port", d.chosen.port,
		"gid_index", d.chosen.gid.Index, "gid", d.chosen.gid.Addr, "why", d.chosen.reason, "mtu", d.chosen.mtu)
	return d, nil
}

// Close destroys everything that was made on the device, in dependency
// order, and closes it. Outstanding requests end without a completion; peers
// notice by their retries. A soft device sends its last acknowledgements again,
// as any may have been lost, and waits for that: two round trips, 4 ms at least
// and 100 ms at most, if it acknowledged something lately over a way that loses
// packets. It wakes waiters with net.ErrClosed; every later call answers an
// error that Is EBADF and net.ErrClosed. Closing again returns nil.
func (d *Device) Close() error {
	d.mu.Lock()
	if d.closed.Load() {
		d.mu.Unlock()
		return nil
	}
	for _, r := range d.regions {
		r.end() // before a DeregMR can say that the device is closed
	}
	d.closed.Store(true)
	pairs, queues, regions := d.pairs, d.queues, d.regions
	d.pairs, d.queues, d.regions = nil, nil, nil
	removeAll(&addressHandles, d.addresses)
	removeAll(&domainHandles, d.domains)
	removeAll(&sharedHandles, d.shared)
	removeAll(&queueHandles, queues)
	removeAll(&regionHandles, regions)
	for _, s := range d.shared {
		s.dead.Store(true)
	}
	d.addresses, d.domains, d.shared = nil, nil, nil
	for qp, q := range pairs {
		d.qps.Set(uint32(qp), nil)
		q.dead.Store(true)
		q.takeWindows()
	}
	for _, q := range queues {
		q.dead.Store(true)
	}
	d.mu.Unlock()

	opened.remove(d)
	err := d.cm.close(pairs) // while there are queue pairs: peers are told
	if e := d.verbs.Close(); err == nil {
		err = e
	}
	if e := d.release(); err == nil {
		err = e
	}
	for _, r := range regions {
		r.drop()
	}
	return opError("Close", "", err)
}

// origin is where in the program an object was made.
type origin [8]uintptr

// caller records the stack above the exported function.
func caller() (o origin) {
	runtime.Callers(3, o[:])
	return o
}

// String is FILE:LINE of the first frame outside this package.
func (o origin) String() string {
	frames := runtime.CallersFrames(o[:])
	for {
		f, more := frames.Next()
		if f.Function != "" && !strings.HasPrefix(f.Function, packagePath) || !more {
			return fmt.Sprintf("%s:%d", f.File, f.Line)
		}
	}
}

const packagePath = "github.com/rdmashim/rdmashim/uapi."

// OpenHandles lists the objects that were made on the device and not destroyed
// yet, with the places in the program that made them: for finding leaks.
// Completion queues that belong to a queue pair are not listed apart.
func (d *Device) OpenHandles() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var list []string
	for mr, r := range d.regions {
		list = append(list, fmt.Sprintf("%s (%d bytes) from %v", mrName(mr), r.info().Length, r.made))
	}
	for cq, q := range d.queues {
		if !q.private {
			list = append(list, fmt.Sprintf("%s (%d entries) from %v", cqName(cq), q.size, q.made))
		}
	}
	for ah, a := range d.addresses {
		list = append(list, fmt.Sprintf("%s from %v", ahName(ah), a.made))
	}
	for pd, p := range d.domains {
		list = append(list, fmt.Sprintf("%s from %v", pdName(pd), p.made))
	}
	for srq, s := range d.shared {
		list = append(list, fmt.Sprintf("%s (%d receives) from %v", srqName(srq), s.config.Depth, s.made))
	}
	for qp, q := range d.pairs {
		list = append(list, fmt.Sprintf("%s from %v", qpName(qp), q.made))
		for mw, w := range q.windows {
			list = append(list, fmt.Sprintf("%s of %s from %v", mwName(mw), qpName(qp), w.made))
		}
	}
	slices.Sort(list)
	return list
}

// region is the memory region behind a handle, or EBADF.
func (d *Device) region(mr MR) (*region, error) {
	if r := regionHandles.Get(int(mr)); r != nil && r.device == d {
		return r, nil
	}
	return nil, d.badHandle("%s is no memory region of this device: zero, deregistered, or another device's", mrName(mr))
}

// pair is the queue pair behind a number, or EBADF.
func (d *Device) pair(qp QP) (*queuePair, error) {
	if qp > 0 && qp <= max24 {
		if q := d.qps.Get(uint32(qp)); q != nil {
			return q, nil
		}
	}
	return nil, d.badHandle("%s is no queue pair of this device: zero, destroyed, or another device's", qpName(qp))
}

// queue is the completion queue behind a handle, or EBADF.
func (d *Device) queue(cq CQ) (*completionQueue, error) {
	if q := queueHandles.Get(int(cq)); q != nil && q.device == d {
		return q, nil
	}
	return nil, d.badHandle("%s is no completion queue of this device: zero, destroyed, or another device's", cqName(cq))
}

func (d *Device) badHandle(format, name string) error {
	if d.closed.Load() {
		return errDeviceClosed
	}
	return errs.Explain(syscall.EBADF, format, name)
}

// ended replaces the error of a call that Close or a destroy overtook by one
// that says so.
func (d *Device) ended(err error, dead *atomic.Bool, what string) error {
	switch {
	case err == nil:
		return nil
	case d.closed.Load():
		return errDeviceClosed
	case dead.Load():
		return kshim.ClosedError(what + " is closed")
	}
	return err
}
