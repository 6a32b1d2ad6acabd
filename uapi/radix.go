package uapi

import (
	"math"
	"sync"
	"sync/atomic"
)

// radix maps 24-bit numbers to objects. Lookups take no lock and allocate
// nothing; changes are serialised by the caller. A node that has become empty
// goes: numbers of queue pairs are random, and each would leave half a KiB
// behind.
type radix[T any] struct {
	root radixNode[radixNode[radixNode[radixNode[T]]]]
}

// radixNode is 64 of something, of which used are there.
type radixNode[T any] struct {
	slots [64]atomic.Pointer[T]
	used  int
}

func (n *radixNode[T]) get(i uint32) *T { return n.slots[i%64].Load() }

func (n *radixNode[T]) set(i uint32, v *T) {
	if old := n.slots[i%64].Swap(v); old == nil && v != nil {
		n.used++
	} else if old != nil && v == nil {
		n.used--
	}
}

// need returns the i-th, which is made if it is not there.
func (n *radixNode[T]) need(i uint32) *T {
	if n.get(i) == nil {
		n.set(i, new(T))
	}
	return n.get(i)
}

func (r *radix[T]) get(n uint32) *T {
	if n > max24 {
		return nil
	}
	upper := r.root.get(n >> 18)
	if upper == nil {
		return nil
	}
	lower := upper.get(n >> 12)
	if lower == nil {
		return nil
	}
	leaf := lower.get(n >> 6)
	if leaf == nil {
		return nil
	}
	return leaf.get(n)
}

func (r *radix[T]) set(n uint32, v *T) {
	if v == nil && r.get(n) == nil {
		return
	}
	upper := r.root.need(n >> 18)
	lower := upper.need(n >> 12)
	leaf := lower.need(n >> 6)
	leaf.set(n, v)
	if leaf.used == 0 {
		lower.set(n>>6, nil)
	}
	if lower.used == 0 {
		upper.set(n>>12, nil)
	}
	if upper.used == 0 {
		r.root.set(n>>18, nil)
	}
}

// handleTable hands out handles that are unique in the process: a slot's
// number in the low bits, never 0, and above it a generation that changes
// each time the slot is used again. A handle of a destroyed object, or one of
// another context, therefore finds nothing that is taken for its own.
type handleTable[T any] struct {
	slots radix[handleSlot[T]]

	mu   sync.Mutex
	next uint32   // slots ever used
	free []uint32 // guarded by mu; taken first in, first out, so that generations last
}

type handleSlot[T any] struct {
	handle int
	object *T
}

// handleBits are the bits of a handle that number the slot: all 24 where int
// has 64 bits, 17 of 31 where it has 32.
func handleBits() uint {
	if math.MaxInt > math.MaxInt32 {
		return 24
	}
	return 17
}

// put stores the object and returns its handle, or 0 if the table is full. The
// object is told its handle before a caller can look it up.
func (t *handleTable[T]) put(object *T, tell func(handle int)) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	bits := handleBits()
	var slot uint32
	handle := 0
	// Slots are reused only when a few are free, so that a stale handle stays
	// stale for as many objects as the table is wide.
	const spare = 64
	switch {
	case len(t.free) > spare || len(t.free) > 0 && t.next >= 1<<bits-1:
		slot = t.free[0]
		t.free = t.free[1:]
		old := t.slots.get(slot).handle
		handle = old + 1<<bits
		if handle < 0 {
			handle = int(slot)
		}
	case t.next < 1<<bits-1:
		t.next++
		slot = t.next
		handle = int(slot)
	default:
		return 0
	}
	tell(handle)
	t.slots.set(slot, &handleSlot[T]{handle: handle, object: object})
	return handle
}

// get is the object behind the handle, or nil.
func (t *handleTable[T]) get(handle int) *T {
	if handle <= 0 {
		return nil
	}
	slot := t.slots.get(uint32(handle) & (1<<handleBits() - 1))
	if slot == nil || slot.handle != handle {
		return nil
	}
	return slot.object
}

// remove makes the handle stale. It reports whether this call did it: of two
// that destroy the same object, one wins.
func (t *handleTable[T]) remove(handle int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.get(handle) == nil {
		return false
	}
	slot := uint32(handle) & (1<<handleBits() - 1)
	t.slots.set(slot, &handleSlot[T]{handle: handle})
	t.free = append(t.free, slot)
	return true
}
