package engine

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

func (n *network) modify(h *host, to abi.QPState) {
	n.t.Helper()
	require.NoError(n.t, h.qp.Modify(n.now, to, &Attr{}, abi.QPMaskState))
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
