package verbs

import (
	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/ring"
)

// Post posts send requests, in order, with one doorbell, and returns how many.
// It stops at the first that cannot be posted: ENOMEM when MaxSendWR are
// outstanding, EINVAL for a queue pair that is not in RTS (in ERR requests are
// accepted and flushed), for too many pieces, too much inline data, a message
// longer than the port's maximum or a request that makes no sense, EBADF after
// Destroy. Neither the requests nor their lists are kept. If the doorbell
// itself fails, the count is that of the requests published, and their fate is
// open.
func (qp *QP) Post(batch []SendWR) (int, error) {
	qp.sq.mu.Lock()
	n, bytes, err := qp.putSends(batch)
	spared := n > 0 && qp.send.spared(n, bytes)
	qp.sq.mu.Unlock()
	if n > 0 && !spared {
		if bellErr := qp.send.bell.ring(); bellErr != nil && err == nil {
			err = qp.fail("doorbell", bellErr)
		}
		if qp.State() == abi.QPSErr {
			qp.kick() // the bell may go unheard
		}
	}
	return n, err
}

func (qp *QP) putSends(batch []SendWR) (n, bytes int, err error) {
	if qp.sq.dead != nil {
		return 0, 0, qp.fail("post send", qp.sq.dead)
	}
	switch qp.State() {
	case abi.QPSReset, abi.QPSInit, abi.QPSRTR:
		// The kernel would refuse the doorbell, but find the request later.
		return 0, 0, qp.sendState
	}
	room, err := qp.send.p.Free()
	if err != nil {
		return 0, 0, qp.fail("post send", err)
	}
	for ; n < len(batch); n++ {
		if qp.sq.full() || n >= room {
			err = qp.sendFull
			break
		}
		wr := &batch[n]
		length, putErr := qp.putSend(n, wr)
		if putErr != nil {
			err = qp.fail("post send", putErr)
			break
		}
		qp.sq.entries[qp.sq.head&qp.sq.mask] = entry{wcOpcodes[wr.Opcode], length}
		bytes += int(length)
		qp.sq.add(wr.ID)
	}
	if n > 0 {
		qp.send.p.Publish(n)
	}
	return n, bytes, err
}

// putSend checks a request and writes it as the i-th of a batch. The lengths of
// its pieces are summed here (ring.EncodeSend), and again only by the device.
func (qp *QP) putSend(i int, wr *SendWR) (length uint32, err error) {
	if len(wr.SGE) > qp.cap.MaxSendSGE {
		return 0, errSGE
	}
	if len(wr.Inline) > qp.cap.MaxInline {
		return 0, errInline
	}
	length, err = ring.EncodeSend(qp.send.p.Slot(i), ringID(false, qp.gen, qp.sq.head), wr)
	if err == nil && length > qp.ctx.maxMsg {
		err = errLength // the slot stays unpublished
	}
	return length, err
}

func (qp *QP) fail(op string, err error) error {
	return &Error{Op: op, Object: qp.name(), Err: err}
}

// sendDone completes the send request seq, and lets go of the unsignaled ones
// before it.
func (qp *QP) sendDone(wc *WC, seq uint32) bool {
	qp.sq.mu.Lock()
	e := qp.sq.entries[seq&qp.sq.mask]
	id, ok := qp.sq.retire(seq)
	qp.sq.mu.Unlock()
	if !ok {
		return false
	}
	// The length is ours too: verbs promises one for receives, READs and
	// atomics only (ibv_poll_cq).
	*wc = WC{ID: id, Status: wc.Status, Opcode: e.opcode, VendorErr: wc.VendorErr, ByteLen: e.length, QPN: qp.num,
		// The kernel says WITH_IMM of a sender's completion, too, and gives no
		// immediate.
		Flags: wc.Flags &^ (abi.WCWithImm | abi.WCWithInvalidate)}
	if wc.Status != abi.WCSuccess {
		wc.ByteLen, wc.Flags = 0, 0
	}
	return true
}

