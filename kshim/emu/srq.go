package emu

import (
	"sync"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/driver"
)

// sharedReceives is struct ib_usrq_object. The device raises its events through
// it.
type sharedReceives struct {
	object
	srq    driver.SRQ
	modify sync.Mutex // one at a time
	limit  source
	failed source

	reported uint32 // set when it is released
}

var _ driver.SRQEvents = (*sharedReceives)(nil)

// Event is one event for the asynchronous file (ib_uverbs_srq_event_handler).
func (s *sharedReceives) Event(t abi.EventType) {
	if t == abi.EventSRQLimitReached {
		s.limit.post()
	} else {
		s.failed.post()
	}
}

func (s *sharedReceives) destroy() error { return s.srq.Destroy() }

func (s *sharedReceives) released() {
	s.reported = s.limit.retire() + s.failed.retire()
}

func (s *sharedReceives) counts() abi.Struct { return &abi.DestroySRQResp{EventsReported: s.reported} }

// srqInit holds the parameters of a shared receive queue, of any command. The
// domain is held.
type srqInit struct {
	pd         *object
	userHandle uint64
	cap        driver.SRQInit // without the domain
	async      *eventQueue
}

func createSRQ(c *call) error {
	req := decode[abi.CreateSRQ](c)
	return c.createSRQ(&abi.CreateXSRQ{
		UserHandle: req.UserHandle, PDHandle: req.PDHandle, MaxWR: req.MaxWR, MaxSGE: req.MaxSGE, SRQLimit: req.SRQLimit,
	})
}

func createXSRQ(c *call) error {
	req := decode[abi.CreateXSRQ](c)
	return c.createSRQ(&req)
}

// createSRQ does the part that the two commands share (uverbs_cmd.c:
// __uverbs_create_xsrq).
func (c *call) createSRQ(req *abi.CreateXSRQ) error {
	f := c.file
	switch req.SRQType {
	case abi.SRQTXRC:
		return fail(syscall.EINVAL, "the device has no XRC domain %#x", req.XRCDHandle)
	case abi.SRQTTM:
		cq, err := f.acquire(kindCQ, req.CQHandle)
		if err != nil {
			return err
		}
		defer cq.release()
	}
	pd, err := f.acquire(kindPD, req.PDHandle)
	if err != nil {
		return err
	}
	defer pd.release()
	if req.SRQType != abi.SRQTBasic { // rxe_create_srq
		return fail(syscall.EOPNOTSUPP, "the device has no shared receive queues of type %v", req.SRQType)
	}
	return c.makeSRQ(&srqInit{
		pd: pd, userHandle: req.UserHandle, async: f.asyncQueue(),
		cap: driver.SRQInit{MaxWR: req.MaxWR, MaxSGE: req.MaxSGE, Limit: req.SRQLimit},
	}, func(s *sharedReceives, granted *driver.SRQInit) error {
		return c.reply(&abi.CreateSRQResp{SRQHandle: s.handle, MaxWR: granted.MaxWR, MaxSGE: granted.MaxSGE})
	})
}

// makeSRQ has the device make the queue.
func (c *call) makeSRQ(init *srqInit, respond func(*sharedReceives, *driver.SRQInit) error) error {
	dev, ok := c.file.dev.Device.(driver.SRQDevice)
	if !ok {
		return fail(syscall.EOPNOTSUPP, "the device has no shared receive queues")
	}
	s := &sharedReceives{object: object{kind: kindSRQ, needs: []*object{init.pd}}}
	s.body = s
	s.limit = source{element: init.userHandle, event: abi.EventSRQLimitReached, queue: init.async}
	s.failed = source{element: init.userHandle, event: abi.EventSRQErr, queue: init.async}
	attr := init.cap
	attr.PD = init.pd.body.(*protectionDomain).pd
	u := c.udata(&s.rings)
	return c.add(&s.object, u, func() (err error) {
		s.srq, err = dev.CreateSRQ(&attr, u, s)
		return err
	}, func() error { return respond(s, &attr) })
}

// modifySRQ is uverbs_cmd.c:ib_uverbs_modify_srq. Where the mask names a new
// size, the queue gets another ring, as by RESIZE_CQ.
func modifySRQ(c *call) error {
	f := c.file
	req := decode[abi.ModifySRQ](c)
	o, err := f.acquire(kindSRQ, req.SRQHandle)
	if err != nil {
		return err
	}
	defer o.release()
	s := o.body.(*sharedReceives)
	s.modify.Lock()
	defer s.modify.Unlock()
	var rings []*ringMemory
	if err := s.srq.Modify(&req, c.udata(&rings)); err != nil {
		f.rings.forget(rings)
		return err
	}
	if rings != nil {
		f.rings.forget(s.rings)
		s.rings = rings
	}
	return nil
}

func querySRQ(c *call) error {
	req := decode[abi.QuerySRQ](c)
	o, err := c.file.acquire(kindSRQ, req.SRQHandle)
	if err != nil {
		return err
	}
	defer o.release()
	resp, err := o.body.(*sharedReceives).srq.Query()
	if err != nil {
		return err
	}
	return c.reply(&resp)
}

// methodCreateSRQ is UVERBS_METHOD_SRQ_CREATE.
func methodCreateSRQ(c *call) error {
	typ, err := c.constant(abi.AttrCreateSRQType, 1<<32-1)
	if err != nil {
		return err
	}
	switch abi.SRQType(typ) {
	case abi.SRQTBasic:
	case abi.SRQTXRC:
		return fail(syscall.ENOENT, "an XRC domain is missing")
	case abi.SRQTTM:
		return fail(syscall.EOPNOTSUPP, "the device matches no tags")
	default:
		return fail(syscall.EINVAL, "%d is not a type of shared receive queues", typ)
	}
	if err := c.driverParts(); err != nil {
		return err
	}
	return c.makeSRQ(&srqInit{
		pd: c.attrs[abi.AttrCreateSRQPDHandle].obj, userHandle: c.attrs[abi.AttrCreateSRQUserHandle].data,
		cap: driver.SRQInit{
			MaxWR: c.word(abi.AttrCreateSRQMaxWR), MaxSGE: c.word(abi.AttrCreateSRQMaxSGE), Limit: c.word(abi.AttrCreateSRQLimit),
		},
		async: c.eventQueue(abi.AttrCreateSRQEventFD),
	}, func(s *sharedReceives, granted *driver.SRQInit) error {
		c.attrs[abi.AttrCreateSRQHandle].data = uint64(s.handle)
		if err := c.answer(abi.AttrCreateSRQRespMaxWR, le.AppendUint32(nil, granted.MaxWR)); err != nil {
			return err
		}
		return c.answer(abi.AttrCreateSRQRespMaxSGE, le.AppendUint32(nil, granted.MaxSGE))
	})
}
