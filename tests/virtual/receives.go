package virtual

import (
	"github.com/rdmashim/rdmashim/rnic/engine"
)

// ReceiveQueue is a queue of receives, as the ring that a driver maps.
type ReceiveQueue struct {
	waiting []engine.ReceiveWR
	taken   int
}

// Push adds a receive.
func (q *ReceiveQueue) Push(wr engine.ReceiveWR) { q.waiting = append(q.waiting, wr) }

// Len is how many receives are waiting.
func (q *ReceiveQueue) Len() int { return len(q.waiting) - q.taken }

// Clear forgets the waiting receives, as a program does that resets its queue
// pair.
func (q *ReceiveQueue) Clear() { q.waiting, q.taken = nil, 0 }

// NextReceive implements engine.ReceiveSource. It fills wr's own list, as a
// driver that reads a ring does.
func (q *ReceiveQueue) NextReceive(wr *engine.ReceiveWR) bool {
	if q.taken == len(q.waiting) {
		return false
	}
	next := &q.waiting[q.taken]
	sge := append(wr.SGE[:0], next.SGE...)
	*wr = *next
	wr.SGE = sge
	q.taken++
	return true
}
