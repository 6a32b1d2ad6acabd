package rnic

import (
	"errors"

	"github.com/rdmashim/rdmashim/kshim/ring"
)

// errExcess is the fault of a request that is carried out all the same.
var errExcess = errors.New("the scatter/gather list is longer than the length, and was cut")

// watchPosted looks at the request that was decoded. The first fault of a queue
// pair is logged: a program hardly writes into the ring itself, so that it is
// its library's. Preconditions: d.mu is held.
func (q *QP) watchPosted(fault error) {
	if fault == nil && q.d.wqe.sqe.Excess {
		fault = errExcess
	}
	if q.misfit || fault != errExcess && fault != ring.ErrLength && fault != ring.ErrNoList {
		return
	}
	q.misfit = true
	advice := "ibv_wr_set_sge_list of libibverbs takes the first element's length for all: make them equal, or use ibv_post_send"
	if fault == ring.ErrNoList {
		advice = "ibv_wr_set_inline_data of libibverbs does not mark inline data: set IBV_SEND_INLINE in wr_flags"
	}
	q.d.warn("the verbs library posted a send that contradicts itself", "qp", int(q.num), "fault", fault, "advice", advice)
}
