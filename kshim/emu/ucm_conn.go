package emu

import (
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/driver"
)

// param takes the parameters of a request's side.
func param(p *abi.UCMConnParam) driver.CMPeerParam {
	return driver.CMPeerParam{
		QPN: p.QPNum & 0xffffff, ResponderResources: p.ResponderResources, InitiatorDepth: p.InitiatorDepth,
		RetryCount: min(p.RetryCount, 7), RNRRetryCount: min(p.RNRRetryCount, 7), FlowControl: p.FlowControl&1 != 0, SRQ: p.SRQ != 0,
	}
}

func (c *ucmCall) connect() error {
	var req abi.UCMConnect
	_ = req.Parse(c.in)
	if req.ConnParam.Valid == 0 {
		return fail(syscall.EINVAL, "the parameter is not valid")
	}
	return c.with(req.ID, func(id *ucmID) error {
		room := uint8(abi.UCMConnectData)
		if id.typ == abi.QPTUD {
			room = abi.UCMAskData
		}
		switch {
		case id.state != ucmRouteResolved:
			return fail(syscall.EINVAL, "the id's route is not resolved, or it is connected")
		case req.ConnParam.PrivateDataLen > room:
			return fail(syscall.EINVAL, "a request carries %d bytes of private data", room)
		}
		id.setAsking(true, req.ConnParam.ResponderResources)
		conn, err := id.cm.CMConnect(&driver.CMRequest{
			Service: id.service(id.dst.Port()), Src: id.src, Dst: id.dst, GIDIndex: id.path.GIDIndex,
			Param: param(&req.ConnParam), Private: req.ConnParam.Private(), TOS: id.path.TOS, FlowLabel: id.flow(), AckTimeout: id.timeout,
		}, id)
		if err != nil {
			id.setAsking(false, 0)
			return err
		}
		id.conn, id.active, id.state, id.qpn = conn, true, ucmConnect, req.ConnParam.QPNum&0xffffff
		return nil
	})
}

// accept answers a request, and on the active side, without a parameter, says
// that the queue pair is ready.
func (c *ucmCall) accept() error {
	var req abi.UCMAccept
	_ = req.Parse(c.in)
	return c.with(req.ID, func(id *ucmID) error {
		switch {
		case id.conn == nil:
			return fail(syscall.EINVAL, "the id has no connection")
		case id.typ == abi.QPTUD:
			return id.answer(&req)
		case req.ConnParam.Valid == 0 && !id.active:
			return fail(syscall.EINVAL, "the parameter is not valid")
		case req.ConnParam.Valid == 0:
			return id.conn.Confirm()
		case id.active || req.ConnParam.PrivateDataLen > abi.UCMAcceptData:
			return fail(syscall.EINVAL, "the id asked itself, or there are more than %d bytes of private data", abi.UCMAcceptData)
		}
		// Its events are kept from now on: the first may come before Accept
		// returns.
		old := id.setUID(req.UID)
		err := id.conn.Accept(&driver.CMReply{Param: param(&req.ConnParam), Private: req.ConnParam.Private()})
		if err != nil {
			id.setUID(old)
			return err
		}
		id.qpn = req.ConnParam.QPNum & 0xffffff
		return nil
	})
}

func (id *ucmID) setUID(uid uint64) (old uint64) {
	defer id.lockFile().mu.Unlock()
	old, id.uid = id.uid, uid
	return old
}

func (c *ucmCall) reject() error {
	var req abi.UCMReject
	_ = req.Parse(c.in)
	why := abi.UCMRejReason(req.Reason)
	switch why {
	case 0:
		why = abi.UCMRejConsumerDefined
	case abi.UCMRejConsumerDefined, abi.UCMRejVendorOptionNotSupported:
	default:
		return fail(syscall.EINVAL, "reason %v is not a program's to give", why)
	}
	if req.PrivateDataLen > abi.UCMRejectData {
		return fail(syscall.EINVAL, "a rejection carries %d bytes of private data", abi.UCMRejectData)
	}
	return c.with(req.ID, func(id *ucmID) error {
		if id.conn == nil {
			return fail(syscall.EINVAL, "the id has no connection")
		}
		return id.conn.Reject(why, req.PrivateData[:req.PrivateDataLen])
	})
}

// disconnect asks the peer to end the connection, or answers it. That there is
// none any more is no error (cma.c: rdma_disconnect).
func (c *ucmCall) disconnect() error {
	var req abi.UCMDisconnect
	_ = req.Parse(c.in)
	return c.with(req.ID, func(id *ucmID) error {
		switch {
		case id.conn != nil:
			_ = id.conn.Disconnect()
		case id.state != ucmListening || id.dev == nil:
			return fail(syscall.EINVAL, "the id has no connection")
		}
		return nil
	})
}

