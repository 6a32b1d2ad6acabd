package rnic

import (
	"math"
	"time"

	"github.com/rdmashim/rdmashim/rnic/engine"
)

const (
	notInHeap = -1
	noAlarm   = engine.Time(math.MaxInt64)
)

// timerHeap orders queue pairs by the time at which somebody must look at them.
// That time may be earlier than the engine's timeout, which each packet moves
// further away: it is then looked up anew, and the heap is not touched per packet.
type timerHeap struct{ q []*QP }

// first is when the first queue pair must be looked at, or noAlarm.
func (h *timerHeap) first() engine.Time {
	if len(h.q) == 0 {
		return noAlarm
	}
	return h.q[0].wakeAt
}

// wake has q looked at by the time t.
func (h *timerHeap) wake(q *QP, t engine.Time) {
	if q.slot == notInHeap {
		q.slot = len(h.q)
		h.q = append(h.q, q)
	} else if q.wakeAt <= t {
		return
	}
	q.wakeAt = t
	h.up(q.slot)
}

// pop takes the first queue pair out. The heap is not empty.
func (h *timerHeap) pop() *QP {
	q := h.q[0]
	h.remove(q)
	return q
}

// remove takes q out, if it is in.
func (h *timerHeap) remove(q *QP) {
	i := q.slot
	if i == notInHeap {
		return
	}
	last := len(h.q) - 1
	moved := h.q[last]
	h.q[last] = nil
	h.q = h.q[:last]
	q.slot = notInHeap
	if moved != q {
		h.put(i, moved)
		h.up(i)
		h.down(moved.slot)
	}
}

func (h *timerHeap) put(i int, q *QP) {
	h.q[i] = q
	q.slot = i
}

func (h *timerHeap) up(i int) {
	q := h.q[i]
	for i > 0 {
		parent := (i - 1) / 2
		if h.q[parent].wakeAt <= q.wakeAt {
			break
		}
		h.put(i, h.q[parent])
		i = parent
	}
	h.put(i, q)
}

func (h *timerHeap) down(i int) {
	q := h.q[i]
	for {
		child := 2*i + 1
		if child >= len(h.q) {
			break
		}
		if right := child + 1; right < len(h.q) && h.q[right].wakeAt < h.q[child].wakeAt {
			child = right
		}
		if q.wakeAt <= h.q[child].wakeAt {
			break
		}
		h.put(i, h.q[child])
		i = child
	}
	h.put(i, q)
}

func toDuration(t engine.Time) time.Duration { return time.Duration(t) }
