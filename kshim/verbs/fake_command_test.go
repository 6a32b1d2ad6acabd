package verbs

import (
	"encoding/binary"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/ring"
)

func (k *fake) command(cmd abi.Command, in, out, uhw []byte) error {
	answer := func(s abi.Struct, size int) error {
		if len(out) != size {
			return syscall.ENOSPC
		}
		s.Put(out)
		return nil
	}
	switch cmd {
	case abi.CmdGetContext:
		return answer(&abi.GetContextResp{AsyncFD: k.newFD(), NumCompVectors: 1}, 8)
	case abi.CmdCreateCompChannel:
		return answer(&abi.CreateCompChannelResp{FD: k.newFD()}, 4)
	case abi.CmdQueryDevice:
		return answer(&abi.QueryDeviceResp{MaxQPWR: 16384, PhysPortCnt: 1, NodeGUID: 0x0102030405060708}, 176)
	case abi.CmdQueryPort:
		if in[8] != 1 {
			return syscall.EINVAL
		}
		return answer(&abi.QueryPortResp{MaxMsgSz: 8 << 20, GIDTblLen: 1024, State: abi.PortActive, ActiveMTU: abi.MTU1024}, 40)
	case abi.CmdAllocPD:
		return answer(&abi.AllocPDResp{PDHandle: k.newHandle("pd")}, 4)
	case abi.CmdDeallocPD:
		return k.drop(in, "pd")
	case abi.CmdRegMR:
		h := k.newHandle("mr")
		return answer(&abi.RegMRResp{MRHandle: h, LKey: h << 8, RKey: h << 8}, 12)
	case abi.CmdDeregMR:
		return k.drop(in, "mr")
	case abi.CmdReregMR:
		return k.reregMR(in, answer)
	case abi.CmdCreateAH:
		return k.createAH(in, out, uhw)
	case abi.CmdDestroyAH:
		return k.drop(in, "ah")
	case abi.CmdResizeCQ:
		return k.resizeCQ(in, out, uhw)
	case abi.CmdCreateCQ:
		return k.createCQ(in, out, uhw)
	case abi.CmdDestroyCQ, abi.CmdReqNotifyCQ:
		return k.onCQ(cmd, in)
	case abi.CmdCreateQP:
		return k.createQP(in, out, uhw)
	case abi.CmdModifyQP:
		var req abi.ModifyQP
		if err := req.Parse(in); err != nil {
			return err
		}
		return k.modifyQP(&req)
	case abi.CmdQueryQP, abi.CmdDestroyQP:
		return k.onQP(cmd, in, out)
	case abi.CmdPostSend:
		var req abi.PostSend
		if err := req.Parse(in); err != nil {
			return err
		}
		return k.postSend(&req, out)
	}
	return syscall.EOPNOTSUPP
}

func (k *fake) createCQ(in, out, uhw []byte) error {
	var req abi.CreateCQ
	if err := req.Parse(in); err != nil || len(uhw) != 16 || len(out) != 8 || req.CQE == 0 || req.CQE > 32767 {
		return syscall.EINVAL
	}
	if k.files[req.CompChannel] == nil {
		return syscall.EBADF
	}
	q, err := ring.New(ring.CQElemSize, int(req.CQE))
	if err != nil {
		return err
	}
	k.handle++
	cq := &fakeCQ{handle: k.handle, user: req.UserHandle, q: q, p: q.Producer()}
	k.cqs[cq.handle] = cq
	(&abi.CreateCQResp{CQHandle: cq.handle, CQE: uint32(q.Cap())}).Put(out)
	(&abi.RXECreateCQResp{MI: k.share(q)}).Put(uhw)
	return nil
}

func (k *fake) onCQ(cmd abi.Command, in []byte) error {
	if cmd == abi.CmdReqNotifyCQ {
		var req abi.ReqNotifyCQ
		_ = req.Parse(in)
		cq := k.cqs[req.CQHandle]
		if cq == nil {
			return syscall.ENOENT
		}
		if k.beforeArm != nil {
			k.beforeArm()
			k.beforeArm = nil
		}
		cq.armed = true
		return nil
	}
	var req abi.DestroyCQ
	_ = req.Parse(in)
	cq := k.cqs[req.CQHandle]
	if cq == nil {
		return syscall.ENOENT
	}
	if cq.qps > 0 {
		return syscall.EBUSY
	}
	delete(k.cqs, req.CQHandle)
	return nil
}

