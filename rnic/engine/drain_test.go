package engine

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

func (n *network) modify(h *host, to abi.QPState) {
	n.t.Helper()
	require.NoError(n.t, h.qp.Modify(n.now, to, &Attr{}, abi.QPMaskState))
}

// IBA 10.3.1.5: in SQD posted requests wait, the responder goes on, RTS
// resumes.
func TestDrainHoldsBack(t *testing.T) {
	n := newPair(t, cfg{})
	n.modify(n.a, abi.QPSSQD)
	require.True(t, n.a.qp.Drained(), "nothing was begun")
	n.post(n.a, n.write(1, 100))
	n.post(n.b, SendWR{ID: 2, Opcode: abi.WRRDMAWrite, SGE: n.b.sge(0, 5000), RemoteAddr: n.a.va(0), RKey: n.a.key()})
	n.run(0)
	require.Empty(t, n.a.wcs)
	requireSuccess(t, n.b.wcs, 2)
	require.True(t, n.a.qp.Drained())
	n.modify(n.a, abi.QPSRTS)
	require.False(t, n.a.qp.Drained())
	n.run(0)
	requireSuccess(t, n.a.wcs, 1)
}

// A message of which one packet has left is finished, and made up for if it is
// lost; the one behind it is not begun.
func TestDrainFinishesWhatWasBegun(t *testing.T) {
	n := newPair(t, cfg{})
	lose := 3
	n.filter = func(from *host, p *wire.Packet) (int, Time) {
		if from == n.a && lose > 0 {
			lose--
			return 0, 0
		}
		return 1, 0
	}
	n.post(n.a, n.write(1, 5*1024))
	require.NotEmpty(t, func() []byte { // one packet leaves
		b := NewBatch(1)
		n.a.qp.Transmit(n.now, b)
		return b.Packets[0].Payload
	}())
	n.post(n.a, n.write(2, 10))
	n.modify(n.a, abi.QPSSQD)
	require.False(t, n.a.qp.Drained())
	n.run(0)
	requireSuccess(t, n.a.wcs, 1)
	require.True(t, n.a.qp.Drained())
	n.modify(n.a, abi.QPSRTS)
	n.run(0)
	requireSuccess(t, n.a.wcs, 1, 2)
}

// A request that waits for the peer's receive was begun.
func TestDrainWaitsForReceiver(t *testing.T) {
	n := newPair(t, cfg{})
	n.post(n.a, SendWR{ID: 1, Opcode: abi.WRSend, SGE: n.a.sge(0, 8)})
	n.post(n.a, n.write(2, 8))
	n.run(n.now + Time(Millisecond))
	n.modify(n.a, abi.QPSSQD)
	require.False(t, n.a.qp.Drained())
	n.b.postRecv(9, 0, 64)
	n.run(0)
	require.True(t, n.a.qp.Drained())
	require.NotEmpty(t, n.a.wcs)
	require.EqualValues(t, 1, n.a.wcs[0].ID)
}

// The error state flushes waiting requests, and the end of a drain is not
// reported.
func TestDrainThenError(t *testing.T) {
	n := newPair(t, cfg{})
	n.modify(n.a, abi.QPSSQD)
	n.post(n.a, n.write(1, 8))
	n.modify(n.a, abi.QPSErr)
	n.run(0)
	require.Equal(t, []abi.WCStatus{abi.WCWRFlushErr}, statuses(n.a.wcs))
	require.False(t, n.a.qp.Drained())
}

func TestDrainRetryExceeded(t *testing.T) {
	n := newPair(t, cfg{})
	n.post(n.a, n.write(1, 8))
	n.filter = func(*host, *wire.Packet) (int, Time) { return 0, 0 }
	n.pump(n.a)
	n.modify(n.a, abi.QPSSQD)
	n.run(0)
	require.Equal(t, []abi.WCStatus{abi.WCRetryExcErr}, statuses(n.a.wcs))
	require.Equal(t, abi.QPSErr, n.a.qp.State())
}

// The numbers of READs and atomics change in SQD, the requester's when it has
// drained.
func TestDrainResizes(t *testing.T) {
	n := newPair(t, cfg{attr: func(_ int, a *Attr) { a.MaxRdAtomic, a.MaxDestRdAtomic = 4, 4 }})
	for i := range uint64(4) {
		n.post(n.a, n.read(i, 3000))
	}
	n.pump(n.a) // they are asked for
	n.modify(n.a, abi.QPSSQD)
	a := Attr{MaxRdAtomic: 1, MaxDestRdAtomic: 2}
	require.ErrorIs(t, n.a.qp.Modify(n.now, abi.QPSSQD, &a, abi.QPMaskState|abi.QPMaskMaxQPRdAtomic), syscall.EINVAL)
	n.run(0)
	requireSuccess(t, n.a.wcs, 0, 1, 2, 3)
	require.True(t, n.a.qp.Drained())
	require.NoError(t, n.a.qp.Modify(n.now, abi.QPSSQD, &a, abi.QPMaskState|abi.QPMaskMaxQPRdAtomic))
	n.modify(n.b, abi.QPSSQD)
	require.NoError(t, n.b.qp.Modify(n.now, abi.QPSSQD, &a, abi.QPMaskState|abi.QPMaskMaxDestRdAtomic))
	require.Equal(t, 2, n.b.qp.rsp.replay.n)
	require.Zero(t, n.b.qp.rsp.replay.left)
	n.modify(n.a, abi.QPSRTS)
	for i := range uint64(4) {
		n.post(n.a, n.read(10+i, 3000))
	}
	n.run(0)
	requireSuccess(t, n.a.wcs, 0, 1, 2, 3, 10, 11, 12, 13)
}
