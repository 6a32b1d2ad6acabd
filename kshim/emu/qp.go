package emu

import (
	"sync"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/driver"
)

// queuePair is struct ib_uqp_object. The device raises its events through it.
type queuePair struct {
	object
	qp       driver.QP
	typ      abi.QPType
	reported uint32 // set when it is released

	modify sync.Mutex          // from the look at the state to the transition
	port   uint8               // guarded by modify: set on the way to INIT
	groups map[membership]bool // guarded by modify

	events  sync.Mutex
	element uint64
	queue   *eventQueue
	sources map[abi.EventType]*source // guarded by events
	noMore  bool                      // guarded by events
}

var _ driver.QPEvents = (*queuePair)(nil)

// Event is one event for the asynchronous file (ib_uverbs_qp_event_handler).
func (q *queuePair) Event(t abi.EventType) {
	q.events.Lock()
	defer q.events.Unlock()
	if q.noMore {
		return
	}
	s := q.sources[t]
	if s == nil {
		s = &source{queue: q.queue, element: q.element, event: t}
		if q.sources == nil {
			q.sources = map[abi.EventType]*source{}
		}
		q.sources[t] = s
	}
	s.post()
}

func (q *queuePair) destroy() error { return q.qp.Destroy() }

func (q *queuePair) released() {
	d := q.file.dev
	d.mu.Lock()
	if d.qps[q.qp.Num()] == q {
		delete(d.qps, q.qp.Num())
	}
	d.mu.Unlock()
	q.events.Lock()
	defer q.events.Unlock()
	q.noMore = true
	for _, s := range q.sources {
		q.reported += s.retire()
	}
}

func (q *queuePair) counts() abi.Struct { return &abi.DestroyQPResp{EventsReported: q.reported} }

func createQP(c *call) error {
	req := decode[abi.CreateQP](c)
	return c.createQP(&req, 0, func(resp *abi.CreateQPResp) error {
		return c.reply(resp)
	})
}

// exCreateQP is uverbs_cmd.c:ib_uverbs_ex_create_qp.
func exCreateQP(c *call) error {
	req := decode[abi.ExCreateQP](c)
	const indTable = 1 // IB_UVERBS_CREATE_QP_MASK_IND_TABLE
	if req.CompMask&^indTable != 0 || req.Reserved != 0 {
		return fail(syscall.EINVAL, "comp_mask is %#x, reserved %#x", req.CompMask, req.Reserved)
	}
	if req.CompMask&indTable != 0 {
		return fail(syscall.EINVAL, "indirection table handle %#x: the device has none", req.RWQIndTblHandle)
	}
	plain := &abi.CreateQP{
		UserHandle: req.UserHandle, PDHandle: req.PDHandle, SendCQHandle: req.SendCQHandle, RecvCQHandle: req.RecvCQHandle,
		SRQHandle: req.SRQHandle, MaxSendWR: req.MaxSendWR, MaxRecvWR: req.MaxRecvWR, MaxSendSGE: req.MaxSendSGE,
		MaxRecvSGE: req.MaxRecvSGE, MaxInlineData: req.MaxInlineData, SQSigAll: req.SQSigAll, QPType: req.QPType, IsSRQ: req.IsSRQ,
	}
	return c.createQP(plain, req.CreateFlags, func(resp *abi.CreateQPResp) error {
		return c.reply(&abi.ExCreateQPResp{Base: *resp, ResponseLength: c.responseLength()})
	})
}

// createQP does the part that the two commands share (uverbs_cmd.c: create_qp).
func (c *call) createQP(req *abi.CreateQP, flags uint32, respond func(*abi.CreateQPResp) error) error {
	f := c.file
	if err := checkQPType(req.QPType); err != nil {
		return err
	}
	var srq *object
	if req.IsSRQ != 0 {
		var err error
		if srq, err = f.acquire(kindSRQ, req.SRQHandle); err != nil {
			return err
		}
		defer srq.release()
	}
	scq, rcq, err := f.acquireCQs(req.SendCQHandle, req.RecvCQHandle)
	if err != nil {
		return err
	}
	defer scq.release()
	if rcq != scq {
		defer rcq.release()
	}
	pd, err := f.acquire(kindPD, req.PDHandle)
	if err != nil {
		return err
	}
	defer pd.release()
	return c.makeQP(&qpInit{
		pd: pd, scq: scq, rcq: rcq, srq: srq, userHandle: req.UserHandle, typ: req.QPType, flags: flags, sigAll: req.SQSigAll != 0,
		cap: driver.QPCap{
			MaxSendWR: req.MaxSendWR, MaxRecvWR: req.MaxRecvWR,
			MaxSendSGE: req.MaxSendSGE, MaxRecvSGE: req.MaxRecvSGE, MaxInline: req.MaxInlineData,
		},
		async: f.asyncQueue(),
	}, respond)
}

// acquireCQs acquires two queues, which may be one, the lower handle first. In
// another order, two callers that each hold what the other wants, and two
// others that wait to destroy it, would wait for ever.
func (f *uverbsFile) acquireCQs(send, recv uint32) (scq, rcq *object, err error) {
	first, err := f.acquire(kindCQ, min(send, recv))
	if err != nil {
		return nil, nil, err
	}
	second := first
	if send != recv {
		if second, err = f.acquire(kindCQ, max(send, recv)); err != nil {
			first.release()
			return nil, nil, err
		}
	}
	if send <= recv {
		return first, second, nil
	}
	return second, first, nil
}

