package handle

import "sync/atomic"

// Map maps 24-bit numbers to objects. Lookups take no lock and allocate
// nothing; changes are serialised by the caller. A node that has become empty
// goes: numbers of queue pairs are random, and each would leave half a KiB
// behind.
type Map[T any] struct {
	root node[node[node[node[T]]]]
}

// node is 64 of something, of which used are there.
type node[T any] struct {
	slots [64]atomic.Pointer[T]
	used  int
}

func (n *node[T]) get(i uint32) *T { return n.slots[i%64].Load() }

func (n *node[T]) set(i uint32, v *T) {
	if old := n.slots[i%64].Swap(v); old == nil && v != nil {
		n.used++
	} else if old != nil && v == nil {
		n.used--
	}
}

// need returns the i-th, which is made if it is not there.
func (n *node[T]) need(i uint32) *T {
	if n.get(i) == nil {
		n.set(i, new(T))
	}
	return n.get(i)
}

// Get is the object of a number, or nil.
func (r *Map[T]) Get(n uint32) *T {
	if n>>24 != 0 {
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

// Set stores the object of a number of 24 bits; nil takes it away.
func (r *Map[T]) Set(n uint32, v *T) {
	if v == nil && r.Get(n) == nil {
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
