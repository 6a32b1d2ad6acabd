package uapi

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/verbs"
	"github.com/rdmashim/rdmashim/uapi/internal/errs"
)

// waitBuffers lend Wait its buffer, and fewBuffers one for a caller that takes
// few completions, since each waiting goroutine has one: the queue's own one
// stays free for Poll meanwhile.
var (
	waitBuffers = buffers(pollBatch)
	fewBuffers  = buffers(few)
)

const few = 8

func buffers(n int) *sync.Pool {
	return &sync.Pool{New: func() any {
		b := make([]verbs.WC, n)
		return &b
	}}
}

// WaitCQ is PollCQ that waits until at least one completion is there, also on a
// queue pair that is not connected yet. On an error it returns as PollCQ does.
// When ctx ends first, the error Is ctx.Err(), and no completion is lost; when
// the device is closed or the queue pair destroyed meanwhile, it Is
// net.ErrClosed. WakeCQ on its completion queue makes it return 0 and no error.
// Any number of goroutines may wait; each completion goes to one of them.
//
// Waiting costs a system call and a wake-up more than polling; see PollCQ for
// programs that would rather spin. Several waits with one ctx cost less than
// each with a ctx of its own.
func (d *Device) WaitCQ(ctx context.Context, qp QP, wc []WC) (int, error) {
	_, cq, err := d.onlyCQ(qp)
	if err == nil {
		var n int
		if _, n, err = d.wait(ctx, []*completionQueue{cq}, wc); err == nil {
			return n, nil
		}
	}
	return noCompletion(wc, opError("WaitCQ", qpName(qp), err))
}

// WaitQueue is WaitCQ of a completion queue, as PollQueue is PollCQ.
func (d *Device) WaitQueue(ctx context.Context, cq CQ, wc []WC) (int, error) {
	q, err := d.queue(cq)
	if err == nil {
		var n int
		if _, n, err = d.wait(ctx, []*completionQueue{q}, wc); err == nil {
			return n, nil
		}
	}
	return noCompletion(wc, opError("WaitQueue", cqName(cq), err))
}

// WaitAny is WaitQueue for several completion queues of the device. It takes
// completions of each queue in their order; WC.QP and WC.Opcode tell whose they
// are. It begins with another queue each time, so that none is kept waiting by
// a busy one. WakeCQ on any of them makes it return 0 and no error.
//
// An error is returned when no queue has completions, and names its queue:
// those of WaitQueue, and EINVAL for an empty list.
func (d *Device) WaitAny(ctx context.Context, cqs []CQ, wc []WC) (int, error) {
	var room [anyRoom]*completionQueue
	queues, err := room[:0], error(nil)
	if len(cqs) == 0 {
		err = errs.Explain(syscall.EINVAL, "there is no completion queue to wait for")
	}
	for i := 0; i < len(cqs) && err == nil; i++ {
		var q *completionQueue
		q, err = d.queue(cqs[i])
		queues = append(queues, q)
	}
	if err == nil {
		var at, n int
		if at, n, err = d.wait(ctx, queues, wc); err == nil {
			return n, nil
		}
		if ctx.Err() == nil {
			err = fmt.Errorf("%s: %w", cqName(cqs[at]), err)
		}
	}
	return noCompletion(wc, opError("WaitAny", "", err))
}

// anyRoom is how many queues WaitAny takes without allocating.
const anyRoom = 16

// Completions returns an iterator over the completions of a completion queue as
// they come. A queue pair's own queue is QPInfo.SendCQ.
//
//	for wc, err := range d.Completions(ctx, cq) {
//		if err != nil {
//			return err // there will be no more
//		}
//		if err := wc.Err(); err != nil {
//			log.Print(err) // this request failed
//		}
//	}
//
// A request that failed is a completion like any other: wc.Err says so, and err
// is nil. An err is given once, as the last: those of WaitQueue, also when ctx
// has ended while completions are there, and EINTR when WakeCQ was called.
//
// Each completion is taken when the loop asks for it. So none is lost by
// leaving the loop, and several loops and waits may share a queue.
func (d *Device) Completions(ctx context.Context, cq CQ) iter.Seq2[WC, error] {
	return func(yield func(WC, error) bool) { d.completions(ctx, cq, yield) }
}

