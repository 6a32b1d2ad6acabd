package rnic

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/ring"
)

func TestModifyRefuses(t *testing.T) {
	a, b := newPair(t, pairOptions{})
	q := newQP(t, a.Device, a.pd, qpOptions{})
	good := func() abi.ModifyQP {
		return abi.ModifyQP{QPState: abi.QPSRTR, Dest: dest(b.Device), PathMTU: abi.MTU1024, MinRNRTimer: 1, MaxDestRdAtomic: 1, DestQPNum: 5}
	}
	err := q.qp.Modify(&abi.ModifyQP{QPState: abi.QPSInit, PortNum: 2}, initMask)
	require.ErrorIs(t, err, syscall.EINVAL)
	m := good()
	require.ErrorIs(t, q.qp.Modify(&m, rtrMask), syscall.EINVAL, "RESET to RTR")
	require.Equal(t, abi.QPSReset, q.qp.State())
	require.ErrorIs(t, q.qp.Doorbell(), syscall.EINVAL)

	q.toInit(defaults())
	require.ErrorIs(t, q.qp.Doorbell(), syscall.EINVAL)
	for name, c := range map[string]struct {
		change func(*abi.ModifyQP)
		mask   abi.QPAttrMask
		want   error
	}{
		"no GID":          {func(m *abi.ModifyQP) { m.Dest.IsGlobal = 0 }, 0, syscall.EINVAL},
		"port":            {func(m *abi.ModifyQP) { m.Dest.PortNum = 0 }, 0, syscall.EINVAL},
		"source GID":      {func(m *abi.ModifyQP) { m.Dest.SGIDIndex = 1 }, 0, syscall.EINVAL},
		"zero GID":        {func(m *abi.ModifyQP) { m.Dest.DGID = [16]byte{} }, 0, syscall.EINVAL},
		"IPv6 from IPv4":  {func(m *abi.ModifyQP) { m.Dest.DGID = [16]byte{0xfe, 0x80, 15: 1} }, 0, syscall.EINVAL},
		"multicast":       {func(m *abi.ModifyQP) { m.Dest.DGID[12] = 224 }, 0, syscall.EINVAL},
		"no MTU":          {func(m *abi.ModifyQP) { m.PathMTU = 0 }, 0, syscall.EINVAL},
		"wild MTU":        {func(m *abi.ModifyQP) { m.PathMTU = 200 }, 0, syscall.EINVAL},
		"responder depth": {func(m *abi.ModifyQP) { m.MaxDestRdAtomic = 129 }, 0, syscall.EINVAL},
		"SQD":             {func(m *abi.ModifyQP) { m.QPState = abi.QPSSQD }, 0, syscall.EINVAL},
		"SQE":             {func(m *abi.ModifyQP) { m.QPState = abi.QPSSQE }, 0, syscall.EOPNOTSUPP},
		"migration":       {func(m *abi.ModifyQP) { m.PathMigState = abi.MigArmed }, abi.QPMaskPathMigState, syscall.EOPNOTSUPP},
		"alternate path":  {func(*abi.ModifyQP) {}, abi.QPMaskAltPath, syscall.EOPNOTSUPP},
	} {
		m := good()
		c.change(&m)
		require.ErrorIs(t, q.qp.Modify(&m, rtrMask|c.mask), c.want, name)
		require.Equal(t, abi.QPSInit, q.qp.State(), name)
	}
	m = good()
	m.MinRNRTimer = 44 // 5 bits of it are sent, all are answered
	m.DestQPNum |= 0x7000000
	m.Dest.IsGlobal, m.Dest.HopLimit, m.Dest.SL = 9, 3, 5
	require.NoError(t, q.qp.Modify(&m, rtrMask))
	attr, err := q.qp.Query()
	require.NoError(t, err)
	require.Equal(t, uint8(44), attr.MinRNRTimer)
	require.Equal(t, m.DestQPNum, attr.DestQPNum)
	require.Equal(t, []uint8{1, 64, 0}, []uint8{attr.Dest.IsGlobal, attr.Dest.HopLimit, attr.Dest.SL}, "as rxe answers")
	require.ErrorIs(t, q.qp.Doorbell(), syscall.EINVAL, "RTR cannot send")
	for _, m := range []abi.ModifyQP{{Timeout: 32}, {RetryCnt: 8}, {RNRRetry: 8}, {MaxRdAtomic: 129}} {
		m.QPState = abi.QPSRTS
		require.ErrorIs(t, q.qp.Modify(&m, rtsMask), syscall.EINVAL, "%+v", m)
	}
}

func TestPathMTUAboveActive(t *testing.T) {
	d := newDevice(t, newFixed("10.0.0.1:4791", 1472), 8, qpOptions{}) // active: 1024
	d.qp.toInit(defaults())
	m := abi.ModifyQP{QPState: abi.QPSRTR, Dest: dest(d.Device), PathMTU: abi.MTU2048}
	err := d.qp.qp.Modify(&m, rtrMask)
	require.ErrorIs(t, err, syscall.EINVAL)
	require.ErrorContains(t, err, "active MTU")
	m.PathMTU = abi.MTU512
	require.NoError(t, d.qp.qp.Modify(&m, rtrMask))
}

