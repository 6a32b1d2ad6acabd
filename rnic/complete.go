package rnic

import (
	"encoding/binary"
	"time"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/ring"
	"github.com/rdmashim/rdmashim/rnic/engine"
)

// complete moves the engine's completions to the completion rings. A queue pair
// that fell into the error state first takes the requests that are still in its
// send ring, so that all of them are flushed. Preconditions: d.mu is held.
func (q *QP) complete() {
	d := q.d
	if q.engine.State() == abi.QPSErr {
		q.quiesce() // before their owner hears that they are flushed
		if q.pull(d.now()) {
			d.senders.push(q) // there is more: when it is the worker's turn
			d.wakeWorker()
		}
	}
	for {
		n := q.engine.Completions(d.done)
		for i := range n {
			q.completeOne(&d.done[i])
		}
		if n < len(d.done) {
			return
		}
	}
}

func (q *QP) completeOne(c *engine.Completion) {
	if !c.Recv {
		q.retire()
		if c.Silent {
			return
		}
	}
	wc := ring.WC{ID: c.ID, Status: c.Status, QPN: uint32(q.num)}
	if c.Status == abi.WCSuccess { // else only these count, as with Linux
		wc.Opcode, wc.ByteLen, wc.Flags = c.Opcode, c.ByteLen, c.Flags
		wc.Imm, wc.InvalidateRKey = binary.BigEndian.Uint32(c.Imm[:]), c.Invalidate
	}
	cq := q.sendCQ
	if c.Recv {
		cq = q.recvCQ
		if c.Status == abi.WCSuccess {
			wc.SrcQP = q.attr.DestQPNum
			if c.SrcQPN != 0 { // of a datagram
				wc.SrcQP = uint32(c.SrcQPN)
			}
			wc.Flags |= abi.WCGRH // as with rxe: RoCEv2 packets have an IP header
		}
	}
	if cq.judge != nil && wc.Status == abi.WCSuccess && q.judge(cq, &wc, c.Recv) {
		cq.put(&wc, true)
		q.toError(q.d.now())
		return
	}
	cq.put(&wc, c.Solicited)
}

// failedQueues are the work queues of which a judge has failed a request.
type failedQueues struct{ send, recv bool }

// judge changes a completion as its queue's judge says, and reports whether the
// queue pair goes to ERR behind it. What was done already when it does is
// flushed with the rest of its work queue.
func (q *QP) judge(cq *CQ, wc *ring.WC, recv bool) (toERR bool) {
	failed := &q.failed.send
	if recv {
		failed = &q.failed.recv
	}
	status := abi.WCWRFlushErr
	if !*failed {
		status, toERR = cq.judge.Judge(wc.Opcode, q.ev)
		*failed = toERR
	}
	if status != abi.WCSuccess {
		*wc = ring.WC{ID: wc.ID, Status: status, QPN: wc.QPN}
	}
	return toERR
}

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

// Receives that are posted in ERR are flushed, too (IBA 10.3.1.7). A C program
// posts them and polls without a system call, so that its device learns of
// none: it looks at the receive ring of a queue pair in ERR now and then. Go
// programs need none of this, since their client flushes such receives itself
// (kshim/verbs).

// The receive ring is looked at lookFirst after the last flushed request, and
// then half as often each time, down to once in lookLast.
const (
	lookFirst = engine.Duration(time.Millisecond)
	lookLast  = engine.Duration(256 * time.Millisecond)
)

// watch is when a queue pair's receive ring is looked at in ERR.
type watch struct {
	on      bool        // the program's receives come without a call
	at      engine.Time // 0: never
	gap     engine.Duration
	flushed uint64 // requests, when it was looked at
}

// watchReceives sets the time of the next look; complete was the last one.
// Preconditions, here and below: d.mu is held.
func (q *QP) watchReceives(now engine.Time) {
	w := &q.watch
	if !w.on || q.broken || q.engine.State() != abi.QPSErr {
		w.at = 0
		return
	}
	switch n := q.engine.Counters().Flushed; {
	case w.at == 0 || n != w.flushed:
		w.gap, w.flushed = lookFirst, n
	case now >= w.at:
		w.gap = min(2*w.gap, lookLast)
	default:
		return
	}
	w.at = now + engine.Time(w.gap)
}

// nextTimeout is the engine's, or the next look at the receive ring.
func (q *QP) nextTimeout() (engine.Time, bool) {
	t, ok := q.engine.NextTimeout()
	if at := q.watch.at; at != 0 && (!ok || at < t) {
		return at, true
	}
	return t, ok
}
