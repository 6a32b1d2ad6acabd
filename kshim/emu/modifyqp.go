package emu

import (
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

// standardMask is IB_QP_ATTR_STANDARD_BITS.
const standardMask abi.QPAttrMask = 1<<21 - 1

// modifyQP checks in the kernel's order: uverbs_cmd.c:modify_qp, then
// verbs.c:_ib_modify_qp, then rxe's call of ib_modify_qp_is_ok and its checks
// of values (rxe_qp_chk_attr).
func modifyQP(c *call) error {
	attr := decode[abi.ModifyQP](c)
	if attr.AttrMask&^standardMask != 0 {
		return fail(syscall.EOPNOTSUPP, "attribute mask %v is unknown in part", attr.AttrMask)
	}
	return c.modifyQP(attr)
}

// exModifyQP is uverbs_cmd.c:ib_uverbs_ex_modify_qp.
func exModifyQP(c *call) error {
	const rateLimit = 1 << 25 // IB_QP_RATE_LIMIT
	req := decode[abi.ExModifyQP](c)
	if req.Base.AttrMask&^(standardMask|rateLimit) != 0 {
		return fail(syscall.EOPNOTSUPP, "attribute mask %v is unknown in part", req.Base.AttrMask)
	}
	if err := c.modifyQP(req.Base); err != nil {
		return err
	}
	return c.reply(&abi.ExModifyQPResp{ResponseLength: c.responseLength()})
}

func (c *call) modifyQP(attr abi.ModifyQP) error {
	o, err := c.file.acquire(kindQP, attr.QPHandle)
	if err != nil {
		return err
	}
	defer o.release()
	q := o.body.(*queuePair)
	q.modify.Lock()
	defer q.modify.Unlock()

	if err := q.checkPorts(&attr); err != nil {
		return err
	}
	if err := q.checkPath(&attr); err != nil {
		return err
	}
	if attr.AttrMask&^standardMask != 0 { // rxe_modify_qp
		return fail(syscall.EOPNOTSUPP, "the device has no rate limits")
	}
	from := q.qp.State()
	if attr.AttrMask&mCur != 0 {
		from = attr.CurQPState
	}
	to := from
	if attr.AttrMask&mState != 0 {
		to = attr.QPState
	}
	if from > abi.QPSErr || to > abi.QPSErr {
		return fail(syscall.EINVAL, "no state %d", max(from, to))
	}
	if err := checkTransition(from, to, q.typ, attr.AttrMask); err != nil {
		return err
	}
	if err := q.checkValues(&attr); err != nil {
		return err
	}
	if err := q.qp.Modify(&attr, attr.AttrMask); err != nil {
		return err
	}
	if attr.AttrMask&mPort != 0 {
		q.port = attr.PortNum
	}
	return nil
}

// checkPorts holds the ports in the request against the device's and, on the
// way to RTR, the path's against the one chosen for INIT.
func (q *queuePair) checkPorts(attr *abi.ModifyQP) error {
	d := q.file.dev
	if attr.AttrMask&mPort != 0 && !d.portValid(attr.PortNum) {
		return fail(syscall.EINVAL, "the device has no port %d", attr.PortNum)
	}
	if attr.AttrMask&mAV == 0 {
		return nil
	}
	port := attr.Dest.PortNum
	switch {
	case !d.portValid(port):
		return fail(syscall.EINVAL, "the device has no port %d, which the path leaves by", port)
	case attr.AttrMask&mState != 0 && attr.QPState == abi.QPSRTR:
		if port != q.port {
			return fail(syscall.EINVAL, "the path leaves by port %d, the queue pair is on %d", port, q.port)
		}
	case attr.AttrMask&mPort == 0: // SQD: a new path brings its port
		attr.AttrMask |= mPort
		attr.PortNum = port
	case attr.PortNum != port:
		return fail(syscall.EINVAL, "the path leaves by port %d, not %d", port, attr.PortNum)
	}
	return nil
}

// checkPath checks an address vector as RoCE demands: it needs a global route
// that starts from a valid entry of the GID table, and no alternate path.
func (q *queuePair) checkPath(attr *abi.ModifyQP) error {
	if attr.AttrMask&mAlt != 0 {
		return fail(syscall.EINVAL, "RoCE has no alternate paths")
	}
	if attr.AttrMask&mAV == 0 {
		return nil
	}
	if attr.Dest.IsGlobal == 0 {
		return fail(syscall.EINVAL, "the path has no global route (is_global is 0), which RoCE needs")
	}
	return q.file.dev.checkGID(attr.Dest.PortNum, uint64(attr.Dest.SGIDIndex))
}

// checkValues is rxe_qp_chk_attr after the transition.
func (q *queuePair) checkValues(attr *abi.ModifyQP) error {
	d := q.file.dev
	has := func(m abi.QPAttrMask) bool { return attr.AttrMask&m != 0 }
	if has(abi.QPMaskPathMTU) {
		port, err := d.QueryPort(max(q.port, 1))
		if err != nil {
			return err
		}
		if attr.PathMTU < abi.MTU256 || attr.PathMTU > port.ActiveMTU {
			return fail(syscall.EINVAL, "path MTU %v, the port has %v", attr.PathMTU, port.ActiveMTU)
		}
	}
	switch {
	case has(abi.QPMaskMaxQPRdAtomic) && uint32(attr.MaxRdAtomic) > d.attr.MaxQPInitRdAtom && uint32(attr.MaxRdAtomic) > d.attr.MaxQPRdAtom:
		return fail(syscall.EINVAL, "max_rd_atomic %d, the device has %d", attr.MaxRdAtomic, d.attr.MaxQPRdAtom)
	case has(abi.QPMaskMaxDestRdAtomic) && uint32(attr.MaxDestRdAtomic) > d.attr.MaxQPRdAtom: // a meant difference: see doc.go
		return fail(syscall.EINVAL, "max_dest_rd_atomic %d, the device has %d", attr.MaxDestRdAtomic, d.attr.MaxQPRdAtom)
	case has(abi.QPMaskTimeout) && attr.Timeout > 31:
		return fail(syscall.EINVAL, "timeout %d, the field has 5 bits", attr.Timeout)
	}
	// rxe takes any pkey_index, having one P_Key, and any min_rnr_timer, of
	// which it sends 5 bits (rxe_resp.c). Linux cuts PSNs that do not fit to
	// 24 bits, and logs it (verbs.c: _ib_modify_qp).
	attr.RQPSN &= 1<<24 - 1
	attr.SQPSN &= 1<<24 - 1
	return nil
}
