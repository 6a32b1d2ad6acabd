package virtual

import "github.com/rdmashim/rdmashim/rnic/engine"

// event is something that happens at a time. Events of the same time happen in
// the order in which they were made, so that a run is a function of its seed.
type event struct {
	at     engine.Time
	number uint64
	flight *Flight // arrives
	timer  *QP     // may have a timeout
	pump   *QP     // may send
	do     func()  // is called
}

// eventQueue is a binary heap of events by time, then number.
type eventQueue struct {
	heap   []event
	number uint64
}

func (q *eventQueue) less(i, j int) bool {
	a, b := &q.heap[i], &q.heap[j]
	return a.at < b.at || a.at == b.at && a.number < b.number
}

func (q *eventQueue) push(e event) {
	q.number++
	e.number = q.number
	q.heap = append(q.heap, e)
	for i := len(q.heap) - 1; i > 0; {
		up := (i - 1) / 2
		if !q.less(i, up) {
			break
		}
		q.heap[i], q.heap[up] = q.heap[up], q.heap[i]
		i = up
	}
}

// pop takes the first event; there must be one.
func (q *eventQueue) pop() event {
	first := q.heap[0]
	last := len(q.heap) - 1
	q.heap[0] = q.heap[last]
	q.heap[last] = event{}
	q.heap = q.heap[:last]
	for i := 0; ; {
		next := 2*i + 1
		if next >= last {
			break
		}
		if next+1 < last && q.less(next+1, next) {
			next++
		}
		if !q.less(next, i) {
			break
		}
		q.heap[i], q.heap[next] = q.heap[next], q.heap[i]
		i = next
	}
	return first
}
