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

// TestFullMeansTheAskedDepth: the ring behind 5 has 7 slots, that behind 7
// exactly 7.
func TestFullMeansTheAskedDepth(t *testing.T) {
	for _, depth := range []int{1, 5, 7, 8} {
		b := newBed(t, QPInit{MaxSendWR: depth, MaxRecvWR: depth}).connect()
		b.do(func() { b.dev.Bell = func(*kerneltest.QP) {} }) // a device that is busy
		many := sends(sig, make([]uint64, depth+3)...)
		n, err := b.qp.Post(many)
		require.ErrorIs(t, err, syscall.ENOMEM)
		require.Equal(t, depth, n)
		n, err = b.qp.Post(many[:1])
		require.ErrorIs(t, err, syscall.ENOMEM)
		require.Zero(t, n)
		require.ErrorContains(t, err, "QP ")
		n, err = b.qp.PostRecv(recvs(make([]uint64, depth+3)...))
		require.ErrorIs(t, err, syscall.ENOMEM)
		require.Equal(t, depth, n)

		b.do(b.kernel.Succeed)
		n, err = b.qp.Post(many[:1])
		require.ErrorIs(t, err, syscall.ENOMEM, "a slot is free when its completion is polled, not before")
		require.Zero(t, n)
		wc := make([]WC, 1)
		_, err = b.scq.Poll(wc)
		require.NoError(t, err)
		n, err = b.qp.Post(many[:2])
		require.ErrorIs(t, err, syscall.ENOMEM)
		require.Equal(t, 1, n)
	}
}

func TestDepthZeroMeansNone(t *testing.T) {
	b := newBed(t, QPInit{}).connect()
	_, err := b.qp.Post(sends(0, 1))
	require.ErrorIs(t, err, syscall.ENOMEM)
	_, err = b.qp.PostRecv(recvs(1))
	require.ErrorIs(t, err, syscall.ENOMEM)
	n, err := b.qp.Post(nil)
	require.NoError(t, err)
	require.Zero(t, n)
}

func TestUnsignaledSlotsComeBackWithTheNextSignaled(t *testing.T) {
	b := newBed(t, QPInit{MaxSendWR: 4}).connect()
	n, err := b.qp.Post(sends(0, 1, 2, 3))
	require.NoError(t, err)
	require.Equal(t, 3, n)
	require.Empty(t, poll(t, b.scq))
	_, err = b.qp.Post(sends(sig, 4))
	require.NoError(t, err)
	_, err = b.qp.Post(sends(sig, 5))
	require.ErrorIs(t, err, syscall.ENOMEM)
	require.Equal(t, []uint64{4}, ids(poll(t, b.scq)))
	n, err = b.qp.Post(sends(sig, 5, 6, 7, 8))
	require.NoError(t, err)
	require.Equal(t, 4, n)
	require.Equal(t, []uint64{5, 6, 7, 8}, ids(poll(t, b.scq)))
}

func TestPostRefuses(t *testing.T) {
	b := newBed(t, QPInit{MaxSendWR: 8, MaxRecvWR: 8, MaxSendSGE: 2, MaxRecvSGE: 2, MaxInline: 10}).connect()
	granted := b.qp.Cap()
	require.Equal(t, 32, granted.MaxInline, "as rxe: two pieces take 32 bytes")
	for name, wr := range map[string]SendWR{
		"sge":    {SGE: make([]SGE, 3)},
		"inline": {Flags: abi.SendInline, Inline: make([]byte, 33)},
		"length": {SGE: []SGE{{Length: 8<<20 + 1}}},
		"opcode": {Opcode: 99},
		"flags":  {Flags: 1 << 20},
		"atomic": {Opcode: abi.WRAtomicFetchAndAdd, SGE: []SGE{{Length: 4}}},
	} {
		n, err := b.qp.Post([]SendWR{{Flags: sig, ID: 1}, wr, {Flags: sig, ID: 2}})
		require.ErrorIs(t, err, syscall.EINVAL, name)
		require.Equal(t, 1, n, "posted up to the bad one")
		require.Equal(t, []uint64{1}, ids(poll(t, b.scq)))
	}
	n, err := b.qp.PostRecv([]RecvWR{{}, {SGE: make([]SGE, 3)}})
	require.ErrorIs(t, err, syscall.EINVAL)
	require.Equal(t, 1, n)
	n, err = b.qp.PostRecv([]RecvWR{{}, {SGE: []SGE{{Length: math.MaxUint32}}}})
	require.ErrorIs(t, err, syscall.EINVAL)
	require.Equal(t, 1, n)
	_, err = b.qp.Post([]SendWR{{SGE: []SGE{{Length: 8 << 20}}}})
	require.NoError(t, err)
}

