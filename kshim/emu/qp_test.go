package emu

import (
	"syscall"
	"testing"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/abi/abitest"
	"github.com/stretchr/testify/require"
)

// TestModifyMeasured holds measurements on Linux 6.1.
func TestModifyMeasured(t *testing.T) {
	c := newClient(t, true)
	pd := c.pd()
	cq, _ := c.cq(0, -1)
	qp := c.qp(pd, cq, cq).QPHandle
	fails := func(a *abi.ModifyQP, change func(a *abi.ModifyQP), errno syscall.Errno) {
		t.Helper()
		if change != nil {
			change(a)
		}
		require.ErrorIs(t, c.modify(a), errno)
	}
	fails(rtrAttr(qp), nil, syscall.EINVAL) // RESET to RTR
	fails(rtsAttr(qp), nil, syscall.EINVAL)
	fails(&abi.ModifyQP{QPHandle: qp, AttrMask: 1, QPState: abi.QPSErr}, nil, syscall.EINVAL) // not in Linux's table
	fails(initAttr(qp), func(a *abi.ModifyQP) { a.PortNum = 0 }, syscall.EINVAL)
	fails(initAttr(qp), func(a *abi.ModifyQP) { a.PortNum = 2 }, syscall.EINVAL)
	fails(initAttr(qp), func(a *abi.ModifyQP) { a.QPState = 7 }, syscall.EINVAL)
	fails(initAttr(qp), func(a *abi.ModifyQP) { a.AttrMask |= 1 << 21 }, syscall.EOPNOTSUPP)
	anyPkey := initAttr(qp)
	anyPkey.PkeyIndex = 9999
	require.NoError(t, c.modify(anyPkey))
	require.NoError(t, c.modify(initAttr(qp)), "INIT to INIT")

	fails(rtrAttr(qp), func(a *abi.ModifyQP) { a.AttrMask &^= abi.QPMaskMinRNRTimer }, syscall.EINVAL)
	fails(rtrAttr(qp), func(a *abi.ModifyQP) { a.Dest.IsGlobal = 0 }, syscall.EINVAL)
	fails(rtrAttr(qp), func(a *abi.ModifyQP) { a.Dest.PortNum = 0 }, syscall.EINVAL)
	fails(rtrAttr(qp), func(a *abi.ModifyQP) { a.PathMTU = abi.MTU2048 }, syscall.EINVAL) // the port has 1024
	fails(rtrAttr(qp), func(a *abi.ModifyQP) { a.PathMTU = 0 }, syscall.EINVAL)
	fails(rtrAttr(qp), func(a *abi.ModifyQP) { a.Dest.SGIDIndex = 1 }, abi.ENODATA)
	fails(rtrAttr(qp), func(a *abi.ModifyQP) { a.Dest.SGIDIndex = 8 }, syscall.EINVAL)
	fails(rtrAttr(qp), func(a *abi.ModifyQP) { a.MaxDestRdAtomic = 129 }, syscall.EINVAL)
	fails(rtrAttr(qp), func(a *abi.ModifyQP) { a.AttrMask |= abi.QPMaskAltPath }, syscall.EINVAL)
	long := rtrAttr(qp)
	long.MinRNRTimer = 44
	require.NoError(t, c.modify(long), "hop_limit and the rest as measured")

	fails(rtsAttr(qp), func(a *abi.ModifyQP) { a.Timeout = 32 }, syscall.EINVAL)
	fails(rtsAttr(qp), func(a *abi.ModifyQP) { a.MaxRdAtomic = 129 }, syscall.EINVAL)
	fails(rtsAttr(qp), func(a *abi.ModifyQP) { a.AttrMask |= abi.QPMaskCap }, syscall.EINVAL)
	long = rtsAttr(qp)
	long.SQPSN = 0xff123456
	require.NoError(t, c.modify(long))
	require.Equal(t, uint32(0x123456), c.dev.Last.Modified.SQPSN)

	require.NoError(t, c.modify(&abi.ModifyQP{QPHandle: qp, AttrMask: 1, QPState: abi.QPSErr}))
	fails(rtsAttr(qp), nil, syscall.EINVAL)
	require.NoError(t, c.modify(&abi.ModifyQP{QPHandle: qp, AttrMask: 1, QPState: abi.QPSReset}))
	require.NoError(t, c.modify(initAttr(qp)), "reusable after RESET")
}