func (k *fake) createQP(in, out, uhw []byte) error {
	var req abi.CreateQP
	if err := req.Parse(in); err != nil || len(uhw) != 32 || len(out) != 32 || req.MaxSendSGE > 32 || req.MaxInlineData > 512 || req.MaxSendWR > 16384 {
		return syscall.EINVAL
	}
	scq, rcq := k.cqs[req.SendCQHandle], k.cqs[req.RecvCQHandle]
	if scq == nil || rcq == nil || k.obj[req.PDHandle] != "pd" {
		return syscall.ENOENT
	}
	elem, sge, inline := ring.SendCap(int(req.MaxSendSGE), int(req.MaxInlineData))
	sq, err := ring.New(elem, int(req.MaxSendWR))
	if err != nil {
		return err
	}
	rq, err := ring.New(ring.RecvElemSize(int(req.MaxRecvSGE)), int(req.MaxRecvWR))
	if err != nil {
		return err
	}
	k.handle++
	qp := &fakeQP{k: k, handle: k.handle, num: 0x10 + k.handle, scq: scq, rcq: rcq, sq: sq, rq: rq, sqc: sq.Consumer(), rqc: rq.Consumer()}
	scq.qps++
	rcq.qps++
	k.qps[qp.handle] = qp
	(&abi.CreateQPResp{QPHandle: qp.handle, QPN: qp.num, MaxSendWR: uint32(sq.Cap()), MaxRecvWR: uint32(rq.Cap()),
		MaxSendSGE: uint32(sge), MaxRecvSGE: req.MaxRecvSGE, MaxInlineData: uint32(inline)}).Put(out)
	(&abi.RXECreateQPResp{RQMI: k.share(rq), SQMI: k.share(sq)}).Put(uhw)
	return nil
}

func (k *fake) modifyQP(req *abi.ModifyQP) error {
	qp := k.qps[req.QPHandle]
	if qp == nil {
		return syscall.ENOENT
	}
	qp.modifyMask = append(qp.modifyMask, req.AttrMask)
	if req.AttrMask&abi.QPMaskState == 0 {
		return nil
	}
	switch to := req.QPState; to {
	case abi.QPSReset:
		qp.sqc.Reset()
		qp.rqc.Reset()
	case abi.QPSErr:
		if qp.state == abi.QPSErr && qp.deafInErr {
			return nil
		}
		qp.toErr()
		return nil
	default:
		if qp.state != to-1 && qp.state != to && !(qp.state == abi.QPSSQD && to == abi.QPSRTS) {
			return syscall.EINVAL
		}
	}
	qp.state = req.QPState
	return nil
}

func (k *fake) onQP(cmd abi.Command, in, out []byte) error {
	h := binary.LittleEndian.Uint32(in[8:])
	qp := k.qps[h]
	if qp == nil {
		return syscall.ENOENT
	}
	if cmd == abi.CmdQueryQP {
		(&abi.QueryQPResp{QPState: qp.state, MaxSendWR: uint32(qp.sq.Cap()), RetryCnt: 7, Dest: abi.QPDest{DLID: 9}}).Put(out)
		return nil
	}
	qp.scq.qps--
	qp.rcq.qps--
	delete(k.qps, h)
	return nil
}

func (k *fake) postSend(req *abi.PostSend, out []byte) error {
	qp := k.qps[req.QPHandle]
	switch {
	case qp == nil:
		return syscall.ENOENT
	case req.WRCount != 0 || req.SGECount != 0 || req.WQESize < 56 || len(out) < 4:
		return syscall.EINVAL
	case qp.state < abi.QPSRTS:
		return syscall.EINVAL
	}
	clear(out)
	qp.bells++
	if qp.state == abi.QPSErr {
		if !qp.deafBell {
			qp.flushSends()
		}
		return nil
	}
	k.bell(qp)
	return nil
}
