package verbs

import (
	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/abi"
)

// SetJudge lets j decide about completions as they are taken, nil nobody. A
// request that it fails was carried out all the same, as were those behind it
// that the kernel had done before the queue pair was moved to ERR. It is called
// before the first queue is made.
func (c *Context) SetJudge(j kshim.Judge) { c.judge = j }

// judged is an event that a judge asks for.
type judged struct {
	event abi.EventType
	qp    *QP
}

// judge changes a completion as the context's judge says, and reports whether
// the queue pair must be moved to ERR. What follows in a work queue with a
// failed request is flushed. Preconditions: mu is held.
func (cq *CQ) judge(qp *QP, wc *WC) (toERR bool) {
	failed := &qp.sq.failed
	if wc.Opcode >= abi.WCRecv {
		failed = &qp.rq.failed
	}
	v := kshim.Verdict{Status: abi.WCWRFlushErr}
	if !failed.Load() {
		v = cq.ctx.judge(wc.Opcode)
		failed.Store(v.Error)
	}
	for _, e := range v.Events {
		cq.events = append(cq.events, judged{e, qp})
	}
	if v.Status != abi.WCSuccess {
		*wc = WC{ID: wc.ID, Status: v.Status, Opcode: min(wc.Opcode, abi.WCRecv), QPN: wc.QPN}
		qp.rememberFailure(Failure{*wc, false})
	}
	if v.Error {
		qp.learnError()
	}
	return v.Error
}

// raise acts on events that a judge asked for as if the kernel had posted them.
func (cq *CQ) raise(events []judged) {
	for _, j := range events {
		ev := abi.AsyncEvent{EventType: j.event}
		switch {
		case j.event == abi.EventDeviceFatal:
		case j.event.Element() == abi.ElementQP:
			ev.Element = j.qp.key
		case j.event.Element() == abi.ElementCQ:
			ev.Element = cq.key
		default:
			ev.Element = 1
		}
		cq.ctx.asyncEvent(&ev)
		cq.ctx.watched(&ev)
	}
}
