package verbs

import (
	"errors"
	"syscall"
	"testing"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/ring"
	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/kerneltest"
)

func TestDataPathDoesNotAllocate(t *testing.T) {
	b := newBed(t, QPInit{MaxSendWR: 64, MaxRecvWR: 64, MaxSendSGE: 2, MaxInline: 32}).connect()
	b.Record = false
	wc := make([]WC, 4)
	data := []byte("inline")
	bad := 0
	allocs := testing.AllocsPerRun(200, func() {
		n, err := b.qp.Post([]SendWR{
			{ID: 1, Opcode: abi.WRRDMAWrite, Flags: sig, SGE: []SGE{{Addr: 1, Length: 2, LKey: 3}}},
			{ID: 2, Opcode: abi.WRSend, Flags: sig | abi.SendInline, Inline: data},
		})
		m, perr := b.scq.Poll(wc)
		if n != 2 || m != 2 || err != nil || perr != nil {
			bad++
		}
		if m, err := b.scq.Poll(wc); m != 0 || err != nil {
			bad++
		}
	})
	require.Zero(t, bad)
	require.Zero(t, allocs, "post, doorbell and poll")

	receive := func() { b.kernel.Recv(&ring.WC{}) }
	allocs = testing.AllocsPerRun(200, func() {
		n, err := b.qp.PostRecv([]RecvWR{{ID: 1, SGE: []SGE{{Addr: 1, Length: 2, LKey: 3}}}})
		b.do(receive)
		if m, perr := b.rcq.Poll(wc); n != 1 || m != 1 || err != nil || perr != nil {
			bad++
		}
	})
	require.Zero(t, bad)
	require.Zero(t, allocs, "receive and poll")

	b.do(func() { b.dev.Bell = func(*kerneltest.QP) {} })
	_, err := b.qp.Post(sends(sig, make([]uint64, 64)...))
	require.NoError(t, err)
	full := sends(sig, 1)
	allocs = testing.AllocsPerRun(100, func() {
		if _, err := b.qp.Post(full); !errors.Is(err, syscall.ENOMEM) {
			bad++
		}
	})
	require.Zero(t, bad)
	require.Zero(t, allocs, "a full queue met in a busy loop")
}

func BenchmarkPostPoll(b *testing.B) {
	bed := newBed(b, QPInit{MaxSendWR: 64}).connect()
	bed.Record = false
	wc := make([]WC, 1)
	batch := []SendWR{{Opcode: abi.WRRDMAWrite, Flags: sig, SGE: []SGE{{Addr: 1, Length: 2, LKey: 3}}}}
	b.ReportAllocs()
	for b.Loop() {
		_, _ = bed.qp.Post(batch)
		_, _ = bed.scq.Poll(wc)
	}
}

func BenchmarkEmptyPoll(b *testing.B) {
	bed := newBed(b, QPInit{MaxSendWR: 64}).connect()
	wc := make([]WC, 1)
	for b.Loop() {
		_, _ = bed.scq.Poll(wc)
	}
}
