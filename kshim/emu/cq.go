package emu

import (
	"sync"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

// completionQueue is struct ib_ucq_object. It is what the device raises its
// events through.
type completionQueue struct {
	object
	cq         CQ
	resize     sync.Mutex // one at a time
	offsets    []uint64   // guarded by resize: its ring, should it never be mapped
	completion source
	lost       source

	compReported, asyncReported uint32 // set when it is released
}

var _ CQEvents = (*completionQueue)(nil)

// Completion is one event for the channel (ib_uverbs_comp_handler).
func (q *completionQueue) Completion() { q.completion.post() }

// Error is IB_EVENT_CQ_ERR.
func (q *completionQueue) Error() { q.lost.post() }

func (q *completionQueue) destroy() error { return q.cq.Destroy() }

func (q *completionQueue) released() {
	q.file.rings.forget(q.offsets)
	q.compReported = q.completion.retire()
	q.asyncReported = q.lost.retire()
}

func createCQ(c *call) error {
	f := c.file
	if err := f.hasContext(); err != nil {
		return err
	}
	var req abi.CreateCQ
	if err := req.Parse(c.req); err != nil {
		return err
	}
	if req.CompVector >= numCompVectors {
		return fail(syscall.EINVAL, "completion vector %d of %d", req.CompVector, numCompVectors)
	}
	q := &completionQueue{object: object{kind: kindCQ, file: f}}
	q.body = q
	q.completion = source{element: req.UserHandle}
	q.lost = source{element: req.UserHandle, event: abi.EventCQErr, queue: f.asyncQueue()}
	if req.CompChannel >= 0 {
		ch, err := f.proc.channel(req.CompChannel, f)
		if err != nil {
			return err
		}
		q.completion.queue = ch.queue
	}
	if req.CQE == 0 || req.CQE > f.dev.attr.MaxCQE { // rxe_cq_chk_attr
		return fail(syscall.EINVAL, "%d entries, 1 to %d can be had", req.CQE, f.dev.attr.MaxCQE)
	}
	if err := f.dev.charge(kindCQ); err != nil {
		return err
	}
	u := c.udata(&q.offsets)
	cq, err := f.dev.CreateCQ(int(req.CQE), u, q)
	if err == nil {
		q.cq = cq
		err = c.copyOut(c.hwOut, u.Out)
		if err != nil {
			f.undo(&q.object)
			return err
		}
	}
	if err != nil {
		f.rings.forget(q.offsets)
		f.dev.uncharge(kindCQ)
		return err
	}
	return c.finish(&q.object, func() int {
		(&abi.CreateCQResp{CQHandle: q.handle, CQE: uint32(cq.CQE())}).Put(c.out[:])
		return abi.CreateCQRespSize
	})
}

// udata is the driver's part of the call. Rings that it publishes wait in the
// file until they are mapped; offsets notes which.
func (c *call) udata(offsets *[]uint64) *Udata {
	f := c.file
	return &Udata{
		In:  c.hwIn,
		Out: make([]byte, len(c.hwOut)),
		Mmap: func(ring []byte) uint64 {
			offset := f.proc.machine.publish(len(ring))
			*offsets = append(*offsets, offset)
			f.rings.add(offset, ring)
			return offset
		},
	}
}

func destroyCQ(c *call) error {
	var req abi.DestroyCQ
	if err := req.Parse(c.req); err != nil {
		return err
	}
	o, err := c.file.destroy(kindCQ, req.CQHandle)
	if err != nil {
		return err
	}
	q := o.body.(*completionQueue)
	(&abi.DestroyCQResp{CompEventsReported: q.compReported, AsyncEventsReported: q.asyncReported}).Put(c.out[:])
	return c.respond(abi.DestroyCQRespSize)
}

// reqNotifyCQ arms the queue.
func reqNotifyCQ(c *call) error {
	handle, solicitedOnly := le.Uint32(c.req), le.Uint32(c.req[4:]) != 0
	o, err := c.file.acquire(kindCQ, handle)
	if err != nil {
		return err
	}
	defer o.release()
	return o.body.(*completionQueue).cq.Arm(solicitedOnly)
}
