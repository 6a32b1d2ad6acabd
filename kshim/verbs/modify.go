package verbs

import (
	"github.com/rdmashim/rdmashim/kshim/abi"
)

// Modify sets the attributes that mask names; with QPMaskState it moves the
// queue pair to attr.State. The kernel checks the transition and its mask
// (EINVAL). In RESET all that was outstanding is forgotten, without
// completions, and the queue pair can be used again; in ERR everything is
// flushed.
func (qp *QP) Modify(attr *QPAttr, mask abi.QPAttrMask) error {
	return qp.ctx.call("modify", qp.name(), func() error {
		qp.modify.Lock()
		defer qp.modify.Unlock()
		if qp.gone {
			return errDestroyed
		}
		req := modifyRequest(qp.handle, attr, mask)
		switch {
		case mask&abi.QPMaskState == 0:
			return qp.ctx.cmd.modifyQP(&req)
		case attr.State == abi.QPSReset:
			return qp.toReset(&req)
		case attr.State == abi.QPSErr:
			return qp.toError(&req)
		}
		return qp.toState(&req, attr.State)
	})
}

func modifyRequest(handle uint32, attr *QPAttr, mask abi.QPAttrMask) abi.ModifyQP {
	return abi.ModifyQP{
		Dest: attr.AV, AltDest: attr.AltAV, QPHandle: handle, AttrMask: mask, QKey: attr.QKey, RQPSN: attr.RQPSN, SQPSN: attr.SQPSN,
		DestQPNum: attr.DestQPNum, QPAccessFlags: attr.AccessFlags, PkeyIndex: attr.PkeyIndex, AltPkeyIndex: attr.AltPkeyIndex,
		QPState: attr.State, CurQPState: attr.CurState, PathMTU: attr.PathMTU, PathMigState: attr.PathMigState,
		EnSQDAsyncNotify: attr.EnSQDAsyncNotify, MaxRdAtomic: attr.MaxRdAtomic, MaxDestRdAtomic: attr.MaxDestRdAtomic,
		MinRNRTimer: attr.MinRNRTimer, PortNum: attr.PortNum, Timeout: attr.Timeout, RetryCnt: attr.RetryCnt,
		RNRRetry: attr.RNRRetry, AltPortNum: attr.AltPortNum, AltTimeout: attr.AltTimeout,
	}
}

// setState records a state unless the present one is no longer from: a poller
// may have learnt of an error meanwhile.
func (qp *QP) setState(from, to abi.QPState) {
	qp.sq.mu.Lock()
	qp.rq.mu.Lock()
	qp.state.CompareAndSwap(uint32(from), uint32(to))
	qp.rq.mu.Unlock()
	qp.sq.mu.Unlock()
}

func (qp *QP) toState(req *abi.ModifyQP, to abi.QPState) error {
	from := qp.State()
	if err := qp.ctx.cmd.modifyQP(req); err != nil {
		return err
	}
	qp.setState(from, to)
	if from == abi.QPSSQD && to == abi.QPSRTS {
		return qp.resume()
	}
	return nil
}

// resume reminds the kernel of requests that were posted in SQD: rdma_rxe looks
// at the send queue when the bell rings, and not when the queue pair comes back
// to RTS (rxe_qp.c:rxe_qp_from_attr).
func (qp *QP) resume() error {
	qp.sq.mu.Lock()
	waiting := qp.sq.dead == nil && qp.sq.outstanding() > 0
	qp.sq.mu.Unlock()
	if !waiting {
		return nil
	}
	return qp.send.bell.ring()
}

// toReset keeps all callers off the rings, which the kernel empties.
func (qp *QP) toReset(req *abi.ModifyQP) error {
	from := qp.State()
	qp.setState(from, abi.QPSReset)
	if qp.State() != abi.QPSReset { // it had just turned to ERR
		from = abi.QPSErr
		qp.setState(from, abi.QPSReset)
	}
	if err := qp.ctx.cmd.modifyQP(req); err != nil {
		qp.setState(abi.QPSReset, from)
		return err
	}
	qp.detach()
	qp.sq.mu.Lock()
	qp.send.p.Reset()
	qp.sq.mu.Unlock()
	qp.rq.mu.Lock()
	if qp.recv != nil {
		qp.recv.p.Reset()
	}
	qp.rq.mu.Unlock()
	qp.attach()
	return nil
}

func (qp *QP) toError(req *abi.ModifyQP) error {
	sends, receives := qp.posted()
	if err := qp.ctx.cmd.modifyQP(req); err != nil {
		return err
	}
	qp.sq.mu.Lock()
	qp.rq.mu.Lock()
	qp.state.Store(uint32(abi.QPSErr))
	late := qp.sq.head != sends || qp.ringEnd != receives
	qp.rq.mu.Unlock()
	qp.sq.mu.Unlock()
	if late { // posted while the kernel was flushing
		qp.flushRing()
	}
	return nil
}

// posted is how far the rings are filled.
func (qp *QP) posted() (sends, receives uint32) {
	qp.sq.mu.Lock()
	defer qp.sq.mu.Unlock()
	qp.rq.mu.Lock()
	defer qp.rq.mu.Unlock()
	return qp.sq.head, qp.ringEnd
}

// failed is told of a completion with an error, and reports as learnError does.
// A datagram that could not be sent stops its queue pair on rdma_rxe, and only
// its sends as the specification has it (IBA 10.3.1.6, SQE): the kernel is
// asked.
func (qp *QP) failed(wc *WC) (kick bool) {
	qp.rememberFailure(Failure{*wc, false})
	if qp.typ == abi.QPTRC || wc.Opcode >= abi.WCRecv {
		return qp.learnError()
	}
	if !qp.suspect.Swap(true) {
		qp.recvCQ.suspects.Add(1)
		qp.recvCQ.wake() // a waiter that blocks already must ask
	}
	return false
}

// learnError takes note that the kernel has the queue pair in ERR. From now on
// receives stay with the client. It reports whether requests are in the rings
// that may have been put there too late to be flushed: then kick must be
// called, without locks.
func (qp *QP) learnError() (kick bool) {
	qp.sq.mu.Lock()
	defer qp.sq.mu.Unlock()
	qp.rq.mu.Lock()
	defer qp.rq.mu.Unlock()
	switch abi.QPState(qp.state.Load()) {
	case abi.QPSReset, abi.QPSInit, abi.QPSErr:
		return false
	}
	qp.state.Store(uint32(abi.QPSErr))
	return qp.inRing() > 0 || qp.sq.outstanding() > 0
}

// kick has the kernel flush the requests in the rings.
func (qp *QP) kick() {
	qp.modify.Lock()
	defer qp.modify.Unlock()
	if !qp.gone && qp.State() == abi.QPSErr {
		qp.flushRing()
	}
}

// flushRing repeats the move to ERR: rdma_rxe then looks at both queues again
// (rxe_qp.c:rxe_qp_error runs the responder and the completer, which flush). A
// kernel that did not would leave the request outstanding, as without it. A
// doorbell in ERR makes rdma_rxe flush too, but not always: of the requests
// that one run of the completer flushes the requester counts one only
// (rxe_req.c:rxe_requester), and when its place in the ring has fallen behind
// by a whole round it takes the queue for empty.
func (qp *QP) flushRing() {
	_ = qp.ctx.cmd.modifyQP(&abi.ModifyQP{QPHandle: qp.handle, AttrMask: abi.QPMaskState, QPState: abi.QPSErr})
}