// TestCompletionsCarryWhatTheKernelLeavesOut: the id is the caller's, all 64
// bits; the opcode stands in error completions, too.
func TestCompletionsCarryWhatTheKernelLeavesOut(t *testing.T) {
	b := newBed(t, QPInit{MaxSendWR: 16, MaxRecvWR: 16}).connect()
	sge := []SGE{{Length: 8}}
	ops := []struct {
		op   abi.WROpcode
		want abi.WCOpcode
	}{
		{abi.WRRDMAWrite, abi.WCRDMAWrite}, {abi.WRRDMAWriteWithImm, abi.WCRDMAWrite}, {abi.WRSend, abi.WCSend}, {abi.WRSendWithImm, abi.WCSend},
		{abi.WRRDMARead, abi.WCRDMARead}, {abi.WRAtomicCmpAndSwp, abi.WCCompSwap}, {abi.WRAtomicFetchAndAdd, abi.WCFetchAdd},
	}
	var batch []SendWR
	for i, o := range ops {
		batch = append(batch, SendWR{ID: math.MaxUint64 - uint64(i), Opcode: o.op, Flags: sig, SGE: sge})
	}
	n, err := b.qp.Post(batch)
	require.NoError(t, err)
	require.Equal(t, len(ops), n)
	require.Equal(t, 1, b.kernel.Bells, "one doorbell a batch")
	for i, wc := range poll(t, b.scq) {
		require.Equal(t, WC{ID: math.MaxUint64 - uint64(i), Opcode: ops[i].want, ByteLen: 8, QPN: b.qp.Num()}, wc)
	}

	_, err = b.qp.PostRecv(recvs(math.MaxUint64, 1<<63, 9))
	require.NoError(t, err)
	b.do(func() {
		b.kernel.Recv(&ring.WC{Opcode: abi.WCRecvRDMAWithImm, ByteLen: 12, Imm: 0x01020304, Flags: abi.WCWithImm | abi.WCGRH, SrcQP: 5})
		b.kernel.Recv(&ring.WC{Opcode: abi.WCRecv, ByteLen: 3})
		b.kernel.Recv(&ring.WC{Status: abi.WCLocQPOpErr, VendorErr: 4})
	})
	require.Equal(t, []WC{
		{ID: math.MaxUint64, Opcode: abi.WCRecvRDMAWithImm, ByteLen: 12, Imm: 0x01020304, Flags: abi.WCWithImm | abi.WCGRH, SrcQP: 5, QPN: b.qp.Num()},
		{ID: 1 << 63, Opcode: abi.WCRecv, ByteLen: 3, QPN: b.qp.Num()},
		{ID: 9, Status: abi.WCLocQPOpErr, Opcode: abi.WCRecv, VendorErr: 4, QPN: b.qp.Num()},
	}, poll(t, b.rcq))
	require.Equal(t, abi.QPSErr, b.qp.State(), "an error completion tells the state")
}

