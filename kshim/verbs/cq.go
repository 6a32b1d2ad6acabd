package verbs

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

// CQ is a completion queue. Any number of queue pairs of the context may share
// it.
type CQ struct {
	object
	key uint64       // user handle
	cqe atomic.Int64 // as asked for

	soft     atomic.Int32 // receives that the client itself has to flush, in all queue pairs
	suspects atomic.Int32 // queue pairs that may be in ERR unnoticed

	mu     sync.Mutex // guards the fields below
	q      *compQueue
	qps    map[uint32]*QP  // by generation
	srqs   map[uint32]*SRQ // by generation; their completions name the queue pair by its number
	shared map[uint32]*QP  // by number: those with one of srqs
	last   struct {
		gen uint32
		qp  *QP
	} // the queue pair of the last completion
	err  error // Poll's answer when nothing is left: destroyed, closed, overrun
	idle int   // empty polls since suspects appeared

	events []judged // that a judge asked for

	anyNotice, solicitedNotice notice // the commands that arm it

	armMu sync.Mutex  // held during the arming command
	armed atomic.Bool // an event for any completion will come or is on its way

	wakeMu  sync.Mutex
	waiters []*waiter     // guarded by wakeMu: callers that may block
	spare   *waiter       // guarded by wakeMu: for the next one
	wakes   atomic.Uint32 // how often they were woken
	token   atomic.Bool   // set by Wake, taken by the Wait that returns none
}

// CreateCQ makes a completion queue with room for cqe completions at least. It
// overruns, and then fails for good, when more are outstanding: give it the sum
// of the depths of the queues that it serves. cqe outside the device's limits
// is EINVAL.
func (c *Context) CreateCQ(cqe int) (*CQ, error) {
	cq := &CQ{object: object{ctx: c}, qps: map[uint32]*QP{}, key: c.nextKey.Add(1)}
	cq.cqe.Store(int64(cqe))
	err := c.call("create CQ", fmt.Sprintf("%d entries", cqe), func() (err error) {
		if cqe < 1 || cqe > maxQueued {
			return errArgument
		}
		// In the table first: an event may come before the create command
		// returns.
		c.cqs.Store(cq.key, cq)
		cq.mu.Lock()
		defer cq.mu.Unlock()
		cq.handle, cq.q, err = c.cmd.createCQ(&abi.CreateCQ{UserHandle: cq.key, CQE: uint32(cqe), CompChannel: c.compFD})
		if err != nil {
			c.cqs.Delete(cq.key)
		}
		cq.anyNotice, cq.solicitedNotice = newNotice(cq.handle, 0), newNotice(cq.handle, 1)
		return err
	})
	if err != nil {
		return nil, err
	}
	return cq, nil
}

// Cap is how many completions were asked room for.
func (cq *CQ) Cap() int { return int(cq.cqe.Load()) }

// Destroy frees the queue. EBUSY while queue pairs use it, EBADF the second
// time. Waiters wake with EBADF.
func (cq *CQ) Destroy() error {
	return cq.ctx.call("destroy CQ", "", func() error { return cq.destroy(errDestroyed) })
}

func (cq *CQ) destroy(why error) error {
	return cq.free(func() error { return cq.ctx.cmd.destroyCQ(cq.handle) }, func() { cq.drop(why) })
}

// drop lets go of the client's memory.
func (cq *CQ) drop(why error) {
	cq.ctx.cqs.Delete(cq.key)
	cq.mu.Lock()
	cq.err = why
	if cq.q != nil { // see Resize
		cq.q.close()
	}
	srqs := cq.srqs
	cq.q, cq.srqs, cq.shared = nil, nil, nil
	cq.mu.Unlock()
	for _, s := range srqs {
		s.forget(cq)
	}
	cq.wake()
}

// fail makes Poll answer err once nothing is left.
func (cq *CQ) fail(err error) {
	cq.mu.Lock()
	if cq.err == nil {
		cq.err = err
	}
	cq.mu.Unlock()
	cq.wake()
}

// Poll takes completions out, oldest first, at most len(wc), and returns how
// many. An empty queue is 0 and no error. An error comes only when nothing is
// left to take: EOVERFLOW when completions were lost, EBADF when the queue was
// destroyed, also net.ErrClosed when the context was closed, EIO when the
// device failed or the ring is not sound. wc beyond the count may have been
// written to. A kernel in this process gets its turn when nothing is there: it
// works in the program that polls.
func (cq *CQ) Poll(wc []WC) (int, error) {
	n, err := cq.pollOnce(wc)
	if n == 0 && err == nil && len(wc) > 0 && cq.ctx.progress() {
		return cq.pollOnce(wc)
	}
	return n, err
}

