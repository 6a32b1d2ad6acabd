package emu

import (
	"sync"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/driver"
)

// completionQueue is struct ib_ucq_object. The device raises its events through
// it.
type completionQueue struct {
	object
	cq         driver.CQ
	resize     sync.Mutex // one at a time
	completion source
	lost       source

	compReported, asyncReported uint32 // set when it is released
}

var _ driver.CQEvents = (*completionQueue)(nil)

// Completion is one event for the channel (ib_uverbs_comp_handler).
func (q *completionQueue) Completion() { q.completion.post() }

// Error is IB_EVENT_CQ_ERR.
func (q *completionQueue) Error() { q.lost.post() }

func (q *completionQueue) destroy() error { return q.cq.Destroy() }

func (q *completionQueue) released() {
	q.compReported = q.completion.retire()
	q.asyncReported = q.lost.retire()
}

func (q *completionQueue) counts() abi.Struct {
	return &abi.DestroyCQResp{CompEventsReported: q.compReported, AsyncEventsReported: q.asyncReported}
}

// cqInit holds the parameters of a completion queue, of any command.
type cqInit struct {
	userHandle        uint64
	cqe, vector       uint32
	flags             uint32
	completion, async *eventQueue
}

func createCQ(c *call) error {
	req := decode[abi.CreateCQ](c)
	init := &cqInit{userHandle: req.UserHandle, cqe: req.CQE, vector: req.CompVector}
	return c.createCQ(init, req.CompChannel, func(q *completionQueue) error {
		return c.reply(&abi.CreateCQResp{CQHandle: q.handle, CQE: uint32(q.cq.CQE())})
	})
}

// exCreateCQ is uverbs_cmd.c:ib_uverbs_ex_create_cq.
func exCreateCQ(c *call) error {
	req := decode[abi.ExCreateCQ](c)
	if req.CompMask != 0 || req.Reserved != 0 {
		return fail(syscall.EINVAL, "comp_mask is %#x, reserved %#x, not 0", req.CompMask, req.Reserved)
	}
	init := &cqInit{userHandle: req.UserHandle, cqe: req.CQE, vector: req.CompVector, flags: req.Flags}
	return c.createCQ(init, req.CompChannel, func(q *completionQueue) error {
		return c.reply(&abi.ExCreateCQResp{
			Base:           abi.CreateCQResp{CQHandle: q.handle, CQE: uint32(q.cq.CQE())},
			ResponseLength: c.responseLength(),
		})
	})
}

// createCQ does the part that the two commands share (uverbs_cmd.c: create_cq).
// No channel is a negative descriptor.
func (c *call) createCQ(init *cqInit, channel int32, respond func(*completionQueue) error) error {
	f := c.file
	if err := checkVector(init.vector); err != nil {
		return err
	}
	init.async = f.asyncQueue()
	if channel >= 0 {
		ch, err := f.proc.events(channel, f, false)
		if err != nil {
			return err
		}
		init.completion = ch.queue
	}
	return c.makeCQ(init, respond)
}

func checkVector(vector uint32) error {
	if vector >= numCompVectors {
		return fail(syscall.EINVAL, "completion vector %d of %d", vector, numCompVectors)
	}
	return nil
}

// makeCQ has the device make the queue.
func (c *call) makeCQ(init *cqInit, respond func(*completionQueue) error) error {
	f := c.file
	if init.flags != 0 { // rxe_create_cq
		return fail(syscall.EOPNOTSUPP, "flags %#x of completion queues", init.flags)
	}
	if init.cqe == 0 || init.cqe > f.dev.attr.MaxCQE { // rxe_cq_chk_attr
		return fail(syscall.EINVAL, "%d entries, 1 to %d can be had", init.cqe, f.dev.attr.MaxCQE)
	}
	q := &completionQueue{object: object{kind: kindCQ}}
	q.body = q
	q.completion = source{element: init.userHandle, queue: init.completion}
	q.lost = source{element: init.userHandle, event: abi.EventCQErr, queue: init.async}
	u := c.udata(&q.rings)
	return c.add(&q.object, u, func() (err error) {
		q.cq, err = f.dev.CreateCQ(int(init.cqe), u, q.events())
		return err
	}, func() error { return respond(q) })
}

// udata is the driver's part of the call. Rings that it publishes wait in the
// file until they are mapped, and are added to rings.
func (c *call) udata(rings *[]*ringMemory) *driver.Udata {
	f := c.file
	return &driver.Udata{
		Memory: f.host, In: c.hwIn,
		Out: make([]byte, len(c.hwOut)),
		CopyOut: func(addr uint64, b []byte) error {
			to, err := c.user(addr, len(b))
			if err != nil {
				return err
			}
			return c.copy(to, b)
		},
		Mmap: func(ring []byte) uint64 {
			m := &ringMemory{bytes: ring, offset: f.publish(ring), collected: f.host == nil}
			*rings = append(*rings, m)
			f.rings.add(m)
			return m.offset
		},
	}
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