// checkQPType refuses types as the kernel does before it looks further. Raw
// packets are refused as rdma_rxe refuses root: others get EPERM from Linux.
func checkQPType(t abi.QPType) error {
	switch t {
	case abi.QPTRC, abi.QPTUC, abi.QPTUD:
		return nil
	case abi.QPTRawPacket, abi.QPTXRCIni, abi.QPTXRCTgt, abi.QPTDriver:
		return fail(syscall.EOPNOTSUPP, "the device has no %v queue pairs", t)
	default:
		return fail(syscall.EINVAL, "%v is not a queue pair type", t)
	}
}

// qpInit holds the parameters of a queue pair, of any command. The objects are
// held.
type qpInit struct {
	pd, scq, rcq *object
	srq          *object // nil: it has receives of its own
	userHandle   uint64
	typ          abi.QPType
	flags        uint32 // enum ib_uverbs_qp_create_flags
	sigAll       bool
	cap          driver.QPCap
	async        *eventQueue
}

// checkQP refuses the parameters that create_qp and rxe_qp_chk_cap refuse.
func (d *device) checkQP(init *qpInit) error {
	recvWR, recvSGE := init.cap.MaxRecvWR, init.cap.MaxRecvSGE
	if init.srq != nil { // rxe_qp_chk_cap
		recvWR, recvSGE = 0, 0
	}
	const known = 1<<1 | 1<<2 | 1<<3 | 1<<4 | 1<<8 | 1<<9 | 1<<10 | 1<<11 // uverbs_cmd.c: create_qp
	switch {
	case init.flags&^known != 0:
		return fail(syscall.EINVAL, "create flags %#x are unknown in part", init.flags)
	case init.flags != 0: // rxe_create_qp
		return fail(syscall.EOPNOTSUPP, "create flags %#x", init.flags)
	case init.cap.MaxSendWR > d.attr.MaxQPWR, recvWR > d.attr.MaxQPWR:
		return fail(syscall.EINVAL, "%d and %d work requests, the device has %d", init.cap.MaxSendWR, recvWR, d.attr.MaxQPWR)
	case init.cap.MaxSendSGE > d.attr.MaxSGE, recvSGE > d.attr.MaxSGE:
		return fail(syscall.EINVAL, "%d and %d scatter entries, the device has %d", init.cap.MaxSendSGE, recvSGE, d.attr.MaxSGE)
	}
	return nil
}

// makeQP has the device make the queue pair.
func (c *call) makeQP(init *qpInit, respond func(*abi.CreateQPResp) error) error {
	f := c.file
	if err := f.dev.checkQP(init); err != nil {
		return err
	}
	q := &queuePair{
		object:  object{kind: kindQP, needs: []*object{init.pd, init.scq, init.rcq}},
		typ:     init.typ,
		element: init.userHandle,
		queue:   init.async,
	}
	q.body = q
	attr := &driver.QPInit{
		PD:     init.pd.body.(*protectionDomain).pd,
		SendCQ: init.scq.body.(*completionQueue).cq,
		RecvCQ: init.rcq.body.(*completionQueue).cq,
		Type:   init.typ, SigAll: init.sigAll, Cap: init.cap,
	}
	if init.srq != nil {
		attr.SRQ = init.srq.body.(*sharedReceives).srq
		q.needs = append(q.needs, init.srq)
	}
	u := c.udata(&q.rings)
	return c.add(&q.object, u, func() (err error) {
		if q.qp, err = f.dev.CreateQP(attr, u, q); err != nil {
			return err
		}
		f.dev.mu.Lock()
		defer f.dev.mu.Unlock()
		f.dev.qps[q.qp.Num()] = q
		return nil
	}, func() error {
		return respond(&abi.CreateQPResp{
			QPHandle: q.handle, QPN: q.qp.Num(),
			MaxSendWR: attr.Cap.MaxSendWR, MaxRecvWR: attr.Cap.MaxRecvWR,
			MaxSendSGE: attr.Cap.MaxSendSGE, MaxRecvSGE: attr.Cap.MaxRecvSGE,
			MaxInlineData: attr.Cap.MaxInline,
		})
	})
}

func queryQP(c *call) error {
	req := decode[abi.QueryQP](c)
	o, err := c.file.acquire(kindQP, req.QPHandle)
	if err != nil {
		return err
	}
	defer o.release()
	attr, err := o.body.(*queuePair).qp.Query() // attr_mask is a hint; all is answered
	if err != nil {
		return err
	}
	return c.reply(&attr)
}

// postSend is the doorbell: the work requests lie in the ring, the command
// carries none. It allocates nothing.
func postSend(c *call) error {
	var req abi.PostSend
	if err := req.Parse(c.req); err != nil {
		return err
	}
	rest := uint64(len(c.req) - abi.PostSendSize)
	list, sges := uint64(req.WRCount)*uint64(req.WQESize), uint64(req.SGECount)*16
	switch {
	case req.WQESize < abi.SendWRSize:
		return fail(syscall.EINVAL, "work request of %d bytes, at least %d", req.WQESize, abi.SendWRSize)
	case list > rest, sges > rest-list:
		return fail(syscall.ENOSPC, "%d work requests and %d scatter entries in %d bytes", req.WRCount, req.SGECount, rest)
	case req.WRCount != 0 || req.SGECount != 0:
		// A meant difference: see doc.go.
		return fail(syscall.EINVAL, "work requests are posted in the ring, not in the command")
	}
	for _, b := range c.req[abi.PostSendSize:] {
		if b != 0 {
			return fail(syscall.EOPNOTSUPP, "the %d bytes after the request are not zero", rest)
		}
	}
	o, err := c.file.acquire(kindQP, req.QPHandle)
	if err != nil {
		return err
	}
	err = o.body.(*queuePair).qp.Doorbell()
	o.release()
	le.PutUint32(c.out[:], 0) // bad_wr: none of none
	if outErr := c.respond(abi.PostSendRespSize); err == nil {
		err = outErr
	}
	return err
}
