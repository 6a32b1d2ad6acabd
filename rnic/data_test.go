package rnic

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/ring"
	"github.com/rdmashim/rdmashim/rnic/link"
)

// More work requests with one doorbell than one pull takes.
func TestDeepQueue(t *testing.T) {
	send := 4 * pullBatch
	a, b := newPair(t, pairOptions{qp: qpOptions{depth: send, inline: 8, sigAll: true}})
	big := newCQ(t, a.Device, send)
	q, p := newQP(t, a.Device, a.pd, qpOptions{depth: send, send: big}), newQP(t, b.Device, b.pd, qpOptions{})
	join(q, p, defaults())
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
	})
}

// Queue pairs of one device take turns: small requests finish while another
// queue pair still has a long way to go.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newPair(t, pairOptions{size: 8 << 20, faults: link.Faults{Delay: time.Millisecond}})
		small, _ := joined(t, a, b, defaults())
		a.qp.post(write(a, b, 1, 0, 0, 8<<20))
		for i := range 3 {
			small.post(write(a, b, uint64(i), 0, 0, 100))
			small.send.waitStatus(uint64(i), abi.WCSuccess)
		}
		_, done := a.qp.send.poll()
		require.False(t, done, "8 MiB cannot be through yet")
		a.qp.send.waitStatus(1, abi.WCSuccess)
	})
}