// TestModifyCurrentState: a client may say which state it believes in; without
// it the driver's state counts, also ERR that came meanwhile.
func TestModifyCurrentState(t *testing.T) {
	c := newClient(t, true)
	qp, _, _ := c.rts()
	c.dev.Last.SetState(abi.QPSErr)
	require.ErrorIs(t, c.modify(&abi.ModifyQP{QPHandle: qp, AttrMask: 1, QPState: abi.QPSRTS}), syscall.EINVAL)
	c.dev.Last.SetState(abi.QPSRTS)
	require.NoError(t, c.modify(&abi.ModifyQP{QPHandle: qp, AttrMask: 3, QPState: abi.QPSRTS, CurQPState: abi.QPSRTS}))
	require.ErrorIs(t, c.modify(&abi.ModifyQP{QPHandle: qp, AttrMask: 3, QPState: abi.QPSRTR, CurQPState: abi.QPSInit}), syscall.EINVAL)
}

// TestTransitionTable holds the table to IBA 10.3.1: from every state RESET and
// ERR can be reached (ERR not from RESET, as in Linux), and each service's way
// up needs exactly the attributes of IBA 11.2.5.2.
func TestTransitionTable(t *testing.T) {
	for from := abi.QPSReset; from <= abi.QPSErr; from++ {
		require.NoError(t, checkTransition(from, abi.QPSReset, abi.QPTRC, mState), "%v to RESET", from)
		err := checkTransition(from, abi.QPSErr, abi.QPTRC, mState)
		require.Equal(t, from != abi.QPSReset, err == nil, "%v to ERR", from)
		for to := abi.QPSReset; to <= abi.QPSErr; to++ {
			for _, typ := range []abi.QPType{abi.QPTRC, abi.QPTUC, abi.QPTUD} {
				tr := &transitions[from][to]
				req, opt := tr.masks(typ)
				require.Zero(t, req&opt, "%v to %v of %v", from, to, typ)
				require.Zero(t, (req|opt)&(mState|abi.QPMaskCap), "%v to %v of %v", from, to, typ)
				err := checkTransition(from, to, typ, mState|req|opt&^mCur)
				require.Equal(t, tr.valid, err == nil, "%v to %v of %v: %v", from, to, typ, err)
				for bit := abi.QPAttrMask(1); bit <= standardMask; bit <<= 1 {
					if req&bit != 0 {
						require.ErrorIs(t, checkTransition(from, to, typ, (mState|req)&^bit), syscall.EINVAL)
					} else if (opt|mState)&bit == 0 {
						require.ErrorIs(t, checkTransition(from, to, typ, mState|req|bit), syscall.EINVAL)
					}
				}
			}
		}
	}
	require.NoError(t, checkTransition(abi.QPSReset, abi.QPSInit, abi.QPTRC, 0x39))
	require.NoError(t, checkTransition(abi.QPSInit, abi.QPSRTR, abi.QPTRC, 0x129181))
	require.NoError(t, checkTransition(abi.QPSRTR, abi.QPSRTS, abi.QPTRC, 0x12e01))
	require.NoError(t, checkTransition(abi.QPSReset, abi.QPSInit, abi.QPTUD, 0x71))
	require.NoError(t, checkTransition(abi.QPSInit, abi.QPSRTR, abi.QPTUD, 0x1))
	require.NoError(t, checkTransition(abi.QPSRTR, abi.QPSRTS, abi.QPTUD, 0x10001))
	require.NoError(t, checkTransition(abi.QPSInit, abi.QPSRTR, abi.QPTUC, 0x101181))
}