func (cq *CQ) pollOnce(wc []WC) (int, error) {
	cq.mu.Lock()
	n, failed, err := cq.poll(wc)
	ask := n == 0 && failed == nil && cq.suspects.Load() > 0 && cq.spunLong()
	events := cq.events
	cq.events = nil
	cq.mu.Unlock()
	if failed != nil {
		failed.kick()
		if n == 0 && err == nil {
			return cq.pollOnce(wc) // there may be more behind the completion that told of the failure
		}
	}
	if ask {
		cq.questionSuspects()
	}
	cq.raise(events)
	return n, err
}

// patience is how many polls of a spinning program find nothing before the
// kernel is asked, as Wait asks it before it blocks.
const patience = 4096

func (cq *CQ) spunLong() bool {
	cq.idle++
	if cq.idle < patience {
		return false
	}
	cq.idle = 0
	return true
}

// poll also returns a queue pair whose receives the kernel must be reminded of.
func (cq *CQ) poll(wc []WC) (n int, failed *QP, err error) {
	if cq.q == nil {
		return 0, nil, cq.err
	}
	for n < len(wc) && failed == nil {
		ok, err := cq.q.next(&wc[n])
		if err != nil {
			cq.err = err
			break
		}
		if !ok {
			break
		}
		qp, kept, ok := cq.resolve(&wc[n])
		if !ok {
			cq.err = errCorrupt
			continue
		}
		if !kept {
			if qp != nil && wc[n].Status != abi.WCSuccess { // a probe
				qp.rememberFailure(Failure{wc[n], true})
				if qp.learnError() {
					failed = qp
				}
			}
			continue
		}
		if cq.ctx.judge != nil && qp != nil && wc[n].Status == abi.WCSuccess {
			if cq.judge(qp, &wc[n]) {
				failed = qp
			}
		} else if wc[n].Status != abi.WCSuccess && qp != nil && qp.failed(&wc[n]) {
			failed = qp
		}
		n++
	}
	cq.q.release()
	// They become deliverable with a completion of the kernel's, whose event
	// wakes their waiters.
	if cq.soft.Load() > 0 && n < len(wc) && failed == nil {
		n += cq.flush(wc[n:])
	}
	if n > 0 || len(wc) == 0 {
		return n, failed, nil
	}
	return 0, failed, cq.err
}

// resolve turns a completion as the kernel left it into the caller's: kept is
// false for a probe and for one of a queue pair that is gone, but for a shared
// receive; ok is false for a work request that is not outstanding.
func (cq *CQ) resolve(wc *WC) (qp *QP, kept, ok bool) {
	recv, gen, seq := splitID(wc.ID)
	if s := cq.srqs[gen]; recv && s != nil {
		return cq.resolveShared(s, wc, seq)
	}
	if qp = cq.last.qp; qp == nil || cq.last.gen != gen {
		if qp = cq.qps[gen]; qp == nil {
			return nil, false, true
		}
		cq.last.gen, cq.last.qp = gen, qp
	}
	if !recv && qp.sendCQ == cq {
		ok = qp.sendDone(wc, seq)
		probe := !ok && qp.isProbe(seq)
		return qp, !probe, ok || probe
	}
	if recv && qp.recvCQ == cq {
		return qp, true, qp.recvDone(wc, seq)
	}
	return qp, false, false
}

// flush completes receives that were posted in ERR and never reached the
// kernel.
func (cq *CQ) flush(wc []WC) int {
	n := 0
	for _, qp := range cq.qps {
		if n == len(wc) {
			break
		}
		if qp.recvCQ == cq {
			n += qp.flushSoft(wc[n:])
		}
	}
	return n
}

// attach enters a queue pair under a generation, false if another has it.
func (cq *CQ) attach(qp *QP, gen uint32) bool {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	if other := cq.qps[gen]; other != nil && other != qp {
		return false
	}
	cq.qps[gen] = qp
	return true
}

func (cq *CQ) detach(gen uint32) {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	delete(cq.qps, gen)
	cq.last.qp = nil
}

// Arm asks for one event, REQ_NOTIFY_CQ: with solicitedOnly for the next
// completion of a message sent with SendSolicited, or of a failed request, else
// for the next of any. Wait does so by itself; an event wakes all waiters.
func (cq *CQ) Arm(solicitedOnly bool) error {
	return cq.command("arm CQ", "", func() error {
		n := &cq.anyNotice
		if solicitedOnly {
			n = &cq.solicitedNotice
		}
		return n.give(cq.ctx.cmd)
	})
}

// questionSuspects asks the kernel for the state of queue pairs that may have
// gone to ERR without a completion. It reports whether one had.
func (cq *CQ) questionSuspects() bool {
	var list []*QP
	cq.mu.Lock()
	for _, qp := range cq.qps {
		if qp.recvCQ == cq && qp.suspect.Swap(false) {
			cq.suspects.Add(-1)
			list = append(list, qp)
		}
	}
	cq.mu.Unlock()
	found := false
	for _, qp := range list {
		if attr, err := qp.Query(); err == nil && attr.State == abi.QPSErr {
			found = true
		}
	}
	return found
}
