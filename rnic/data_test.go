package rnic

import (
	"encoding/binary"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/ring"
	"github.com/rdmashim/rdmashim/rnic/link"
)

func TestWriteAndRead(t *testing.T) {
	a, b := newPair(t, pairOptions{size: 17 << 20})
	a.mem.fill(1)
	id := uint64(100)
	for _, n := range []int{0, 1, 3, 4, 1023, 1024, 1025, 4096, 100_000, 16<<20 + 1} {
		clear(b.mem.buf)
		id++
		a.qp.post(write(a, b, id, 5, 77, n))
		wc := a.qp.send.waitStatus(id, abi.WCSuccess)
		require.Equal(t, abi.WCRDMAWrite, wc.Opcode)
		require.Equal(t, a.qp.qp.Num(), wc.QPN)
		require.Equal(t, a.mem.buf[5:5+n], b.mem.buf[77:77+n])
		require.Zero(t, b.mem.buf[76])
		require.Zero(t, b.mem.buf[77+n])

		clear(b.mem.buf)
		id++
		b.qp.post(&ring.SendWR{ID: id, Opcode: abi.WRRDMARead, Flags: abi.SendSignaled, SGE: []ring.SGE{b.mem.sge(10, n)},
			RemoteAddr: a.mem.at + 3, RKey: a.mem.mr.RKey()})
		wc = b.qp.send.waitStatus(id, abi.WCSuccess)
		require.Equal(t, abi.WCRDMARead, wc.Opcode)
		require.Equal(t, a.mem.buf[3:3+n], b.mem.buf[10:10+n])
	}
	require.Equal(t, uint64(10), a.counter(t, "rdma_writes"))
	require.Equal(t, uint64(10), b.counter(t, "rdma_reads"))
	require.Zero(t, b.counter(t, "drop_qpn")+b.counter(t, "drop_icrc")+b.counter(t, "drop_malformed"))
}

func TestSendReceive(t *testing.T) {
	a, b := newPair(t, pairOptions{qp: qpOptions{inline: 64}})
	a.mem.fill(2)
	for i, n := range []int{0, 5, 1024, 5000} {
		id := uint64(i)
		b.qp.postRecv(1000+id, b.mem.sge(0, 2000), b.mem.sge(10_000, 4000))
		a.qp.post(&ring.SendWR{ID: id, Opcode: abi.WRSendWithImm, Flags: abi.SendSignaled | abi.SendSolicited, Imm: 0xdeadbe00 + uint32(i), SGE: []ring.SGE{a.mem.sge(9, n)}})
		wc := b.qp.recv.waitStatus(1000+id, abi.WCSuccess)
		require.Equal(t, abi.WCRecv, wc.Opcode)
		require.Equal(t, abi.WCWithImm|abi.WCGRH, wc.Flags)
		require.Equal(t, 0xdeadbe00+uint32(i), wc.Imm)
		require.Equal(t, uint32(n), wc.ByteLen)
		require.Equal(t, a.qp.qp.Num(), wc.SrcQP)
		first := min(n, 2000)
		require.Equal(t, a.mem.buf[9:9+first], b.mem.buf[:first])
		require.Equal(t, a.mem.buf[9+first:9+n], b.mem.buf[10_000:10_000+n-first])
		a.qp.send.waitStatus(id, abi.WCSuccess)
	}
	b.qp.postRecv(50, b.mem.sge(0, 64))
	a.qp.post(&ring.SendWR{ID: 5, Opcode: abi.WRSend, Flags: abi.SendSignaled | abi.SendInline, Inline: []byte("inline")})
	require.Equal(t, uint32(6), b.qp.recv.waitStatus(50, abi.WCSuccess).ByteLen)
	require.Equal(t, "inline", string(b.mem.buf[:6]))
	a.qp.send.waitStatus(5, abi.WCSuccess)

	// WRITE with immediate consumes a receive.
	b.qp.postRecv(51)
	wr := write(a, b, 6, 0, 0, 3000)
	wr.Opcode, wr.Imm = abi.WRRDMAWriteWithImm, 7
	a.qp.post(wr)
	wc := b.qp.recv.waitStatus(51, abi.WCSuccess)
	require.Equal(t, abi.WCRecvRDMAWithImm, wc.Opcode)
	require.Equal(t, []uint32{7, 3000}, []uint32{wc.Imm, wc.ByteLen})
	require.Equal(t, a.mem.buf[:3000], b.mem.buf[:3000])
	a.qp.send.waitStatus(6, abi.WCSuccess)
}

func TestAtomics(t *testing.T) {
	a, b := newPair(t, pairOptions{})
	word := func(d *testDevice, off int) uint64 { return binary.NativeEndian.Uint64(d.mem.buf[off:]) }
	binary.NativeEndian.PutUint64(b.mem.buf[64:], 40)
	wr := &ring.SendWR{ID: 1, Opcode: abi.WRAtomicFetchAndAdd, Flags: abi.SendSignaled, SGE: []ring.SGE{a.mem.sge(8, 8)},
		RemoteAddr: b.mem.at + 64, RKey: b.mem.mr.RKey(), CompareAdd: 2}
	a.qp.post(wr)
	require.Equal(t, abi.WCFetchAdd, a.qp.send.waitStatus(1, abi.WCSuccess).Opcode)
	require.Equal(t, []uint64{40, 42}, []uint64{word(a, 8), word(b, 64)})

	wr.ID, wr.Opcode, wr.CompareAdd, wr.Swap = 2, abi.WRAtomicCmpAndSwp, 42, 99
	a.qp.post(wr)
	a.qp.send.waitStatus(2, abi.WCSuccess)
	require.Equal(t, []uint64{42, 99}, []uint64{word(a, 8), word(b, 64)})
	wr.ID = 3
	a.qp.post(wr)
	a.qp.send.waitStatus(3, abi.WCSuccess)
	require.Equal(t, []uint64{99, 99}, []uint64{word(a, 8), word(b, 64)}, "not equal: not swapped")
}

