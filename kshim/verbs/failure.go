package verbs

import "github.com/rdmashim/rdmashim/kshim/abi"

// Failure is the first completion of a queue pair with an error of its own,
// which took it to ERR. The zero value is none.
type Failure struct {
	WC    WC
	Probe bool // a probe's; of WC only the status counts
}

// Failure tells why the queue pair is in ERR, whether the completion that says
// so was polled or waits in its completion queue, where it stays. There is none
// when it was moved to ERR, or refused a request of the peer's.
func (qp *QP) Failure() Failure {
	qp.sq.mu.Lock()
	f := qp.why
	qp.sq.mu.Unlock()
	for _, cq := range []*CQ{qp.sendCQ, qp.recvCQ} {
		if f.WC.Status == abi.WCSuccess {
			f = cq.failureOf(qp)
		}
	}
	return f
}

// rememberFailure remembers a failure if it is the first.
func (qp *QP) rememberFailure(f Failure) {
	if f.WC.Status == abi.WCWRFlushErr {
		return
	}
	qp.sq.mu.Lock()
	defer qp.sq.mu.Unlock()
	if qp.why.WC.Status == abi.WCSuccess {
		qp.why = f
	}
}

// failureOf looks for a queue pair's failure among the completions that wait.
func (cq *CQ) failureOf(qp *QP) Failure {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	if cq.q == nil {
		return Failure{}
	}
	for i := 0; ; i++ {
		var wc WC
		if ok, err := cq.q.peek(i, &wc); !ok || err != nil {
			return Failure{}
		}
		recv, gen, seq := splitID(wc.ID)
		if wc.Status == abi.WCSuccess || wc.Status == abi.WCWRFlushErr || cq.qps[gen] != qp {
			continue
		}
		if !recv && qp.isProbe(seq) {
			return Failure{wc, true}
		}
		q, e := &qp.rq, entry{opcode: abi.WCRecv}
		if !recv {
			q = &qp.sq
		}
		q.mu.Lock()
		id := q.ids[seq&q.mask]
		if !recv {
			e = q.entries[seq&q.mask]
		}
		q.mu.Unlock()
		return Failure{WC: WC{ID: id, Status: wc.Status, Opcode: e.opcode, VendorErr: wc.VendorErr, QPN: qp.num}}
	}
}
