package rnic

import (
	"time"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/engine"
)

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