// Unsignaled work requests leave no completion, and their ring slots come back.
func TestUnsignaled(t *testing.T) {
	a, b := newPair(t, pairOptions{qp: qpOptions{depth: 7}})
	for i := range 100 {
		for range 6 {
			wr := write(a, b, 1, 0, 0, 2000)
			wr.Flags = 0
			a.qp.publish(wr)
		}
		a.qp.post(write(a, b, uint64(i), 0, 0, 1))
		a.qp.send.waitStatus(uint64(i), abi.WCSuccess)
		n, err := a.qp.sprod.Free()
		require.NoError(t, err)
		require.Equal(t, 7, n)
	}
	_, ok := a.qp.send.poll()
	require.False(t, ok)
}

// More work requests with one doorbell than one pull takes.
func TestDeepQueue(t *testing.T) {
	send := 4 * pullBatch
	a, b := newPair(t, pairOptions{qp: qpOptions{depth: send, inline: 8, sigAll: true}})
	big := newCQ(t, a.Device, send)
	q, p := newQP(t, a.Device, a.pd, qpOptions{depth: send, send: big}), newQP(t, b.Device, b.pd, qpOptions{})
	q.connectTo(p, defaults())
	p.connectTo(q, defaults())
	for i := range send {
		q.publish(write(a, b, uint64(i), 0, i*8, 8))
	}
	require.NoError(t, q.qp.Doorbell())
	for i := range send {
		big.waitStatus(uint64(i), abi.WCSuccess)
	}
}

func TestFaultsDoNotShow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 1 << 20
		a, b := newPair(t, pairOptions{size: size, faults: link.Faults{Loss: 0.05, Reorder: 0.1, Dup: 0.01, Corrupt: 0.005, Delay: 2 * time.Millisecond, Seed: 7}})
		a.mem.fill(3)
		const chunk = 64 << 10
		for off := 0; off < size; off += chunk {
			a.qp.post(write(a, b, uint64(off), off, off, chunk))
		}
		for off := 0; off < size; off += chunk {
			a.qp.send.waitStatus(uint64(off), abi.WCSuccess)
		}
		require.Equal(t, a.mem.buf, b.mem.buf)
		clear(a.mem.buf)
		a.qp.post(&ring.SendWR{ID: 9, Opcode: abi.WRRDMARead, Flags: abi.SendSignaled, SGE: []ring.SGE{a.mem.sge(0, size)}, RemoteAddr: b.mem.at, RKey: b.mem.mr.RKey()})
		a.qp.send.waitStatus(9, abi.WCSuccess)
		require.Equal(t, b.mem.buf, a.mem.buf)
		for _, name := range []string{"fault_loss", "fault_reorder", "fault_dup", "fault_delay", "retransmitted_pkts", "rcvd_seq_err"} {
			require.NotZero(t, a.counter(t, name), name)
		}
		require.NotZero(t, a.counter(t, "fault_corrupt")+b.counter(t, "fault_corrupt"))
		require.NotZero(t, b.counter(t, "duplicate_request"))
		require.NotZero(t, a.counter(t, "drop_icrc")+b.counter(t, "drop_icrc"))
		require.NoError(t, a.Close())
		require.NoError(t, b.Close())
	})
}

// Queue pairs of one device take turns: small requests finish while another
// queue pair still has a long way to go.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newPair(t, pairOptions{size: 8 << 20, faults: link.Faults{Delay: time.Millisecond}})
		small, peer := newQP(t, a.Device, a.pd, qpOptions{}), newQP(t, b.Device, b.pd, qpOptions{})
		small.connectTo(peer, defaults())
		peer.connectTo(small, defaults())
		a.qp.post(write(a, b, 1, 0, 0, 8<<20))
		for i := range 3 {
			small.post(write(a, b, uint64(i), 0, 0, 100))
			small.send.waitStatus(uint64(i), abi.WCSuccess)
		}
		_, done := a.qp.send.poll()
		require.False(t, done, "8 MiB cannot be through yet")
		a.qp.send.waitStatus(1, abi.WCSuccess)
		a.Close()
		b.Close()
	})
}

// Many queue pairs at once, under the race detector.
func TestManyQueuePairs(t *testing.T) {
	a, b := newPair(t, pairOptions{size: 1 << 20, faults: link.Faults{Loss: 0.01, Seed: 1}})
	a.mem.fill(9)
	const pairs, rounds, n = 16, 10, 5000
	done := make(chan error, pairs)
	for i := range pairs {
		q, p := newQP(t, a.Device, a.pd, qpOptions{}), newQP(t, b.Device, b.pd, qpOptions{})
		q.connectTo(p, defaults())
		p.connectTo(q, defaults())
		go func() {
			for r := range rounds {
				if err := encodeSend(q.sprod.Slot(0), uint64(r), write(a, b, uint64(r), i*n, i*n, n)); err != nil {
					done <- err
					return
				}
				q.sprod.Publish(1)
				if err := q.qp.Doorbell(); err != nil {
					done <- err
					return
				}
				if wc := q.send.wait(); wc.Status != abi.WCSuccess || wc.ID != uint64(r) {
					done <- fmt.Errorf("queue pair %d round %d: %+v", i, r, wc)
					return
				}
			}
			done <- nil
		}()
	}
	for range pairs {
		require.NoError(t, <-done)
	}
	require.Equal(t, a.mem.buf[:pairs*n], b.mem.buf[:pairs*n])
}
