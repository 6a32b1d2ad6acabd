package engine

import (
	"fmt"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

// In SQD the requests that were begun are finished and the others wait; the
// responder goes on as in RTS (IBA 10.3.1.5).

// sends reports whether the requester is at work: in RTS, or draining.
func (q *QP) sends() bool { return q.state == abi.QPSRTS || q.state == abi.QPSSQD }

// Drained reports that the send queue has drained: in SQD, and everything that
// was begun before has completed (IBA 11.6.3.1, "send queue drained").
func (q *QP) Drained() bool { return q.state == abi.QPSSQD && q.sq.head >= q.req.hold }

// startDraining notes where the requests begin that were not begun.
func (q *QP) startDraining() {
	r := &q.req
	r.hold = q.sq.head
	for r.hold < q.sq.tail && q.sq.at(r.hold).first < r.sent {
		r.hold++
	}
}

// checkResize refuses to change the number of outstanding READs and atomics
// while some are: only a drained queue's can be changed.
func (q *QP) checkResize(mask abi.QPAttrMask) error {
	if q.state == abi.QPSSQD && mask&abi.QPMaskMaxQPRdAtomic != 0 && !q.req.asked.empty() {
		return fmt.Errorf("queue pair %v: max_rd_atomic while READs or atomics are outstanding: wait until the send queue has drained: %w",
			q.cfg.QPN, syscall.EINVAL)
	}
	return nil
}

// resize applies what SQD may change of the resources for READs and atomics.
func (q *QP) resize(mask abi.QPAttrMask) {
	if mask&abi.QPMaskMaxQPRdAtomic != 0 {
		q.req.asked.reset(int(q.attr.MaxRdAtomic))
	}
	if mask&abi.QPMaskMaxDestRdAtomic != 0 {
		q.rsp.replay.resize(int(q.attr.MaxDestRdAtomic))
	}
}

// resize changes how many requests are remembered; the newest stay.
func (u *replayQueue) resize(limit int) {
	var kept []replay
	for i := max(0, u.n-limit); i < u.n; i++ {
		kept = append(kept, *u.at(i))
	}
	u.reset(limit)
	for _, r := range kept {
		u.add(r)
		if !r.pending() {
			u.left--
		}
	}
}