// PostRecv posts receives, in order, and returns how many. It stops at the
// first that cannot be posted: ENOMEM when MaxRecvWR are outstanding, EINVAL in
// RESET or for too many pieces, EBADF after Destroy. In ERR receives are
// accepted and flushed.
func (qp *QP) PostRecv(batch []RecvWR) (int, error) {
	qp.rq.mu.Lock()
	n, wake, err := qp.putRecvs(batch)
	qp.rq.mu.Unlock()
	if wake {
		qp.recvCQ.wake()
	}
	return n, err
}

// putRecvs also tells whether waiters have something to see that no event will
// tell of.
func (qp *QP) putRecvs(batch []RecvWR) (n int, wake bool, err error) {
	if qp.rq.dead != nil {
		return 0, false, qp.fail("post receive", qp.rq.dead)
	}
	if qp.srq != nil {
		return 0, false, qp.fail("post receive", errShared)
	}
	state := qp.State()
	if state == abi.QPSReset {
		return 0, false, qp.recvState
	}
	soft := state == abi.QPSErr
	room, err := qp.recv.p.Free()
	if err != nil {
		return 0, false, qp.fail("post receive", err)
	}
	wasEmpty := qp.rq.outstanding() == 0
	for ; n < len(batch); n++ {
		if qp.rq.full() || !soft && n >= room {
			err = qp.recvFull
			break
		}
		wr := &batch[n]
		if len(wr.SGE) > qp.cap.MaxRecvSGE {
			err = qp.fail("post receive", errSGE)
			break
		}
		if !soft {
			if err = ring.EncodeRecv(qp.recv.p.Slot(n), ringID(true, qp.gen, qp.rq.head), wr); err != nil {
				err = qp.fail("post receive", err)
				break
			}
		}
		qp.rq.add(wr.ID)
	}
	switch {
	case n == 0:
	case soft:
		qp.recvCQ.soft.Add(int32(n))
		wake = true
	default:
		qp.ringEnd = qp.rq.head
		qp.recv.p.Publish(n)
		// Had the kernel gone to ERR before, with no receive to flush, no
		// completion would have told it.
		if wasEmpty && state != abi.QPSInit && !qp.suspect.Swap(true) {
			qp.recvCQ.suspects.Add(1)
			wake = true // a waiter that blocks already must ask
		}
	}
	return n, wake, err
}

// inRing is how many receives the kernel has; softCount how many the client
// itself has to flush. rq.mu is held.
func (qp *QP) inRing() uint32 {
	if n := qp.ringEnd - qp.rq.tail; n <= qp.rq.outstanding() {
		return n
	}
	return 0
}

func (qp *QP) softCount() uint32 { return qp.rq.outstanding() - qp.inRing() }

// recvDone completes the receive seq.
func (qp *QP) recvDone(wc *WC, seq uint32) bool {
	qp.rq.mu.Lock()
	if seq-qp.rq.tail >= qp.inRing() {
		qp.rq.mu.Unlock()
		return false
	}
	id, ok := qp.rq.retire(seq)
	qp.rq.mu.Unlock()
	wc.ID, wc.QPN = id, qp.num
	if wc.Status != abi.WCSuccess {
		*wc = WC{ID: id, Status: wc.Status, Opcode: abi.WCRecv, VendorErr: wc.VendorErr, QPN: qp.num}
	}
	return ok
}

// flushSoft completes receives that never reached the kernel, once it has none
// left.
func (qp *QP) flushSoft(wc []WC) (n int) {
	qp.rq.mu.Lock()
	defer qp.rq.mu.Unlock()
	if qp.inRing() > 0 {
		return 0
	}
	for ; n < len(wc) && qp.rq.outstanding() > 0; n++ {
		id, _ := qp.rq.retire(qp.rq.tail)
		wc[n] = WC{ID: id, Status: abi.WCWRFlushErr, Opcode: abi.WCRecv, QPN: qp.num}
	}
	qp.ringEnd = qp.rq.tail
	qp.recvCQ.soft.Add(-int32(n))
	return n
}
