package verbs

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/kerneltest"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/ring"
	"github.com/rdmashim/rdmashim/tests/must"
)

// TestProbe: a probe is a WRITE of nothing that takes no place of the
// program's; only its failure comes back, and is not shown.
func TestProbe(t *testing.T) {
	b := newBed(t, QPInit{MaxSendWR: 1, MaxRecvWR: 1, Probes: true})
	must.Fail(b.qp.Probe())(t, syscall.EINVAL, "not in RTS")
	b.connect()
	b.do(func() { b.dev.Bell = func(*kerneltest.QP) {} }) // a device that is busy
	sent := must.Get(b.qp.Probe())(t)
	require.True(t, sent)
	require.Equal(t, 1, len(b.Taken()), "one doorbell")
	b.do(func() {
		n := must.Get(b.kernel.Sends.Ready())(t)
		require.Equal(t, 1, n)
		var e ring.SendWQE
		require.NoError(t, e.Decode(b.kernel.Sends.Slot(0)))
		require.Equal(t, abi.WRRDMAWrite, e.WR.Opcode)
		require.Zero(t, e.WR.Flags&abi.SendSignaled)
	})
	sent = must.Get(b.qp.Probe())(t)
	require.False(t, sent, "the first is not answered yet")
	require.Equal(t, Sends{Probing: true}, b.qp.Sends())

	// The program's one place is its own, and its completion comes.
	must.Get(b.qp.Post(sends(sig, 7)))(t)
	require.Equal(t, Sends{Posted: 1, Probing: true}, b.qp.Sends())
	b.do(func() { b.kernel.Sends.Release(1) })
	require.Equal(t, Sends{Posted: 1}, b.qp.Sends(), "the probe is done, the request not")
	b.do(b.kernel.Succeed)
	require.Equal(t, []uint64{7}, ids(poll(t, b.scq)))
	require.Equal(t, Sends{Posted: 1, Done: true}, b.qp.Sends())

	// A probe that fails tells of the queue pair's state, and no more.
	must.Get(b.qp.Probe())(t)
	b.do(func() { b.kernel.FailFirst(abi.WCRetryExcErr) })
	require.Empty(t, poll(t, b.scq))
	require.Equal(t, abi.QPSErr, b.qp.State())
	must.Fail(b.qp.Probe())(t, syscall.EINVAL)

	require.NoError(t, b.qp.Destroy())
	must.Fail(b.qp.Probe())(t, syscall.EBADF)
}
