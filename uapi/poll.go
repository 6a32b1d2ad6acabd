package uapi

import (
	"context"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/verbs"
)

// pollBatch is how many completions are taken out of the ring at a time.
const pollBatch = 32

// A program that spins on an empty queue keeps a processor from the soft RNIC,
// which may need it, and in a testing/synctest bubble it keeps time from
// passing. So it yields now and then, and naps once it has spun for long.
const (
	yieldEvery = 256     // empty polls
	spinLong   = 1 << 14 // empty polls in a row, about a millisecond
	napEvery   = 256
	nap        = 20 * time.Microsecond
)

// waitBuffers lend Wait its buffer: the queue's own one stays free for Poll
// while somebody waits.
var waitBuffers = sync.Pool{New: func() any { return new([pollBatch]verbs.WC) }}

// PollCQ takes up to len(wc) completions of the queue pair, its sends' and its
// receives' in the order in which they completed, and returns how many. It does
// not wait: 0 means that none is there. On an error it returns -1, so that a
// loop that spins while it returns 0 ends, and wc[0] has WCGeneralErr, so that
// a program that ignores the error does not find a success. Spinning for more
// than some milliseconds is better left to WaitCQ; a program that does it all
// the same is made to yield the processor for some microseconds now and then.
//
// EINVAL: wc is empty; or no completion can come, because the queue pair was
// never connected, nobody connects it, and nothing is outstanding.
// LocalEndpoint begins a connection; a post that is refused because there is
// none shows that nobody connects it.
//
// If the queue pair shares its completion queue, completions of the others
// come as well (WC.QP tells). If it has two, PollCQ is EINVAL: use Poll.
func (c *Context) PollCQ(qp QP, wc []WC) (int, error) {
	n := 0
	q, cq, err := c.onlyCQ(qp)
	if err == nil {
		n, err = cq.poll(wc)
	}
	if err == nil && n == 0 && !q.connected.Load() {
		err = q.noneCanCome()
	}
	if err != nil {
		return noCompletion(wc, opError("PollCQ", qpName(qp), err))
	}
	return n, nil
}

// noCompletion is what PollCQ, WaitCQ, Poll and Wait return for an error.
func noCompletion(wc []WC, err error) (int, error) {
	if len(wc) > 0 {
		wc[0] = WC{Status: WCGeneralErr}
	}
	return -1, err
}

// Poll is PollCQ for a completion queue.
func (c *Context) Poll(cq CQ, wc []WC) (int, error) {
	q, err := c.queue(cq)
	if err == nil {
		var n int
		if n, err = q.poll(wc); err == nil {
			return n, nil
		}
	}
	return noCompletion(wc, opError("Poll", cqName(cq), err))
}

var errNoRoom = explain(syscall.EINVAL, "wc is empty: there is no room for a completion")

// poll takes completions, and looks after programs that spin.
func (q *completionQueue) poll(wc []WC) (int, error) {
	if len(wc) == 0 {
		return 0, errNoRoom
	}
	q.mu.Lock()
	n, failed, err := q.take(wc)
	if n > 0 || err != nil {
		q.misses = 0
	} else {
		q.misses++
	}
	misses := q.misses
	q.mu.Unlock()
	if failed {
		q.ctx.failed(wc[:n])
	}
	switch {
	case misses > spinLong && misses%napEvery == 0:
		time.Sleep(nap)
	case misses > 0 && misses%yieldEvery == 0:
		runtime.Gosched()
	}
	return n, err
}

// take takes completions in batches, and reports whether some failed. An error
// that follows some completions is left for the next call, which meets it
// again. Preconditions: mu is held.
func (q *completionQueue) take(wc []WC) (total int, failed bool, err error) {
	for total < len(wc) {
		want := min(len(wc)-total, pollBatch)
		n, err := q.verbs.Poll(q.buf[:want])
		if convert(wc[total:], q.buf[:n]) {
			failed = true
		}
		total += n
		if err != nil && total == 0 {
			return 0, false, q.ctx.ended(err, &q.dead, "the completion queue")
		}
		if n < want {
			break
		}
	}
	return total, failed, nil
}

// WaitCQ is PollCQ that waits until at least one completion is there, also on a
// queue pair that is not connected yet. On an error it returns as PollCQ does.
// When ctx ends first, the error Is ctx.Err(), and no completion is lost; when
// the context is closed or the queue pair destroyed meanwhile, it Is
// net.ErrClosed. Any number of goroutines may wait; each completion goes to one
// of them.
//
// Waiting costs a system call and a wake-up more than polling; see PollCQ for
// programs that would rather spin.
func (c *Context) WaitCQ(ctx context.Context, qp QP, wc []WC) (int, error) {
	_, cq, err := c.onlyCQ(qp)
	if err == nil {
		var n int
		if n, err = cq.wait(ctx, wc); err == nil {
			return n, nil
		}
	}
	return noCompletion(wc, opError("WaitCQ", qpName(qp), err))
}

// Wait is WaitCQ for a completion queue.
func (c *Context) Wait(ctx context.Context, cq CQ, wc []WC) (int, error) {
	q, err := c.queue(cq)
	if err == nil {
		var n int
		if n, err = q.wait(ctx, wc); err == nil {
			return n, nil
		}
	}
	return noCompletion(wc, opError("Wait", cqName(cq), err))
}

func (q *completionQueue) wait(ctx context.Context, wc []WC) (int, error) {
	if len(wc) == 0 {
		return 0, errNoRoom
	}
	buf := waitBuffers.Get().(*[pollBatch]verbs.WC)
	defer waitBuffers.Put(buf)
	n, err := q.verbs.Wait(ctx, buf[:min(len(wc), pollBatch)])
	if convert(wc, buf[:n]) {
		q.ctx.failed(wc[:n])
	}
	switch {
	case n == pollBatch && len(wc) > n:
		more, _ := q.poll(wc[n:]) // an error comes again
		return n + more, nil
	case n > 0:
		return n, nil
	case err != nil && (q.ctx.closed.Load() || q.dead.Load()):
		return 0, q.ctx.ended(err, &q.dead, "the completion queue")
	case err != nil && ctx.Err() != nil:
		return 0, ctx.Err()
	}
	return 0, err
}

// convert turns the client's completions into this package's, and reports
// whether some failed. Fields are set one by one: to copy a structure that
// holds a pointer takes three times as long.
func convert(dst []WC, src []verbs.WC) (failed bool) {
	for i := range src {
		s, wc := &src[i], &dst[i]
		wc.WRID = WRID(s.ID)
		wc.Status = Status(s.Status)
		wc.Opcode = Opcode(s.Opcode)
		wc.ByteLen = uint64(s.ByteLen)
		wc.Imm, wc.Flags, wc.SrcQPN = 0, 0, 0
		wc.QP = QP(s.QPN)
		wc.VendorErr = s.VendorErr
		if wc.cause != nil {
			wc.cause = nil
		}
		if s.Status != abi.WCSuccess {
			failed = true
			continue
		}
		// Linux sets the flag on the sender's side too, where there is none.
		if s.Flags&abi.WCWithImm != 0 && (s.Opcode == abi.WCRecv || s.Opcode == abi.WCRecvRDMAWithImm) {
			wc.Flags, wc.Imm = WCWithImm, s.Imm
		}
		if s.Opcode >= abi.WCRecv {
			wc.SrcQPN = s.SrcQP
		}
	}
	return failed
}
