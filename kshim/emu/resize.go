package emu

import (
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

// resizeCQ is uverbs_cmd.c:ib_uverbs_resize_cq and rxe_verbs.c:rxe_resize_cq:
// the queue gets another ring, which the client maps as it did the first. Until
// it has, it must not poll.
func resizeCQ(c *call) error {
	f := c.file
	req := decode[abi.ResizeCQ](c)
	o, err := f.acquire(kindCQ, req.CQHandle)
	if err != nil {
		return err
	}
	defer o.release()
	q := o.body.(*completionQueue)
	if req.CQE == 0 || req.CQE > f.dev.attr.MaxCQE { // rxe_cq_chk_attr
		return fail(syscall.EINVAL, "%d entries, 1 to %d can be had", req.CQE, f.dev.attr.MaxCQE)
	}
	q.resize.Lock()
	defer q.resize.Unlock()
	var rings []*ringMemory
	u := c.udata(&rings)
	if err := q.cq.Resize(int(req.CQE), u); err != nil {
		f.rings.forget(rings)
		return err
	}
	// The old ring can no longer be mapped; where it is, it stays.
	f.rings.forget(q.rings)
	q.rings = rings
	if err := c.copy(c.hwOut, u.Out); err != nil {
		return err
	}
	return c.reply(&abi.ResizeCQResp{CQE: uint32(q.cq.CQE())})
}
