package verbs

import (
	"encoding/binary"
	"math"
	"syscall"
	"testing"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/ring"
	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/kerneltest"
	"github.com/rdmashim/rdmashim/tests/must"
)

const sig = abi.SendSignaled

func sends(flags abi.SendFlags, ids ...uint64) (batch []SendWR) {
	for _, id := range ids {
		batch = append(batch, SendWR{ID: id, Opcode: abi.WRSend, Flags: flags})
	}
	return batch
}

func recvs(ids ...uint64) (batch []RecvWR) {
	for _, id := range ids {
		batch = append(batch, RecvWR{ID: id})
	}
	return batch
}

func TestFailureAndFlush(t *testing.T) {
	b := newBed(t, eight).connect()
	b.do(func() { b.dev.Bell = func(qp *kerneltest.QP) { qp.FailFirst(abi.WCRemAccessErr) } })
	must.Get(b.qp.PostRecv(recvs(100, 101)))(t)
	_, err := b.qp.Post([]SendWR{{ID: 1, Opcode: abi.WRRDMARead}, {ID: 2, Opcode: abi.WRSend, Flags: sig}})
	require.NoError(t, err)
	must.Get(b.qp.PostRecv(recvs(102)))(t) // too late for the kernel's flush, and the client does not know yet

	require.Equal(t, []WC{
		{ID: 1, Status: abi.WCRemAccessErr, Opcode: abi.WCRDMARead, QPN: b.qp.Num()},
		{ID: 2, Status: abi.WCWRFlushErr, Opcode: abi.WCSend, QPN: b.qp.Num()},
	}, pollTwice(t, b.scq))
	_, err = b.qp.PostRecv(recvs(103, 104))
	require.NoError(t, err, "in ERR a receive is taken, and flushed")
	n, err := b.qp.PostRecv(recvs(105, 106, 107, 108))
	require.ErrorIs(t, err, syscall.ENOMEM, "and counts")
	require.Equal(t, 3, n)
	got := pollTwice(t, b.rcq)
	require.Equal(t, []uint64{100, 101, 102, 103, 104, 105, 106, 107}, ids(got), "in the order in which they were posted")
	for _, wc := range got {
		require.Equal(t, WC{ID: wc.ID, Status: abi.WCWRFlushErr, Opcode: abi.WCRecv, QPN: b.qp.Num()}, wc)
	}
	require.Empty(t, poll(t, b.rcq))

	_, err = b.qp.Post(sends(0, 3, 4))
	require.NoError(t, err, "in ERR a send is taken, and flushed")
	require.Equal(t, []uint64{3, 4}, ids(poll(t, b.scq)), "the unsignaled one, too")
	require.Zero(t, b.rcq.soft.Load())
}

func pollTwice(t *testing.T, cq *CQ) []WC { return append(poll(t, cq), poll(t, cq)...) }

// TestFlushWaitsForTheKernelsOwn: while the kernel has receives that it did not
// flush yet, later ones wait behind them.
func TestFlushWaitsForTheKernelsOwn(t *testing.T) {
	b := newBed(t, eight).connect()
	b.kernel.DeafInErr = true
	b.do(func() { b.kernel.SetState(abi.QPSErr) }) // silently
	must.Get(b.qp.PostRecv(recvs(1)))(t)
	must.Get(b.qp.Query())(t)
	require.Equal(t, abi.QPSErr, b.qp.State())
	must.Get(b.qp.PostRecv(recvs(2)))(t)
	require.Empty(t, poll(t, b.rcq))
	b.do(b.kernel.Fail)
	require.Equal(t, []uint64{1, 2}, ids(poll(t, b.rcq)))
}

// TestSpinningFindsASilentError: as with Wait, but for a program that only
// polls.
func TestSpinningFindsASilentError(t *testing.T) {
	b := newBed(t, eight).connect()
	b.do(func() { b.kernel.SetState(abi.QPSErr) })
	_, err := b.qp.PostRecv(recvs(1))
	require.NoError(t, err)
	wc := make([]WC, 1)
	n := 0
	for range 2 * patience {
		if n, err = b.rcq.Poll(wc); n > 0 {
			break
		}
		require.NoError(t, err)
	}
	require.Equal(t, []uint64{1}, ids(wc[:n]))
	b.Taken()
	for range 2 * patience {
		must.Get(b.rcq.Poll(wc))(t)
	}
	require.Empty(t, b.Taken(), "once answered, polling makes no system calls")
}