func TestFailureAndFlush(t *testing.T) {
	b := newBed(t, eight).connect()
	b.do(func() { b.dev.Bell = func(qp *kerneltest.QP) { qp.FailFirst(abi.WCRemAccessErr) } })
	_, err := b.qp.PostRecv(recvs(100, 101))
	require.NoError(t, err)
	_, err = b.qp.Post([]SendWR{{ID: 1, Opcode: abi.WRRDMARead}, {ID: 2, Opcode: abi.WRSend, Flags: sig}})
	require.NoError(t, err)
	_, err = b.qp.PostRecv(recvs(102)) // too late for the kernel's flush, and the client does not know yet
	require.NoError(t, err)

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

func TestMoveToErrFlushesInOrder(t *testing.T) {
	b := newBed(t, eight).connect()
	_, err := b.qp.PostRecv(recvs(1, 2))
	require.NoError(t, err)
	b.modify(abi.QPSErr)
	_, err = b.qp.PostRecv(recvs(3, 4))
	require.NoError(t, err)
	wc := make([]WC, 1)
	for id := uint64(1); id <= 4; id++ { // one at a time
		n, err := b.rcq.Poll(wc)
		require.NoError(t, err)
		require.Equal(t, 1, n)
		require.Equal(t, id, wc[0].ID)
		require.Equal(t, abi.WCWRFlushErr, wc[0].Status)
	}
	require.Empty(t, poll(t, b.rcq))
}

// TestFlushWaitsForTheKernelsOwn: while the kernel has receives that it did not
// flush yet, later ones wait behind them.
func TestFlushWaitsForTheKernelsOwn(t *testing.T) {
	b := newBed(t, eight).connect()
	b.kernel.DeafInErr = true
	b.do(func() { b.kernel.SetState(abi.QPSErr) }) // silently
	_, err := b.qp.PostRecv(recvs(1))
	require.NoError(t, err)
	_, err = b.qp.Query()
	require.NoError(t, err)
	require.Equal(t, abi.QPSErr, b.qp.State())
	_, err = b.qp.PostRecv(recvs(2))
	require.NoError(t, err)
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
		_, err = b.rcq.Poll(wc)
		require.NoError(t, err)
	}
	require.Empty(t, b.Taken(), "once answered, polling makes no system calls")
}

func TestResetForgets(t *testing.T) {
	b := newBed(t, eight).connect()
	_, err := b.qp.PostRecv(recvs(1, 2))
	require.NoError(t, err)
	_, err = b.qp.Post(sends(sig, 3))
	require.NoError(t, err)
	b.modify(abi.QPSErr)
	_, err = b.qp.PostRecv(recvs(4))
	require.NoError(t, err)
	b.modify(abi.QPSReset)
	require.Empty(t, poll(t, b.scq), "completions of the former life are dropped")
	require.Empty(t, poll(t, b.rcq))
	require.Zero(t, b.rcq.soft.Load())

	b.modify(abi.QPSInit, abi.QPSRTR, abi.QPSRTS)
	saw := 0
	b.do(func() {
		b.dev.Bell = func(qp *kerneltest.QP) {
			saw, _ = qp.Sends.Ready()
			qp.Succeed()
		}
	})
	n, err := b.qp.Post(sends(sig, 11, 12, 13, 14, 15, 16, 17, 18))
	require.NoError(t, err)
	require.Equal(t, 8, saw, "the client starts where the kernel does")
	require.Equal(t, 8, n, "all slots are free again")
	n, err = b.qp.PostRecv(recvs(21, 22, 23, 24, 25, 26, 27, 28))
	require.NoError(t, err)
	require.Equal(t, 8, n)
	require.Len(t, poll(t, b.scq), 8)
	b.do(func() { b.kernel.Recv(&ring.WC{Opcode: abi.WCRecv}) })
	require.Equal(t, []uint64{21}, ids(poll(t, b.rcq)))

	b.fail(syscall.EIO, abi.CmdModifyQP)
	require.ErrorIs(t, b.qp.Modify(&QPAttr{State: abi.QPSReset}, abi.QPMaskState), syscall.EIO)
	b.fail(nil, abi.CmdModifyQP)
	require.Equal(t, abi.QPSRTS, b.qp.State())
	_, err = b.qp.Post(sends(sig, 31))
	require.NoError(t, err)
	require.Equal(t, []uint64{31}, ids(poll(t, b.scq)))
}

