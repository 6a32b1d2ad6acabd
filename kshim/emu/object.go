package emu

import (
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/driver"
)

// kind is the kind of an object, in the order of destruction.
type kind uint8

const (
	kindQP kind = iota
	kindSRQ
	kindCQ
	kindAH
	kindMW
	kindMR
	kindPD
	numKinds
)

var kindNames = [numKinds]string{kindQP: "qp", kindSRQ: "srq", kindCQ: "cq", kindAH: "ah", kindMW: "mw", kindMR: "mr", kindPD: "pd"}

func (k kind) String() string { return kindNames[k] }

// object is struct ib_uobject: the common part of everything behind a handle.
type object struct {
	kind   kind
	file   *uverbsFile
	handle uint32
	number uint32 // among those of its kind on the device, for netlink
	// users counts the objects that need this one (ib_pd.usecnt, ib_cq.usecnt).
	// It rises only under mu held for reading.
	users atomic.Int32
	// needs are the objects that count this one among their users.
	needs []*object
	// rings are those of a queue, guarded by what guards its size.
	rings []*ringMemory
	// body is the object itself: a *protectionDomain, *region,
	// *addressHandle, *completionQueue, *sharedReceives, *window or *queuePair.
	body body

	mu   sync.RWMutex // held for reading by commands on it, for writing by its end
	dead bool         // guarded by mu
}

// body holds the parts in which the kinds differ.
type body interface {
	// destroy tells the device. It is called once, unless it fails.
	destroy() error
	// released frees what the mini kernel holds for the object. It is called
	// when the object has ended, also where the device refused.
	released()
}

// counting is a body whose events are counted. counts is the response of what
// destroys it.
type counting interface{ counts() abi.Struct }

// acquire finds the object of a handle and holds it against destruction until
// release: rdma_lookup_get_uobject. ENOENT when there is none, EINVAL when it
// is of another kind.
func (f *uverbsFile) acquire(k kind, handle uint32) (*object, error) {
	o := f.handles.get(handle)
	if o == nil {
		return nil, fail(syscall.ENOENT, "%s handle %#x does not exist", k, handle)
	}
	if o.kind != k {
		return nil, fail(syscall.EINVAL, "handle %#x is a %s, not a %s", handle, o.kind, k)
	}
	o.mu.RLock()
	if o.dead {
		o.mu.RUnlock()
		return nil, fail(syscall.ENOENT, "%s handle %#x does not exist", k, handle)
	}
	return o, nil
}

func (o *object) release() {
	o.mu.RUnlock()
	o.file.letGo()
}

// acquireAlone is acquire for a command that changes the handle's meaning
// (uobj_get_write). It waits for the others where the kernel answers EBUSY.
func (f *uverbsFile) acquireAlone(k kind, handle uint32) (*object, error) {
	o, err := f.acquire(k, handle)
	if err != nil {
		return nil, err
	}
	o.mu.RUnlock()
	o.mu.Lock()
	if o.dead {
		o.mu.Unlock()
		return nil, fail(syscall.ENOENT, "%s handle %#x does not exist", k, handle)
	}
	return o, nil
}

func (o *object) releaseAlone() {
	o.mu.Unlock()
	o.file.letGo()
}

// create makes an object known: it gets a handle, and those it needs get a
// user. On an error the caller destroys the body.
func (f *uverbsFile) create(o *object) error {
	for _, n := range o.needs {
		n.users.Add(1)
	}
	o.number = f.dev.numbers[o.kind].Add(1) - 1
	err := f.handles.add(o)
	if err != nil {
		for _, n := range o.needs {
			n.users.Add(-1)
		}
	}
	return err
}

// add is how every create ends: device, which is charged, makes the object, the
// driver's part of the response is copied out, the object gets its handle, and
// the rest is copied out. If that fails, the object is destroyed again, as the
// client never learnt of it. u is nil for an object of which drivers answer
// nothing. Preconditions: the caller has acquired the objects in needs.
func (c *call) add(o *object, u *driver.Udata, device, respond func() error) error {
	f := c.file
	o.file = f
	if err := f.dev.charge(o.kind); err != nil {
		return err
	}
	if err := device(); err != nil {
		f.rings.forget(o.rings)
		f.dev.uncharge(o.kind)
		return err
	}
	var err error
	if u != nil {
		err = c.copy(c.hwOut, u.Out)
	}
	if err == nil {
		err = f.create(o)
	}
	if err != nil {
		f.undo(o)
		return err
	}
	err = respond()
	if err != nil {
		_ = o.end(true)
	}
	return err
}

// undo destroys an object that has no handle yet.
func (f *uverbsFile) undo(o *object) {
	o.mu.Lock() // sysfs may see it
	defer o.mu.Unlock()
	o.dead = true
	if err := o.body.destroy(); err != nil {
		f.proc.machine.log.Warn("emu: the device did not destroy an object",
			"device", f.dev.name, "kind", o.kind.String(), "error", err)
	}
	f.dev.uncharge(o.kind)
	f.rings.forget(o.rings)
	o.body.released()
}

// destroy ends the object of a handle: uobj_perform_destroy. EBUSY while others
// need it.
func (f *uverbsFile) destroy(k kind, handle uint32) (*object, error) {
	o, err := f.find(k, handle)
	if err != nil {
		return nil, err
	}
	return o, o.end(false)
}

// find is acquire for a caller that will destroy the object. It finds an object
// that has outlived its device, too: as in the kernel, its handle stays until
// the client destroys it, with the counts of events that it would have told
// (rdma_core.c: uverbs_destroy_uobject).
func (f *uverbsFile) find(k kind, handle uint32) (*object, error) {
	o, err := f.acquire(k, handle)
	if err == nil {
		o.release()
		return o, nil
	}
	if o := f.handles.get(handle); o != nil && o.kind == k {
		return o, nil
	}
	return nil, err
}

// end destroys the object once. A command does not succeed while the object has
// users, nor when the device refuses; the end of a file takes no such notice.
func (o *object) end(force bool) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.dead {
		if !force && o.file.state.Load() == fileGone && o.file.handles.remove(o) {
			return nil // its device had gone before
		}
		return fail(syscall.ENOENT, "%s handle %#x does not exist", o.kind, o.handle)
	}
	return o.endLocked(force)
}

// endLocked is end. Preconditions: mu is held, and the object is not dead.
func (o *object) endLocked(force bool) error {
	if n := o.users.Load(); n != 0 && !force {
		return fail(syscall.EBUSY, "%s handle %#x is in use by %d others", o.kind, o.handle, n)
	}
	if err := o.body.destroy(); err != nil {
		if !force {
			return err
		}
		o.file.proc.machine.log.Warn("emu: the device did not destroy an object",
			"device", o.file.dev.name, "kind", o.kind.String(), "handle", o.handle, "error", err)
	}
	o.dead = true
	if o.file.state.Load() != fileGone {
		o.file.handles.remove(o)
	}
	o.file.dev.uncharge(o.kind)
	for _, n := range o.needs {
		n.users.Add(-1)
	}
	o.file.rings.forget(o.rings)
	o.body.released()
	return nil
}
