package emu

import (
	"syscall"
	"testing"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/abi/abitest"
	"github.com/stretchr/testify/require"
)

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
