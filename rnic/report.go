package rnic

import "github.com/rdmashim/rdmashim/kshim/abi"

// report raises the queue pair's asynchronous events (IBA 11.6.3). Completions
// that came before an event are in their queues when it is raised, and the last
// event of a queue pair with a shared receive queue is that it takes no receive
// any more: all that it took have completed (o11-5.2.5). So it is in whatever
// way the queue pair came to ERR. Preconditions: d.mu is held, and complete was
// called.
func (q *QP) report() {
	if q.draining && q.engine.Drained() {
		q.draining = false
		q.ev.Event(abi.EventSQDrained)
	}
	for e, ok := q.engine.TakeEvent(); ok; e, ok = q.engine.TakeEvent() {
		q.ev.Event(e)
	}
	if q.srq == nil {
		return
	}
	if was := q.last; q.engine.State() != abi.QPSErr {
		q.last = false
	} else if q.last = true; !was {
		q.ev.Event(abi.EventQPLastWQEReached)
	}
}