// initQPAttr answers masks and values as Linux does: ib_cm_init_qp_attr, and
// for an id without a connection cma_ib_init_qp_attr, which permits the peer
// nothing yet.
func (c *ucmCall) initQPAttr() error {
	var req abi.UCMInitQPAttr
	_ = req.Parse(c.in)
	if req.QPState > uint32(abi.QPSErr) {
		return fail(syscall.EINVAL, "there is no such state")
	}
	return c.with(req.ID, func(id *ucmID) error {
		if id.dev == nil {
			return fail(syscall.EINVAL, "the id has no device")
		}
		attr := abi.QPAttr{QPState: req.QPState, CurQPState: 0}
		if err := id.attr(&attr); err != nil {
			return err
		}
		return c.answer(req.Response, &attr, abi.QPAttrSize)
	})
}

// attr fills in the attributes for a state. Without a connection those for INIT
// answer for all (cma.c: rdma_init_qp_attr).
func (id *ucmID) attr(attr *abi.QPAttr) error {
	attr.QPAttrMask, attr.PortNum = abi.QPMaskState|abi.QPMaskAccessFlags|abi.QPMaskPkeyIndex|abi.QPMaskPort, 1
	switch {
	case id.typ == abi.QPTUD:
		attr.QPAttrMask += abi.QPMaskQKey - abi.QPMaskAccessFlags
		qkey, err := id.useQKey(0)
		attr.QKey = qkey
		return err
	case id.state == ucmListening:
		return fail(syscall.EINVAL, "the id listens")
	case id.conn == nil:
		return nil
	}
	a, err := id.conn.Attr()
	switch abi.QPState(attr.QPState) {
	case abi.QPSInit:
		resources, asking := id.asks()
		if err == nil {
			resources = a.MaxDestRdAtomic
		} else if !asking {
			return err
		}
		attr.QPAccessFlags = abi.AccessRemoteWrite
		if resources > 0 {
			attr.QPAccessFlags |= abi.AccessRemoteRead | abi.AccessRemoteAtomic
		}
		return nil
	case abi.QPSRTR, abi.QPSRTS:
		if err == nil {
			attr.PortNum = 0
			id.connAttr(attr, &a)
		}
		return err
	}
	return fail(syscall.EINVAL, "connections bring queue pairs to INIT, RTR and RTS")
}

func (id *ucmID) connAttr(attr *abi.QPAttr, a *driver.CMAttr) {
	if attr.QPState == uint32(abi.QPSRTS) {
		attr.QPAttrMask = abi.QPMaskState | abi.QPMaskSQPSN | abi.QPMaskTimeout | abi.QPMaskRetryCnt | abi.QPMaskRNRRetry | abi.QPMaskMaxQPRdAtomic
		attr.SQPSN, attr.Timeout, attr.RetryCnt, attr.RNRRetry, attr.MaxRdAtomic = a.SQPSN, a.Timeout, a.RetryCnt, a.RNRRetry, a.MaxRdAtomic
		if id.timeout != 0 {
			attr.Timeout = id.timeout
		}
		return
	}
	attr.QPAttrMask = abi.QPMaskState | abi.QPMaskAV | abi.QPMaskPathMTU | abi.QPMaskDestQPN | abi.QPMaskRQPSN | abi.QPMaskMaxDestRdAtomic | abi.QPMaskMinRNRTimer
	attr.PathMTU, attr.DestQPNum, attr.RQPSN, attr.MaxDestRdAtomic = uint32(a.PathMTU), a.DestQPN, a.RQPSN, a.MaxDestRdAtomic
	av := a.AV
	attr.AHAttr = abi.AHAttr{
		DGID: av.DGID, FlowLabel: av.FlowLabel, SGIDIndex: uint8(id.path.GIDIndex), HopLimit: av.HopLimit, TrafficClass: av.TrafficClass,
		DLID: av.DLID, SrcPathBits: av.SrcPathBits, SL: av.SL, IsGlobal: 1, PortNum: 1,
	}
}

func (c *ucmCall) notify() error {
	var req abi.UCMNotify
	_ = req.Parse(c.in)
	return c.with(req.ID, func(id *ucmID) error {
		if id.conn == nil || req.Event != abi.EventCommEst {
			return fail(syscall.EINVAL, "the id has no connection, or the event is none of it")
		}
		return id.conn.CommEstablished()
	})
}
