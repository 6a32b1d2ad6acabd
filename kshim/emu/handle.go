package emu

import (
	"sync"
	"sync/atomic"
	"syscall"
)

// A handle is the index of a slot and, above it, how often that slot was used
// before: a handle of a destroyed object stays invalid until 4096 objects
// later. The kernel gives the lowest free number; clients must not depend on
// either.
const (
	handleIndexBits = 20
	maxHandles      = 1 << handleIndexBits
)

// handleTable is a file's objects, of all kinds together, as the kernel's idr.
// Lookups take no lock.
type handleTable struct {
	slots atomic.Pointer[[]atomic.Pointer[object]] // grown by replacing

	mu   sync.Mutex
	next []uint32 // guarded by mu: per slot, the handle it gives next
	free []uint32 // guarded by mu: slots, the longest unused first
}

// add gives an object its handle and makes it visible.
func (t *handleTable) add(o *object) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.free) == 0 {
		if len(t.next) == maxHandles {
			return fail(syscall.ENOMEM, "%d handles are in use", maxHandles)
		}
		t.grow()
	}
	i := t.free[0]
	t.free = t.free[1:]
	o.handle = t.next[i]
	t.next[i] += maxHandles
	(*t.slots.Load())[i].Store(o)
	return nil
}

// grow doubles the table. A reader that still holds the old one misses only
// handles that were given out after it looked.
func (t *handleTable) grow() {
	n := len(t.next)
	size := min(max(16, 2*n), maxHandles)
	slots := make([]atomic.Pointer[object], size)
	if old := t.slots.Load(); old != nil {
		for i := range *old {
			slots[i].Store((*old)[i].Load())
		}
	}
	t.slots.Store(&slots)
	for i := n; i < size; i++ {
		t.next = append(t.next, uint32(i))
		t.free = append(t.free, uint32(i))
	}
}

func (t *handleTable) get(handle uint32) *object {
	slots := t.slots.Load()
	if slots == nil {
		return nil
	}
	i := int(handle % maxHandles)
	if i >= len(*slots) {
		return nil
	}
	if o := (*slots)[i].Load(); o != nil && o.handle == handle {
		return o
	}
	return nil
}

// remove takes an object out of the table. It returns false when it was not
// there.
func (t *handleTable) remove(o *object) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := o.handle % maxHandles
	if slot := &(*t.slots.Load())[i]; !slot.CompareAndSwap(o, nil) {
		return false
	}
	t.free = append(t.free, i)
	return true
}

func (t *handleTable) empty() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.free) == len(t.next)
}

// all returns the objects of a kind.
func (t *handleTable) all(k kind) []*object {
	slots := t.slots.Load()
	if slots == nil {
		return nil
	}
	var found []*object
	for i := range *slots {
		if o := (*slots)[i].Load(); o != nil && o.kind == k {
			found = append(found, o)
		}
	}
	return found
}
