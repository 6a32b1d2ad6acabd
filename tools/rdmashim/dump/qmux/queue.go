package qmux

import "slices"

// maxHeld is how many bytes, and maxPieces how many pieces, wait behind holes
// in all directions together.
const (
	maxHeld   = 64 << 20
	maxPieces = 1 << 16
)

// piece is a part of a direction: bytes, or one of the ends. Its positions
// count bytes (TCP) or packets (PSNs).
type piece struct {
	at, end uint64
	data    []byte
	event   event
}

// held is the bytes that wait in all queues.
type held struct{ bytes, pieces int }

// queue puts the pieces of a direction in order, each position once.
//
// Invariant: later is sorted by at, and its first piece begins behind next.
type queue struct {
	held  *held
	next  uint64
	later []piece
}

// position is the place that lies diff from the next one.
func (q *queue) position(diff int) uint64 { return q.next + uint64(int64(diff)) }

// put takes a piece, whose data it copies if the piece must wait. It calls take
// with all that is in order then. The result is false if too much waits.
func (q *queue) put(p piece, take func(piece)) bool {
	if p.at > q.next {
		if q.held.bytes+len(p.data) > maxHeld || q.held.pieces == maxPieces {
			return false
		}
		p.data = slices.Clone(p.data)
		q.held.bytes += len(p.data)
		q.held.pieces++
		i, _ := slices.BinarySearchFunc(q.later, p.at, func(x piece, at uint64) int {
			if x.at <= at {
				return -1
			}
			return 1
		})
		q.later = slices.Insert(q.later, i, p)
		return true
	}
	q.pass(p, take)
	n := 0
	for ; n < len(q.later) && q.later[n].at <= q.next; n++ {
		q.release(q.later[n])
		q.pass(q.later[n], take)
	}
	q.later = slices.Delete(q.later, 0, n)
	return true
}

// pass hands on the new bytes of a piece that begins at next or before.
func (q *queue) pass(p piece, take func(piece)) {
	if p.end <= q.next {
		return
	}
	if known := q.next - p.at; known > 0 { // bytes of TCP; a packet is new or known
		p.data = p.data[min(known, uint64(len(p.data))):]
	}
	q.next = p.end
	take(p)
}

func (q *queue) release(p piece) {
	q.held.bytes -= len(p.data)
	q.held.pieces--
}

// drop forgets the waiting bytes.
func (q *queue) drop() {
	for _, p := range q.later {
		q.release(p)
	}
	q.later = nil
}