func TestSharedQueueDropsTheDestroyed(t *testing.T) {
	b := newBed(t, eight).connect()
	other, err := b.pd.CreateQP(QPInit{SendCQ: b.scq, RecvCQ: b.scq, MaxSendWR: 4, MaxRecvWR: 4})
	require.NoError(t, err)
	for _, s := range []abi.QPState{abi.QPSInit, abi.QPSRTR, abi.QPSRTS} {
		require.NoError(t, move(other, s))
	}
	post := func(qp *QP, id uint64) {
		_, err := qp.Post(sends(sig, id))
		require.NoError(t, err)
	}
	post(other, 1)
	post(b.qp, 2)
	post(other, 3)
	require.NoError(t, other.Modify(&QPAttr{State: abi.QPSErr}, abi.QPMaskState))
	_, err = other.PostRecv(recvs(4))
	require.NoError(t, err)
	wc := make([]WC, 1)
	n, err := b.scq.Poll(wc)
	require.NoError(t, err)
	require.Equal(t, []uint64{1}, ids(wc[:n]))
	require.NoError(t, other.Destroy())
	got := poll(t, b.scq)
	require.Equal(t, []uint64{2}, ids(got))
	require.Equal(t, b.qp.Num(), got[0].QPN)
	require.Zero(t, b.scq.soft.Load())
}

func TestOverrunCannotBeMissed(t *testing.T) {
	b := newBed(t, QPInit{MaxSendWR: 200}).connect()
	batch := sends(sig, make([]uint64, 130)...) // the queue of 64 has a ring of 127
	_, err := b.qp.Post(batch)
	require.NoError(t, err)
	wc := make([]WC, 256)
	n := 0
	for { // the event takes its way
		m, err := b.scq.Wait(t.Context(), wc)
		if err != nil {
			require.ErrorIs(t, err, syscall.EOVERFLOW)
			break
		}
		n += m
	}
	require.Equal(t, 127, n, "what is there is delivered first")
	_, err = b.scq.Poll(wc)
	require.ErrorIs(t, err, syscall.EOVERFLOW)
	m, err := b.rcq.Poll(wc)
	require.NoError(t, err, "the other queue is whole")
	require.Zero(t, m)
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
			_, err := b.qp.Post(sends(sig, 7))
			require.NoError(t, err)
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
		_, err := b.qp.Post(append(sends(0, id), sends(sig, id+1)...))
		require.NoError(t, err)
		require.Equal(t, []uint64{id + 1}, ids(poll(t, b.scq)))
		_, err = b.qp.PostRecv(recvs(id, id+1))
		require.NoError(t, err)
		b.do(func() { b.kernel.Recv(&ring.WC{}); b.kernel.Recv(&ring.WC{}) })
		require.Equal(t, []uint64{id, id + 1}, ids(poll(t, b.rcq)))
	}
}

// rdma_rxe does not look at the send queue when a queue pair comes back from
// SQD: the bell tells it.
func TestBellAfterSQD(t *testing.T) {
	b := newBed(t, eight).connect()
	b.modify(abi.QPSSQD, abi.QPSRTS)
	bells := 0
	b.do(func() { b.dev.Bell = func(*kerneltest.QP) { bells++ } })
	b.modify(abi.QPSSQD, abi.QPSRTS)
	require.Zero(t, bells, "nothing was posted")
	b.modify(abi.QPSSQD)
	_, err := b.qp.Post(sends(sig, 1))
	require.NoError(t, err)
	require.Equal(t, 1, bells)
	b.do(func() { b.dev.Bell = func(qp *kerneltest.QP) { bells++; qp.Succeed() } })
	b.modify(abi.QPSRTS)
	require.Equal(t, 2, bells)
	require.Len(t, poll(t, b.scq), 1)
}

// rdma_rxe does not always hear the bell in ERR: the move there is repeated.
func TestSendsPostedInErrorAreFlushed(t *testing.T) {
	b := newBed(t, eight).connect()
	b.do(func() { b.kernel.DeafBell = true })
	b.modify(abi.QPSErr)
	for i := range uint64(20) {
		_, err := b.qp.Post(sends(sig, 3*i, 3*i+1, 3*i+2))
		require.NoError(t, err)
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
	_, err := b.qp.PostRecv(recvs(1))
	require.NoError(t, err)
	_, err = b.qp.Post(sends(sig, 2, 3))
	require.NoError(t, err)
	attr, err := b.qp.Query()
	require.NoError(t, err)
	require.Equal(t, abi.QPSErr, attr.State)
	require.Len(t, poll(t, b.scq), 2)
	require.Len(t, poll(t, b.rcq), 1)
}
