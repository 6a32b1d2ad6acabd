package uapi

import (
	"runtime"
	"syscall"
	"time"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/verbs"
	"github.com/rdmashim/rdmashim/uapi/internal/errs"
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

// PollCQ takes up to len(wc) completions of the queue pair, its sends' and its
// receives' in the order in which they completed, and returns how many. It does
// not wait: 0 means that none is there. On an error it returns -1, so that a
// loop that spins while it returns 0 ends, and wc[0] has WCGeneralErr, so that
// a program that ignores the error does not find a success. Spinning for more
// than some milliseconds is better left to WaitCQ; a program that does it all
// the same is made to yield the processor for some microseconds now and then.
//
// EINVAL: wc is empty; or no completion can come, because the queue pair is not
// connected, no connection has begun, and nothing is outstanding. LocalEndpoint
// begins a connection; a post that is refused shows that none has begun.
//
// If the queue pair shares its completion queue, completions of the others
// come as well (WC.QP tells). If it has two, PollCQ is EINVAL: PollQueue polls
// each.
func (d *Device) PollCQ(qp QP, wc []WC) (int, error) {
	n := 0
	q, cq, err := d.onlyCQ(qp)
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

// noCompletion is the value that PollCQ, WaitCQ, PollQueue and WaitQueue return
// with an error.
func noCompletion(wc []WC, err error) (int, error) {
	if len(wc) > 0 {
		wc[0] = WC{Status: WCGeneralErr}
	}
	return -1, err
}

// PollQueue is PollCQ of a completion queue, which takes those of all queue
// pairs that complete in it.
func (d *Device) PollQueue(cq CQ, wc []WC) (int, error) {
	q, err := d.queue(cq)
	if err == nil {
		var n int
		if n, err = q.poll(wc); err == nil {
			return n, nil
		}
	}
	return noCompletion(wc, opError("PollQueue", cqName(cq), err))
}

var errNoRoom = errs.Explain(syscall.EINVAL, "wc is empty: there is no room for a completion")

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
		q.device.failed(wc[:n])
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
		if want > len(q.buf) {
			q.buf = make([]verbs.WC, want)
		}
		n, err := q.verbs.Poll(q.buf[:want])
		if q.device.convert(wc[total:], q.buf[:n]) {
			failed = true
		}
		total += n
		if err != nil && total == 0 {
			return 0, false, q.device.ended(err, &q.dead, "the completion queue")
		}
		if n < want {
			break
		}
	}
	return total, failed, nil
}

// convert turns the client's completions into this package's, and reports
// whether some failed. Fields are set one by one: to copy a structure that
// holds a pointer takes three times as long.
func (d *Device) convert(dst []WC, src []verbs.WC) (failed bool) {
	for i := range src {
		s, wc := &src[i], &dst[i]
		wc.WRID = WRID(s.ID)
		wc.Status = Status(s.Status)
		wc.Opcode = Opcode(s.Opcode)
		wc.ByteLen = uint64(s.ByteLen)
		wc.Imm, wc.InvRKey, wc.Flags, wc.SrcQPN = 0, 0, 0, 0
		wc.QP = QP(s.QPN)
		wc.VendorErr = s.VendorErr
		if wc.failure != nil {
			wc.failure = nil
		}
		if s.Status != abi.WCSuccess {
			failed = true
			continue
		}
		// Linux sets the flags on the sender's side too, where there is none.
		switch {
		case s.Opcode != abi.WCRecv && s.Opcode != abi.WCRecvRDMAWithImm:
		case s.Flags&abi.WCWithImm != 0:
			wc.Flags, wc.Imm = WCWithImm, s.Imm
		case s.Flags&abi.WCWithInvalidate != 0:
			wc.Flags, wc.InvRKey = WCWithInv, s.InvalidateRKey
			d.revoked(s.InvalidateRKey)
		}
		if s.Opcode >= abi.WCRecv {
			wc.SrcQPN = s.SrcQP
		}
	}
	return failed
}