func TestCreateQPErrors(t *testing.T) {
	c := newClient(t, true)
	pd := c.pd()
	cq, _ := c.cq(0, -1)
	for name, x := range map[string]struct {
		change func(r *abi.CreateQP)
		errno  syscall.Errno
	}{
		"type 0":         {func(r *abi.CreateQP) { r.QPType = 0 }, syscall.EINVAL},
		"type 7":         {func(r *abi.CreateQP) { r.QPType = 7 }, syscall.EINVAL},
		"raw":            {func(r *abi.CreateQP) { r.QPType = abi.QPTRawPacket }, syscall.EOPNOTSUPP},
		"xrc":            {func(r *abi.CreateQP) { r.QPType = abi.QPTXRCIni }, syscall.EOPNOTSUPP},
		"srq":            {func(r *abi.CreateQP) { r.IsSRQ, r.SRQHandle = 1, 0x7fff }, syscall.ENOENT},
		"not an srq":     {func(r *abi.CreateQP) { r.IsSRQ, r.SRQHandle = 1, r.PDHandle }, syscall.EINVAL},
		"send depth":     {func(r *abi.CreateQP) { r.MaxSendWR = 1025 }, syscall.EINVAL},
		"receive depth":  {func(r *abi.CreateQP) { r.MaxRecvWR = 1 << 31 }, syscall.EINVAL},
		"send entries":   {func(r *abi.CreateQP) { r.MaxSendSGE = 33 }, syscall.EINVAL},
		"receive entris": {func(r *abi.CreateQP) { r.MaxRecvSGE = 33 }, syscall.EINVAL},
	} {
		r := qpRequest(c.addr, pd, cq, cq)
		x.change(r)
		_, err := c.do(abi.CmdCreateQP, r, 64)
		require.ErrorIs(t, err, x.errno, name)
	}
}

func TestCreateCQErrors(t *testing.T) {
	c := newClient(t, true)
	_, channelFD := c.channel()
	for name, x := range map[string]struct {
		req   abi.CreateCQ
		errno syscall.Errno
	}{
		"no entries":        {abi.CreateCQ{CompChannel: -1}, syscall.EINVAL},
		"too many":          {abi.CreateCQ{CQE: 32768, CompChannel: -1}, syscall.EINVAL},
		"vector":            {abi.CreateCQ{CQE: 1, CompVector: 1, CompChannel: -1}, syscall.EINVAL},
		"channel 0":         {abi.CreateCQ{CQE: 1}, syscall.EBADF},
		"channel: the file": {abi.CreateCQ{CQE: 1, CompChannel: 3}, syscall.EBADF},
		"channel: async":    {abi.CreateCQ{CQE: 1, CompChannel: 4}, syscall.EBADF},
		"channel: not open": {abi.CreateCQ{CQE: 1, CompChannel: 99}, syscall.EBADF},
	} {
		x.req.Response = c.addr
		_, err := c.do(abi.CmdCreateCQ, &x.req, 24)
		require.ErrorIs(t, err, x.errno, name)
	}
	// A channel of another context of the same process is not this one's.
	first := c.f
	c.open(true)
	_, err := c.do(abi.CmdCreateCQ, &abi.CreateCQ{Response: c.addr, CQE: 1, CompChannel: channelFD}, 24)
	require.ErrorIs(t, err, syscall.EBADF)
	require.NoError(t, first.Close())
}

