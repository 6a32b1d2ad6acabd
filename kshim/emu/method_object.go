package emu

import (
	"math"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/driver"
)

// The methods of RDMA_VERBS_IOCTL that make, query and destroy objects.

// word is an input of 4 bytes.
func (c *call) word(i abi.AttrID) uint32 { return uint32(c.attrs[i].data) }

// eventQueue is where an object's asynchronous events go that names a file, or
// none.
func (c *call) eventQueue(i abi.AttrID) *eventQueue {
	if f := c.attrs[i].events; f != nil {
		return f.queue
	}
	return c.file.asyncQueue()
}

// methodCreateCQ is UVERBS_METHOD_CQ_CREATE.
func methodCreateCQ(c *call) error {
	const known = 3 // TIMESTAMP_COMPLETION, IGNORE_OVERRUN
	if err := c.flags(abi.AttrCreateCQFlags, known); err != nil {
		return err
	}
	init := &cqInit{
		userHandle: c.attrs[abi.AttrCreateCQUserHandle].data,
		cqe:        c.word(abi.AttrCreateCQCQE), vector: c.word(abi.AttrCreateCQCompVector), flags: c.word(abi.AttrCreateCQFlags),
		async: c.eventQueue(abi.AttrCreateCQEventFD),
	}
	if ch := c.attrs[abi.AttrCreateCQCompChannel].events; ch != nil {
		init.completion = ch.queue
	}
	if err := checkVector(init.vector); err != nil {
		return err
	}
	if err := c.driverParts(); err != nil {
		return err
	}
	return c.makeCQ(init, func(q *completionQueue) error {
		c.attrs[abi.AttrCreateCQHandle].data = uint64(q.handle)
		return c.answer(abi.AttrCreateCQRespCQE, le.AppendUint32(nil, uint32(q.cq.CQE())))
	})
}

// methodCreateQP is UVERBS_METHOD_QP_CREATE.
func methodCreateQP(c *call) error {
	var raw [abi.QPCapSize]byte
	if err := c.inputPart(abi.AttrCreateQPCap, raw[:]); err != nil {
		return err
	}
	var caps abi.QPCap
	_ = caps.Parse(raw[:])
	typ, err := c.constant(abi.AttrCreateQPType, math.MaxUint32)
	if err != nil {
		return err
	}
	if typ > 255 {
		return fail(syscall.EINVAL, "%d is not a queue pair type", typ)
	}
	if err := checkQPType(abi.QPType(typ)); err != nil {
		return err
	}
	init := &qpInit{
		pd: c.attrs[abi.AttrCreateQPPDHandle].obj, scq: c.attrs[abi.AttrCreateQPSendCQHandle].obj,
		rcq: c.attrs[abi.AttrCreateQPRecvCQHandle].obj, typ: abi.QPType(typ),
		userHandle: c.attrs[abi.AttrCreateQPUserHandle].data,
		cap: driver.QPCap{
			MaxSendWR: caps.MaxSendWR, MaxRecvWR: caps.MaxRecvWR,
			MaxSendSGE: caps.MaxSendSGE, MaxRecvSGE: caps.MaxRecvSGE, MaxInline: caps.MaxInlineData,
		},
		async: c.eventQueue(abi.AttrCreateQPEventFD),
	}
	init.srq = c.attrs[abi.AttrCreateQPSRQHandle].obj
	if init.pd == nil || init.scq == nil || init.rcq == nil {
		return fail(syscall.ENOENT, "a protection domain and both completion queues are needed")
	}
	if init.flags, init.sigAll, err = c.createFlags(); err != nil {
		return err
	}
	if init.flags != 0 && init.typ != abi.QPTUD { // uverbs_std_types_qp.c:check_creation_flags
		return fail(syscall.EINVAL, "create flags %#x of %v queue pairs", init.flags, init.typ)
	}
	if err := c.driverParts(); err != nil {
		return err
	}
	return c.makeQP(init, func(resp *abi.CreateQPResp) error {
		c.attrs[abi.AttrCreateQPHandle].data = uint64(resp.QPHandle)
		(&abi.QPCap{
			MaxSendWR: resp.MaxSendWR, MaxRecvWR: resp.MaxRecvWR,
			MaxSendSGE: resp.MaxSendSGE, MaxRecvSGE: resp.MaxRecvSGE, MaxInlineData: resp.MaxInlineData,
		}).Put(raw[:])
		if err := c.answer(abi.AttrCreateQPRespCap, raw[:]); err != nil {
			return err
		}
		return c.answer(abi.AttrCreateQPRespQPNum, le.AppendUint32(nil, resp.QPN))
	})
}

// createFlags are those of QP_CREATE, of which one takes the place of
// sq_sig_all.
func (c *call) createFlags() (flags uint32, sigAll bool, err error) {
	const sqSigAll, known = 1 << 12, 1<<1 | 1<<8 | 1<<9 | 1<<11 | 1<<12 // enum ib_uverbs_qp_create_flags
	if err := c.flags(abi.AttrCreateQPFlags, known); err != nil {
		return 0, false, err
	}
	v := c.word(abi.AttrCreateQPFlags)
	return v &^ sqSigAll, v&sqSigAll != 0, nil
}

// inputPart is input for a structure of which the client may have sent more.
func (c *call) inputPart(i abi.AttrID, to []byte) error {
	from, err := c.user(c.attrs[i].data, c.attrs[i].len)
	if err != nil {
		return err
	}
	return c.copy(to, from[:len(to)])
}

// methodDestroy is destroyer by ioctl.
func methodDestroy(c *call) error {
	o := c.attrs[0].obj
	err := o.end(false)
	if x, ok := o.body.(counting); ok && err == nil {
		x.counts().Put(c.out[:])
		return c.answer(1, c.out[:c.meth.Attrs[1].Layout.Size])
	}
	return err
}

// methodQueryMR is UVERBS_METHOD_QUERY_MR.
func methodQueryMR(c *call) error {
	r := c.attrs[abi.AttrQueryMRHandle].obj.body.(*region)
	for i, b := range [][]byte{
		abi.AttrQueryMRRespLKey:   le.AppendUint32(nil, r.mr.LKey()),
		abi.AttrQueryMRRespRKey:   le.AppendUint32(nil, r.mr.RKey()),
		abi.AttrQueryMRRespLength: le.AppendUint64(nil, r.mem.Len),
		abi.AttrQueryMRRespIOVA:   le.AppendUint64(nil, r.iova),
	} {
		if b == nil {
			continue
		}
		if err := c.offer(abi.AttrID(i), b); err != nil {
			return err
		}
	}
	return nil
}
