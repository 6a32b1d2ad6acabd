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
	q.dropStashes()
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
	return flushQueues(buf, &q.sq, q.fail, q.cfg.Receives, &q.rsp.recv, &q.counters)
}

// flushQueues is flush for the queues of any queue pair; r is scratch memory.
func flushQueues(buf []Completion, sq *sendQueue, fail failure, receives ReceiveSource, r *ReceiveWR, counters *Counters) int {
	n := 0
	for ; n < len(buf) && sq.head < sq.tail; n++ {
		w := sq.at(sq.head)
		c := Completion{ID: w.id, Status: abi.WCWRFlushErr, Opcode: w.kind.wc, Solicited: true}
		if fail.status != abi.WCSuccess && fail.index == sq.head {
			c.Status = fail.status
		} else {
			counters.Flushed++
		}
		buf[n] = c
		sq.head++
	}
	for ; n < len(buf) && receives != nil; n++ {
		r.ID, r.SGE, r.Err = 0, r.SGE[:0], nil
		if !receives.NextReceive(r) {
			break
		}
		counters.Flushed++
		buf[n] = Completion{ID: r.ID, Status: abi.WCWRFlushErr, Opcode: abi.WCRecv, Recv: true, Solicited: true}
	}
	return n
}