// completions is a function of its own so that Completions is inlined, and a
// loop costs no allocation.
func (d *Device) completions(ctx context.Context, cq CQ, yield func(WC, error) bool) {
	var wc [1]WC
	q, err := d.queue(cq)
	queues := [1]*completionQueue{q}
	for {
		n := 0
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			_, n, err = d.wait(ctx, queues[:], wc[:])
		}
		if err == nil && n == 0 {
			err = errs.Explain(syscall.EINTR, "WakeCQ was called")
		}
		if err != nil {
			yield(WC{Status: WCGeneralErr}, opError("Completions", cqName(cq), err))
			return
		}
		if !yield(wc[0], nil) {
			return
		}
	}
}

// WaitWR waits for the completion of the request id on a queue pair of which no
// other one completes meanwhile, as where one request is posted at a time:
//
//	id, err := d.Write(qp, uapi.SGE{MR: mr, Length: n}, there)
//	wc, err := d.WaitWR(ctx, qp, id)
//
// Errors are those of WaitCQ, and:
//   - a *WCError when the request failed, with its completion
//   - EBUSY when another request completed first, with that one's completion,
//     which is taken; the caller may look at it and wait on
//   - EINTR when WakeCQ woke it
//
// The error of a ctx that ends says what the device knows of the queue pair:
// its state, and what it counts of a peer without a receive, or silent.
func (d *Device) WaitWR(ctx context.Context, qp QP, id WRID) (WC, error) {
	q, cq, err := d.onlyCQ(qp)
	wc, n := [1]WC{{Status: WCGeneralErr}}, 0
	if err == nil {
		_, n, err = d.wait(ctx, []*completionQueue{cq}, wc[:])
	}
	switch {
	case err != nil && ctx.Err() != nil && err == ctx.Err():
		err = fmt.Errorf("%w: work request %d has not completed: %s", err, int64(id), q.waiting())
	case err != nil:
	case n == 0:
		err = errs.Explain(syscall.EINTR, "work request %d: WakeCQ was called before it completed", int64(id))
	case wc[0].WRID != id || wc[0].QP != qp:
		err = errs.Explain(syscall.EBUSY, "work request %d of %s completed before %d; use WaitCQ where several are outstanding", int64(wc[0].WRID), qpName(wc[0].QP), int64(id))
	case wc[0].Status != WCSuccess:
		return wc[0], wc[0].Err()
	}
	return wc[0], opError("WaitWR", qpName(qp), err)
}

// WakeCQ makes one WaitQueue, WaitCQ or WaitAny on the completion queue return
// 0 and no error: one that blocks, or else the next one that finds no
// completion. A program calls it to have the waiter look at something else than
// completions. Nothing is lost between that look and the waiter's sleep, if the
// program changes that something before it calls WakeCQ. Calls that come before
// a waiter has seen the first count as one. It neither blocks nor allocates.
// QueryQP tells the completion queue of a queue pair that CreateQP made.
//
// EBADF for a bad completion queue.
func (d *Device) WakeCQ(cq CQ) error {
	q, err := d.queue(cq)
	if err != nil {
		return opError("WakeCQ", cqName(cq), err)
	}
	q.verbs.Wake()
	return nil
}

// wait waits for completions of the queues, at least one. It also returns the
// index of the queue that an error is of.
func (d *Device) wait(ctx context.Context, queues []*completionQueue, wc []WC) (at, n int, err error) {
	if len(wc) == 0 {
		return 0, 0, errNoRoom
	}
	var room [anyRoom]*verbs.CQ
	list := room[:0]
	for _, q := range queues {
		list = append(list, q.verbs)
	}
	pool := waitBuffers
	if len(wc) <= few {
		pool = fewBuffers
	}
	buf := pool.Get().(*[]verbs.WC)
	defer pool.Put(buf)
	at, n, err = d.verbs.WaitAny(ctx, list, (*buf)[:min(len(wc), len(*buf))])
	if d.convert(wc, (*buf)[:n]) {
		d.failed(wc[:n])
	}
	q := queues[at]
	switch {
	case n == pollBatch && len(wc) > n && len(queues) == 1:
		more, _ := q.poll(wc[n:]) // an error comes again
		return 0, n + more, nil
	case err != nil && (d.closed.Load() || q.dead.Load()):
		return at, 0, d.ended(err, &q.dead, "the completion queue")
	case err != nil && ctx.Err() != nil:
		return at, 0, ctx.Err()
	}
	return at, n, err
}
