package rnic

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
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
