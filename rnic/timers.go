package rnic

import (
	"container/heap"
	"math"

	"github.com/rdmashim/rdmashim/rnic/engine"
)

const (
	notInHeap = -1
	noAlarm   = engine.Time(math.MaxInt64)
)

// timerHeap orders queue pairs by the time at which the worker must look at
// them. That time may be earlier than the engine's timeout, which each packet
// moves further away: it is then looked up anew, and the heap is not touched
// per packet.
type timerHeap []*QP

func (h timerHeap) Len() int           { return len(h) }
func (h timerHeap) Less(i, j int) bool { return h[i].wakeAt < h[j].wakeAt }
func (h timerHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i]; h[i].slot, h[j].slot = i, j }
func (h *timerHeap) Push(x any)        { q := x.(*QP); q.slot = len(*h); *h = append(*h, q) }

func (h *timerHeap) Pop() any {
	last := len(*h) - 1
	q := (*h)[last]
	(*h)[last], q.slot = nil, notInHeap
	*h = (*h)[:last]
	return q
}

// first is when the first queue pair must be looked at, or noAlarm.
func (h timerHeap) first() engine.Time {
	if len(h) == 0 {
		return noAlarm
	}
	return h[0].wakeAt
}

// wake has q looked at by the time t.
func (h *timerHeap) wake(q *QP, t engine.Time) {
	switch {
	case q.slot == notInHeap:
		q.wakeAt = t
		heap.Push(h, q)
	case t < q.wakeAt:
		q.wakeAt = t
		heap.Fix(h, q.slot)
	}
}

// pop takes the first queue pair out. The heap is not empty.
func (h *timerHeap) pop() *QP { return heap.Pop(h).(*QP) }

// remove takes q out, if it is in.
func (h *timerHeap) remove(q *QP) {
	if q.slot != notInHeap {
		heap.Remove(h, q.slot)
	}
}
