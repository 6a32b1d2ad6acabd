package core

// Layout is the geometry of a ring: Size bytes in quanta of Quantum bytes, both
// powers of two. Positions in it are absolute: they count bytes from the first
// one on and never wrap in 64 bits.
type Layout struct{ Size, Quantum uint64 }

// Offset is where a position lies in the ring.
func (l Layout) Offset(pos uint64) uint64 { return pos & (l.Size - 1) }

// Charge is the room that a chunk of n bytes takes: whole quanta.
func (l Layout) Charge(n uint64) uint64 { return (n + l.Quantum - 1) &^ (l.Quantum - 1) }

// Place is where a chunk of n bytes lies when the one before it ends at pos. A
// chunk never wraps: if it does not fit before the ring's end, it lies behind
// it, and the room before is skipped. Both ends compute it, in both modes, so
// that nothing on the wire marks a skip.
func (l Layout) Place(pos, n uint64) (start, end uint64) {
	if left := l.Size - l.Offset(pos); l.Charge(n) > left {
		pos += left
	}
	return pos, pos + l.Charge(n)
}

// Fill is the length of the chunk that a byte stream of n bytes puts at pos: as
// much as lies before the ring's end, and in the room that is left.
func (l Layout) Fill(pos, room, n uint64) uint64 {
	return min(n, room, l.Size-l.Offset(pos))
}
