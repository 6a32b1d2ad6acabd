package engine

import "github.com/rdmashim/rdmashim/kshim/abi"

// PeerGone tells that the peer's device has gone for certain: the oldest send
// work request fails with WCRetryExcErr at once, and all others are flushed.
// Without one the queue pair moves to ERR. Before RTR it does nothing. Next:
// Completions.
func (q *QP) PeerGone() {
	if q.state != abi.QPSRTR && !q.sends() {
		return
	}
	q.rsp.nak.pending, q.rsp.nak.fatal = false, false
	q.ackSent() // never
	q.rsp.replay.reset(q.rsp.replay.limit)
	if q.sq.len() == 0 {
		q.enterError()
		return
	}
	q.counters.RetryExceeded++
	q.failRequest(q.sq.head, abi.WCRetryExcErr)
}
