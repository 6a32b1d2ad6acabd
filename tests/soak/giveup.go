package soak

import (
	"fmt"
	"math"

	"github.com/rdmashim/rdmashim/rnic/engine"
)

// wait is how long the end's queue pair believes in a silent peer.
func (e *end) wait() engine.Time {
	return engine.Time(e.plan.retry+1) * max(engine.Time(e.plan.timeout.Nanoseconds()), engine.Time(engine.Millisecond))
}

// deadline is when the queue pair has to have given up a peer that stays
// silent: after retry_cnt+1 timeouts, or one timeout after its own host slept
// through that. No queue pair waits longer, also while it sends again.
func (e *end) deadline() engine.Time {
	fl := &e.flow
	if e.plan.timeout == 0 || fl.una == e.mon.next || fl.waits {
		return math.MaxInt64
	}
	timeout := e.wait() / engine.Time(e.plan.retry+1)
	return max(fl.since+e.wait(), e.slept+timeout) + us
}

// checkRetryExceeded: the queue pair gives up only after (retry_cnt+1) timeouts
// without progress (IBA 9.7.6.1.3, C9-141), and only if its peer is gone or the
// network deserves it.
func (l *lane) checkRetryExceeded(o *op) error {
	e, now := l.from, l.run.world.Now()
	fl := &e.flow
	silent := now - max(fl.progress, o.postedAt)
	switch {
	case e.plan.timeout == 0:
		return fmt.Errorf("%s: %s ended with RETRY_EXC_ERR, but the queue pair has no ACK timeout", l.name, o)
	case now > e.deadline():
		return fmt.Errorf("%s: %s gave up %d ns late", l.name, o, now-e.deadline())
	case silent < e.wait():
		return fmt.Errorf("%s: %s gave up after %d ns without progress, %d timeouts are %d ns", l.name, o, silent, e.plan.retry+1, e.wait())
	case e.peer.failedAt >= 0 || fl.slow > e.wait()/16:
		return nil
	}
	// With few retries the one packet that was lost may be all there is to it.
	quiet, enough := now-max(fl.trouble, o.postedAt), 2*e.wait()
	if e.plan.retry >= 3 {
		quiet, enough = now-max(fl.trouble, fl.progress, o.postedAt), e.wait()/2
	}
	if quiet >= enough {
		return fmt.Errorf("%s: %s gave up although the peer was alive and nothing was lost for %d ns", l.name, o, quiet)
	}
	return nil
}

// checkRNRExceeded: the queue pair gives up after rnr_retry+1 RNR NAKs in a row
// (IBA C9-150), never with 7.
func (l *lane) checkRNRExceeded(o *op) error {
	e := l.from
	switch {
	case e.plan.rnrRetry == 7:
		return fmt.Errorf("%s: %s ended with RNR_RETRY_EXC_ERR, but rnr_retry is 7, for ever", l.name, o)
	case !o.takesReceive():
		return fmt.Errorf("%s: %s ended with RNR_RETRY_EXC_ERR, but takes no receive", l.name, o)
	case e.flow.rnr <= int(e.plan.rnrRetry):
		return fmt.Errorf("%s: %s gave up after %d RNR NAKs, rnr_retry is %d", l.name, o, e.flow.rnr, e.plan.rnrRetry)
	}
	return nil
}