func TestQueryAnswersWhatWasSet(t *testing.T) {
	a, b := newPair(t, pairOptions{qp: qpOptions{depth: 64, sges: 3, sigAll: true}})
	at := attrs{mtu: abi.MTU512, access: abi.AccessRemoteRead, timeout: 13, retry: 5, rnr: 4, minRNR: 12, rdAtomic: 3, destRdAtomic: 9}
	q, p := newQP(t, a.Device, a.pd, qpOptions{depth: 64, sges: 3, sigAll: true}), newQP(t, b.Device, b.pd, qpOptions{})
	r, err := q.qp.Query()
	require.NoError(t, err)
	require.Equal(t, abi.QPSReset, r.QPState)
	q.connectTo(p, at)
	r, err = q.qp.Query()
	require.NoError(t, err)
	require.Equal(t, abi.QueryQPResp{
		Dest: dest(b.Device), MaxSendWR: 127, MaxRecvWR: 127, MaxSendSGE: 3, MaxRecvSGE: 3, MaxInlineData: 48,
		RQPSN: p.psn(), SQPSN: q.psn(), DestQPNum: p.qp.Num(), QPAccessFlags: abi.AccessRemoteRead,
		QPState: abi.QPSRTS, CurQPState: abi.QPSRTS, PathMTU: abi.MTU512,
		MaxRdAtomic: 3, MaxDestRdAtomic: 9, MinRNRTimer: 12, PortNum: 1, Timeout: 13, RetryCnt: 5, RNRRetry: 4, SQSigAll: 1,
	}, r)
	q.modify(abi.ModifyQP{QPState: abi.QPSErr}, abi.QPMaskState)
	r, err = q.qp.Query()
	require.NoError(t, err)
	require.Equal(t, abi.QPSErr, r.QPState)
	q.modify(abi.ModifyQP{QPState: abi.QPSReset}, abi.QPMaskState)
	r, err = q.qp.Query()
	require.NoError(t, err)
	require.Equal(t, q.qp.initial, r)
}

// Moving to ERR flushes everything posted, in order; RESET makes the queue pair
// and its rings as new.
func TestFlushAndReset(t *testing.T) {
	a, b := newPair(t, pairOptions{})
	for i := range uint64(5) {
		b.qp.postRecv(i, b.mem.sge(0, 8))
	}
	b.qp.modify(abi.ModifyQP{QPState: abi.QPSErr}, abi.QPMaskState)
	for i := range uint64(5) {
		b.qp.recv.waitStatus(i, abi.WCWRFlushErr)
	}
	// Posting in ERR is permitted and flushed.
	b.qp.post(write(b, a, 70, 0, 0, 8), &ring.SendWR{ID: 71, Opcode: abi.WRSend})
	b.qp.send.waitStatus(70, abi.WCWRFlushErr)
	b.qp.send.waitStatus(71, abi.WCWRFlushErr)
	require.Empty(t, b.qp.asyncs(), "as with rxe")

	for _, q := range []*testQP{a.qp, b.qp} {
		q.modify(abi.ModifyQP{QPState: abi.QPSReset}, abi.QPMaskState)
		q.sprod.Reset()
		q.rprod.Reset()
		n, err := q.sprod.Free()
		require.NoError(t, err)
		require.Equal(t, 127, n)
	}
	a.qp.connectTo(b.qp, defaults())
	b.qp.connectTo(a.qp, defaults())
	a.mem.fill(1)
	a.qp.post(write(a, b, 1, 0, 0, 5000))
	a.qp.send.waitStatus(1, abi.WCSuccess)
	require.Equal(t, a.mem.buf[:5000], b.mem.buf[:5000])
}

// In SQD posted requests wait; the event tells when those that were begun are
// complete.
func TestDrain(t *testing.T) {
	a, b := newPair(t, pairOptions{})
	b.qp.modify(abi.ModifyQP{QPState: abi.QPSSQD}, abi.QPMaskState)
	require.Equal(t, []abi.EventType{abi.EventSQDrained}, b.qp.asyncs(), "nothing was begun")
	b.qp.modify(abi.ModifyQP{QPState: abi.QPSSQD}, abi.QPMaskState)
	require.Len(t, b.qp.asyncs(), 1, "it drained once")

	// A SEND that waits for a receive was begun.
	a.qp.post(&ring.SendWR{ID: 1, Opcode: abi.WRSend, Flags: abi.SendSignaled})
	a.qp.modify(abi.ModifyQP{QPState: abi.QPSSQD}, abi.QPMaskState)
	attr, err := a.qp.qp.Query()
	require.NoError(t, err)
	require.Equal(t, []uint8{uint8(abi.QPSSQD), 1}, []uint8{uint8(attr.QPState), attr.SQDraining})
	require.Empty(t, a.qp.asyncs())
	for _, to := range []abi.QPState{abi.QPSRTS, abi.QPSSQD, abi.QPSReset} {
		require.ErrorIs(t, a.qp.qp.Modify(&abi.ModifyQP{QPState: to}, abi.QPMaskState), syscall.EINVAL, "%v before it has drained", to)
	}
	a.qp.post(write(a, b, 2, 0, 0, 100))
	b.qp.postRecv(3, b.mem.sge(0, 8))
	a.qp.send.waitStatus(1, abi.WCSuccess)
	<-a.qp.wake
	require.Equal(t, []abi.EventType{abi.EventSQDrained}, a.qp.asyncs())
	attr, err = a.qp.qp.Query()
	require.NoError(t, err)
	require.Zero(t, attr.SQDraining)

	a.qp.modify(abi.ModifyQP{QPState: abi.QPSRTS}, abi.QPMaskState)
	a.qp.send.waitStatus(2, abi.WCSuccess)
}
