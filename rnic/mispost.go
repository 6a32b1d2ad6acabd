package rnic

import (
	"errors"

	"github.com/rdmashim/rdmashim/kshim/ring"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// mispost is one log message about a work request that contradicts itself.
type mispost struct {
	qpn   wire.QPN
	fault error
}

// errExcess is the fault of a request that is carried out all the same.
var errExcess = errors.New("the scatter/gather list is longer than the length, and was cut")

// watchPosted looks at the request that was decoded. The first fault of a queue
// pair is logged. Preconditions: d.mu is held.
func (q *QP) watchPosted(fault error) {
	if fault == nil && q.d.wqe.sqe.Excess {
		fault = errExcess
	}
	if (fault == errExcess || fault == ring.ErrLength || fault == ring.ErrNoList) && !q.misfit {
		q.misfit, q.d.misfits = true, append(q.d.misfits, mispost{q.num, fault})
		q.d.wakeWorker()
	}
}

// tellMispost logs. A program hardly writes into the ring itself: the fault is
// its library's. Preconditions: mu is not held.
func (d *Device) tellMispost(m mispost) {
	if d.log == nil {
		return
	}
	advice := "ibv_wr_set_sge_list of libibverbs takes the first element's length for all: make them equal, or use ibv_post_send"
	if m.fault == ring.ErrNoList {
		advice = "ibv_wr_set_inline_data of libibverbs does not mark inline data: set IBV_SEND_INLINE in wr_flags"
	}
	d.log.Warn("the verbs library posted a send that contradicts itself", "device", d.name, "qp", int(m.qpn), "fault", m.fault, "advice", advice)
}
