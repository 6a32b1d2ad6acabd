package engine

import "github.com/rdmashim/rdmashim/kshim/abi"

// failure is the send work request that took the queue pair to ERR. All others
// that are outstanding are flushed.
type failure struct {
	index  uint64
	status abi.WCStatus // WCSuccess: no send work request did
}

// failRequest moves to ERR because send work request i failed. Requests before
// it whose answers are missing are flushed: the peer has no more to say.
func (q *QP) failRequest(i uint64, status abi.WCStatus) {
	q.fail = failure{i, status}
	q.enterError()
}

// enterError moves to ERR: nothing is sent or received any more but the
// responder's outstanding answers (IBA 10.3.1.7). The receive of a message that
// is half there is flushed first of all.
func (q *QP) enterError() {
	q.state = abi.QPSErr
	q.req.timer = timer{}
	if !q.rsp.nak.fatal {
		q.rsp.nak.pending = false
	}
	if q.rsp.holds {
		q.completeReceive(abi.WCWRFlushErr, abi.WCRecv)
	}
}

// flush completes what is outstanding in ERR: the send queue in order, signaled
// or not, then the receives in order (IBA 10.3.1.7).
func (q *QP) flush(buf []Completion) int {
	n := 0
	for ; n < len(buf) && q.sq.head < q.sq.tail; n++ {
		w := q.sq.at(q.sq.head)
		c := Completion{ID: w.id, Status: abi.WCWRFlushErr, Opcode: w.kind.wc, Solicited: true}
		if q.fail.status != abi.WCSuccess && q.fail.index == q.sq.head {
			c.Status = q.fail.status
		} else {
			q.counters.Flushed++
		}
		buf[n] = c
		q.sq.head++
	}
	for ; n < len(buf) && q.cfg.Receives != nil; n++ {
		r := &q.rsp.recv
		r.ID, r.SGE, r.Err = 0, r.SGE[:0], nil
		if !q.cfg.Receives.NextReceive(r) {
			break
		}
		q.counters.Flushed++
		buf[n] = Completion{ID: r.ID, Status: abi.WCWRFlushErr, Opcode: abi.WCRecv, Recv: true, Solicited: true}
	}
	return n
}
