package handle

import (
	"math"
	"sync"
)

// Table hands out handles that are unique in the process: a slot's
// number in the low bits, never 0, and above it a generation that changes
// each time the slot is used again. A handle of a destroyed object, or one of
// another device, therefore finds nothing that is taken for its own.
type Table[T any] struct {
	slots Map[slot[T]]

	mu   sync.Mutex
	next uint32   // slots ever used
	free []uint32 // guarded by mu; taken first in, first out, so that generations last
}

type slot[T any] struct {
	handle int
	object *T
}

// slotBits are the bits of a handle that number the slot: all 24 where int
// has 64 bits, 17 of 31 where it has 32.
func slotBits() uint {
	if math.MaxInt > math.MaxInt32 {
		return 24
	}
	return 17
}

// Put stores the object and returns its handle, or 0 if the table is full. It
// calls assign with the handle before a caller can look the object up.
func (t *Table[T]) Put(object *T, assign func(handle int)) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	bits := slotBits()
	var number uint32
	handle := 0
	// Slots are reused only when a few are free, so that a stale handle stays
	// stale for as many objects as the table is wide.
	const spare = 64
	switch {
	case len(t.free) > spare || len(t.free) > 0 && t.next >= 1<<bits-1:
		number = t.free[0]
		t.free = t.free[1:]
		old := t.slots.Get(number).handle
		handle = old + 1<<bits
		if handle < 0 {
			handle = int(number)
		}
	case t.next < 1<<bits-1:
		t.next++
		number = t.next
		handle = int(number)
	default:
		return 0
	}
	assign(handle)
	t.slots.Set(number, &slot[T]{handle: handle, object: object})
	return handle
}

// Get is the object behind the handle, or nil.
func (t *Table[T]) Get(handle int) *T {
	if handle <= 0 {
		return nil
	}
	found := t.slots.Get(uint32(handle) & (1<<slotBits() - 1))
	if found == nil || found.handle != handle {
		return nil
	}
	return found.object
}

// Remove makes the handle stale. It reports whether this call did it: of two
// that destroy the same object, one wins.
func (t *Table[T]) Remove(handle int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.Get(handle) == nil {
		return false
	}
	number := uint32(handle) & (1<<slotBits() - 1)
	t.slots.Set(number, &slot[T]{handle: handle})
	t.free = append(t.free, number)
	return true
}