func TestHostileCompletions(t *testing.T) {
	for name, spoil := range map[string]func(b *bed) error{
		"producer beyond the ring": func(b *bed) error {
			binary.LittleEndian.PutUint32(b.ksc.Queue.Mapping()[128:], 0xffffff)
			return ring.ErrIndex
		},
		"not outstanding": func(b *bed) error {
			b.ksc.Add(&ring.WC{ID: ringID(false, b.qp.gen, 1)})
			return syscall.EIO
		},
		"sequence wild": func(b *bed) error {
			b.ksc.Add(&ring.WC{ID: ringID(false, b.qp.gen, 0x80000000)})
			return syscall.EIO
		},
		"wrong direction": func(b *bed) error {
			b.ksc.Add(&ring.WC{ID: ringID(true, b.qp.gen, 0)})
			return syscall.EIO
		},
		"twice": func(b *bed) error {
			for range 2 {
				b.ksc.Add(&ring.WC{ID: ringID(false, b.qp.gen, 0)})
			}
			return syscall.EIO
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, eight).connect()
			b.do(func() { b.dev.Bell = func(*kerneltest.QP) {} })
			must.Get(b.qp.Post(sends(sig, 7)))(t)
			var want error
			b.do(func() { want = spoil(b) })
			wc := make([]WC, 4)
			n, err := b.scq.Poll(wc)
			if name == "twice" {
				require.NoError(t, err)
				require.Equal(t, []uint64{7}, ids(wc[:n]))
				n, err = b.scq.Poll(wc)
			}
			require.ErrorIs(t, err, want)
			require.Zero(t, n)
		})
	}
	t.Run("consumer of the send queue beyond the ring", func(t *testing.T) {
		b := newBed(t, eight).connect()
		binary.LittleEndian.PutUint32(b.kernel.SQ.Mapping()[256:], 99)
		n, err := b.qp.Post(sends(sig, 7))
		require.ErrorIs(t, err, ring.ErrIndex)
		require.Zero(t, n)
		binary.LittleEndian.PutUint32(b.kernel.RQ.Mapping()[256:], 99)
		n, err = b.qp.PostRecv(recvs(1))
		require.ErrorIs(t, err, ring.ErrIndex)
		require.Zero(t, n)
	})
	t.Run("completion of nobody", func(t *testing.T) {
		b := newBed(t, eight).connect()
		b.do(func() { b.ksc.Add(&ring.WC{ID: 0x1234567812345678}) })
		require.Empty(t, poll(t, b.scq))
	})
}

// TestSequenceNumbersWrap starts just below the end of 32 bits.
func TestSequenceNumbersWrap(t *testing.T) {
	b := newBed(t, QPInit{MaxSendWR: 3, MaxRecvWR: 3}).connect()
	b.qp.sq.head, b.qp.sq.tail = math.MaxUint32-4, math.MaxUint32-4
	b.qp.rq.head, b.qp.rq.tail, b.qp.ringEnd = math.MaxUint32-4, math.MaxUint32-4, math.MaxUint32-4
	for id := uint64(0); id < 20; id += 2 {
		must.Get(b.qp.Post(append(sends(0, id), sends(sig, id+1)...)))(t)
		require.Equal(t, []uint64{id + 1}, ids(poll(t, b.scq)))
		must.Get(b.qp.PostRecv(recvs(id, id+1)))(t)
		b.do(func() { b.kernel.Recv(&ring.WC{}); b.kernel.Recv(&ring.WC{}) })
		require.Equal(t, []uint64{id, id + 1}, ids(poll(t, b.rcq)))
	}
}

// rdma_rxe does not always hear the bell in ERR: the move there is repeated.
func TestSendsPostedInErrorAreFlushed(t *testing.T) {
	b := newBed(t, eight).connect()
	b.do(func() { b.kernel.DeafBell = true })
	b.modify(abi.QPSErr)
	for i := range uint64(20) {
		must.Get(b.qp.Post(sends(sig, 3*i, 3*i+1, 3*i+2)))(t)
		got := poll(t, b.scq)
		require.Len(t, got, 3)
		for j, wc := range got {
			require.Equal(t, WC{ID: 3*i + uint64(j), Status: abi.WCWRFlushErr, Opcode: abi.WCSend, QPN: b.qp.Num()}, wc)
		}
	}
}

// The kernel went to ERR without a word; the first completion tells, and the
// rest is flushed.
func TestSendsPostedUnknowinglyAreFlushed(t *testing.T) {
	b := newBed(t, eight).connect()
	b.do(func() {
		b.kernel.DeafBell = true
		b.kernel.Fail()
	})
	must.Get(b.qp.PostRecv(recvs(1)))(t)
	must.Get(b.qp.Post(sends(sig, 2, 3)))(t)
	attr := must.Get(b.qp.Query())(t)
	require.Equal(t, abi.QPSErr, attr.State)
	require.Len(t, poll(t, b.scq), 2)
	require.Len(t, poll(t, b.rcq), 1)
}
