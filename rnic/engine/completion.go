package engine

import "github.com/rdmashim/rdmashim/kshim/abi"

// completionQueue holds completions until the caller fetches them. It grows to
// the most that are there at once and then stays.
type completionQueue struct {
	list []Completion
	head int
}

func (c *completionQueue) push(x Completion) {
	if c.head == len(c.list) {
		c.list, c.head = c.list[:0], 0
	}
	c.list = append(c.list, x)
}

func (c *completionQueue) pop(buf []Completion) int {
	n := copy(buf, c.list[c.head:])
	c.head += n
	return n
}

func (q *QP) complete(c Completion) {
	q.comps.push(c)
}

// completeSend completes a work request that succeeded.
func (q *QP) completeSend(w *sendWR) {
	c := Completion{
		ID: w.id, Opcode: w.kind.wc,
		Silent: !q.cfg.SigAll && w.flags&abi.SendSignaled == 0,
	}
	switch {
	case w.kind.returnsData():
		c.ByteLen = w.length
		if w.kind.isAtomic() {
			q.counters.Atomics++
		} else {
			q.counters.Reads++
		}
	case w.kind.local():
	case w.kind.wc == abi.WCSend:
		q.counters.Sends++
	default:
		q.counters.Writes++
	}
	q.complete(c)
}

// HasCompletions reports whether Completions would have something besides
// flushed requests.
func (q *QP) HasCompletions() bool { return q.comps.head < len(q.comps.list) }

// Completions moves completions into buf, in the order in which they came
// about, and returns how many; call it again while it fills buf. In ERR it
// flushes the posted requests, send queue first, also those that are posted
// later.
func (q *QP) Completions(buf []Completion) int {
	n := q.comps.pop(buf)
	if q.state == abi.QPSErr {
		n += q.flush(buf[n:])
	}
	return n
}

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
	if x := q.extension; x != nil {
		x.drop()
	}
	if !q.rsp.nak.fatal {
		q.rsp.nak.pending = false
	}
	if q.rsp.holds {
		q.completeReceive(abi.WCWRFlushErr)
	}
}

// flush completes outstanding requests in ERR: the send queue in order,
// signaled or not, then the receives in order (IBA 10.3.1.7).
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
	for ; n < len(buf) && q.nextReceive(); n++ {
		q.counters.Flushed++
		buf[n] = Completion{ID: q.rsp.recv.ID, Status: abi.WCWRFlushErr, Opcode: abi.WCRecv, Recv: true, Solicited: true}
	}
	return n
}

// PeerGone is the news that the peer's device has gone for certain: requests
// that wait for its answers fail now as they would when the retries are used
// up, the oldest with WCRetryExcErr. Without such a request, and where retries
// have no end (a timeout of 0), nothing happens, as when a wire says nothing.
// Next: Completions.
func (q *QP) PeerGone() {
	if q.sends() && q.req.una < q.req.sent && q.patience() > 0 {
		q.exceedRetries()
	}
}

// exceedRetries moves to ERR because the peer has been silent for too long.
func (q *QP) exceedRetries() {
	q.counters.RetryExceeded++
	q.failRequest(q.sq.head, abi.WCRetryExcErr)
}