func TestPostSendForms(t *testing.T) {
	c := newClient(t, true)
	qp, _, _ := c.rts()
	post := func(p abi.PostSend, tail ...byte) error {
		p.Response, p.QPHandle = c.addr, qp
		b := make([]byte, 24, 24+len(tail))
		p.Put(b)
		_, err := c.writeRaw(uint32(abi.CmdPostSend), append(b, tail...), 4)
		return err
	}
	require.NoError(t, post(abi.PostSend{WQESize: 56}))
	require.NoError(t, post(abi.PostSend{WQESize: 1 << 31}))
	require.ErrorIs(t, post(abi.PostSend{WQESize: 55}), syscall.EINVAL)
	require.ErrorIs(t, post(abi.PostSend{WQESize: 56, WRCount: 1}), syscall.ENOSPC)
	require.ErrorIs(t, post(abi.PostSend{WQESize: 1 << 31, WRCount: 1 << 31}), syscall.ENOSPC)
	require.ErrorIs(t, post(abi.PostSend{WQESize: 56, SGECount: 1}), syscall.ENOSPC)
	require.ErrorIs(t, post(abi.PostSend{WQESize: 56, WRCount: 1}, make([]byte, 56)...), syscall.EINVAL)
	require.ErrorIs(t, post(abi.PostSend{WQESize: 56}, 1, 0, 0, 0), syscall.EOPNOTSUPP)
	require.Equal(t, int64(2), c.dev.Doorbells.Load())
	require.Equal(t, []byte{0, 0, 0, 0}, c.page[:4], "bad_wr")
}

// TestLimits: the device's counts hold for all its clients together, and
// destroyed objects count no more.
func TestLimits(t *testing.T) {
	c := newClient(t, true)
	c.dev.Attr.MaxPD = 0 // the core looked when the device was registered
	var pds []uint32
	for range 64 {
		pds = append(pds, c.pd())
	}
	_, err := c.do(abi.CmdAllocPD, &abi.AllocPD{Response: c.addr}, 4)
	require.ErrorIs(t, err, syscall.ENOMEM)
	_, err = c.do(abi.CmdDeallocPD, &abi.DeallocPD{PDHandle: pds[5]}, 0)
	require.NoError(t, err)
	again := c.pd()
	require.NotEqual(t, pds[5], again)
	_, err = c.do(abi.CmdDeallocPD, &abi.DeallocPD{PDHandle: pds[5]}, 0)
	require.ErrorIs(t, err, syscall.ENOENT, "a stale handle is not the new object's")
}

// TestDriverRefuses: a call that the driver refuses leaves nothing behind, and
// its errno reaches the client.
func TestDriverRefuses(t *testing.T) {
	c := newClient(t, true)
	qp, pd, cq := c.rts()
	mr, err := c.mr(pd, c.addr, 4096, 1)
	require.NoError(t, err)
	buf, _ := c.f.Pin(make([]byte, 5000))
	before, rings := len(c.dev.Live), len(c.f.(*uverbsFile).rings.pending)
	c.dev.Refuse = syscall.ENOMEM
	for _, n := range []abi.Command{abi.CmdAllocPD, abi.CmdCreateCQ, abi.CmdCreateQP, abi.CmdRegMR} {
		for _, e := range examples(abi.FormWrite) {
			if e.entry.Command == n {
				o := &abitest.Objects{PD: pd, CQ: cq, QP: qp, Buffer: buf, Channel: -1}
				_, err := c.writeRaw(uint32(n), e.bytes(c, o), e.room())
				require.ErrorIs(t, err, syscall.ENOMEM, n)
			}
		}
	}
	_, err = c.do(abi.CmdDestroyQP, &abi.DestroyQP{Response: c.addr, QPHandle: qp}, 4)
	require.ErrorIs(t, err, syscall.ENOMEM)
	_, err = c.do(abi.CmdDeregMR, &abi.DeregMR{MRHandle: mr.MRHandle}, 0)
	require.ErrorIs(t, err, syscall.ENOMEM)
	c.dev.Refuse = nil
	require.Len(t, c.dev.Live, before)
	require.Len(t, c.f.(*uverbsFile).rings.pending, rings)
	_, err = c.do(abi.CmdDestroyQP, &abi.DestroyQP{Response: c.addr, QPHandle: qp}, 4)
	require.NoError(t, err, "what could not be destroyed is still there")
}
