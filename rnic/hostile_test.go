package rnic

import (
	"bytes"
	"encoding/binary"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/ring"
)

func putIndex(q *ring.Queue, at int, v uint32) { binary.LittleEndian.PutUint32(q.Mapping()[at:], v) }

func TestSendIndexBeyondTheRing(t *testing.T) {
	for _, v := range []uint32{128, 0x7fffffff, 0xffffffff} {
		a, b := newPair(t, pairOptions{})
		for i := range uint64(3) {
			a.qp.postRecv(i)
		}
		putIndex(a.qp.sq, abi.QueueBufProducerIndex, v)
		require.ErrorIs(t, a.qp.qp.Doorbell(), syscall.EINVAL)
		require.Equal(t, abi.QPSErr, a.qp.qp.State())
		require.Equal(t, []abi.EventType{abi.EventQPFatal}, a.qp.asyncs())
		require.ErrorIs(t, a.qp.qp.Doorbell(), syscall.EINVAL)
		require.Len(t, a.qp.asyncs(), 1)

		// The other queue pairs of the device do not notice.
		q, p := joined(t, a, b, defaults())
		q.post(write(a, b, 1, 0, 0, 100))
		q.send.waitStatus(1, abi.WCSuccess)

		// RESET mends it.
		a.qp.modify(abi.ModifyQP{QPState: abi.QPSReset}, abi.QPMaskState)
		a.qp.sprod.Reset()
		a.qp.rprod.Reset()
		a.qp.connectTo(p, defaults())
		require.NoError(t, a.qp.qp.Doorbell())
	}
}

func TestReceiveIndexBeyondTheRing(t *testing.T) {
	a, b := newPair(t, pairOptions{})
	putIndex(b.qp.rq, abi.QueueBufProducerIndex, 4096)
	a.qp.post(&ring.SendWR{ID: 1, Opcode: abi.WRSend, Flags: abi.SendSignaled})
	a.qp.send.waitStatus(1, abi.WCRemOpErr)
	b.qp.recv.waitStatus(0, abi.WCLocQPOpErr)
	require.Equal(t, abi.QPSErr, b.qp.qp.State())
	require.Equal(t, []abi.EventType{abi.EventQPFatal}, b.qp.asyncs())
}

func TestCompletionIndexBeyondTheRing(t *testing.T) {
	a, b := newPair(t, pairOptions{})
	putIndex(a.qp.send.ring, abi.QueueBufConsumerIndex, 0xfffff)
	a.qp.post(write(a, b, 1, 0, 0, 8))
	<-a.qp.send.wake
	_, bad := a.qp.send.counts()
	require.Equal(t, 1, bad)
}

var le = binary.LittleEndian

// An entry that no honest client writes (kshim/ring has them all) ends its
// queue pair; the peer does not notice.
func TestMalformedSend(t *testing.T) {
	a, b := newPair(t, pairOptions{})
	a.qp.publish(write(a, b, 1, 0, 0, 8))
	slot := a.qp.sprod.Slot(0)
	require.NoError(t, encodeSend(slot, 2, write(a, b, 2, 0, 0, 8)))
	le.PutUint32(slot[abi.SendWQEOpcode:], 77)
	a.qp.sprod.Publish(1)
	a.qp.post(write(a, b, 3, 0, 0, 8))
	a.qp.send.waitStatus(1, abi.WCSuccess)
	a.qp.send.waitStatus(2, abi.WCLocQPOpErr)
	a.qp.send.waitStatus(3, abi.WCWRFlushErr)
	require.Equal(t, abi.QPSErr, a.qp.qp.State())
	require.Equal(t, abi.QPSRTS, b.qp.qp.State())
}

// TestMisposted: what libibverbs' extended sends get wrong ends as with rxe,
// and the log says whose fault it is, once a queue pair.
func TestMisposted(t *testing.T) {
	for name, c := range map[string]struct {
		length, elements uint32
		status           abi.WCStatus
		logged           string
	}{
		"short first element": {20, 2, abi.WCSuccess, "set_sge_list"},
		"long first element":  {200, 2, abi.WCLocQPOpErr, "set_sge_list"},
		"unmarked inline":     {20, 0, abi.WCLocQPOpErr, "set_inline_data"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			a, b := newPair(t, pairOptions{})
			a.mu.Lock()
			a.log = slog.New(slog.NewTextHandler(&log, nil))
			a.mu.Unlock()
			a.mem.fill(3)
			wr := write(a, b, 1, 0, 0, 10)
			wr.SGE = append(wr.SGE, a.mem.sge(512, 100))
			for range 2 {
				slot := a.qp.sprod.Slot(0)
				require.NoError(t, encodeSend(slot, 1, wr))
				le.PutUint32(slot[abi.SendWQEDMA+abi.DMALength:], c.length)
				le.PutUint32(slot[abi.SendWQEDMA+abi.DMAResid:], c.length)
				le.PutUint32(slot[abi.SendWQEDMA+abi.DMANumSGE:], c.elements)
				a.qp.sprod.Publish(1)
				_ = a.qp.qp.Doorbell()
				if wc := a.qp.send.wait(); wc.Status != c.status {
					require.Equal(t, abi.WCWRFlushErr, wc.Status, name)
				}
			}
			if c.status == abi.WCSuccess {
				require.Equal(t, append(a.mem.buf[:10:10], a.mem.buf[512:522]...), b.mem.buf[:20])
				require.Zero(t, b.mem.buf[20])
			}
			synctest.Wait()
			require.Equal(t, 1, strings.Count(log.String(), c.logged), "%s: %s", name, &log)
		})
	}
}

// More elements than were asked for, in a slot whose rounded size has room.
func TestMoreElementsThanGranted(t *testing.T) {
	a, b := newPair(t, pairOptions{qp: qpOptions{sges: 2}})
	sge := []ring.SGE{b.mem.sge(0, 1), b.mem.sge(1, 1), b.mem.sge(2, 1)}
	require.NoError(t, ring.EncodeRecv(b.qp.rprod.Slot(0), 5, &ring.RecvWR{SGE: sge}))
	b.qp.rprod.Publish(1)
	b.qp.postRecv(6)
	a.qp.post(&ring.SendWR{ID: 1, Opcode: abi.WRSend, Flags: abi.SendSignaled})
	a.qp.send.waitStatus(1, abi.WCRemOpErr)
	b.qp.recv.waitStatus(5, abi.WCLocQPOpErr)
	b.qp.recv.waitStatus(6, abi.WCWRFlushErr)
}

// A client that scribbles over its rings while the device works. The damage is
// the client's alone; the device, its peer and other queue pairs stay sane.
func TestScribbledRings(t *testing.T) {
	const rounds = 300
	a, b := newPair(t, pairOptions{})
	q, _ := joined(t, a, b, defaults())

	var stop atomic.Bool
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop.Store(true)
	for i, r := range []*ring.Queue{a.qp.sq, a.qp.rq, a.qp.send.ring, b.qp.rq} {
		words := r.Mapping()
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(i), 1))
			for !stop.Load() {
				// Indices now and then, entries most of the time: words that
				// may be right, and words that cannot be.
				at := abi.QueueBufData + rnd.IntN(4*512)
				if rnd.IntN(20) == 0 {
					at = []int{abi.QueueBufProducerIndex, abi.QueueBufConsumerIndex, abi.QueueBufIndexMask, 0}[rnd.IntN(4)]
				}
				scribble(words[at&^3:], []uint32{0, 1, 2, 8, 64, 0xffffffff, rnd.Uint32()}[rnd.IntN(7)])
				runtime.Gosched() // the devices need the processors, too
			}
		})
	}
	for i := range rounds {
		_ = a.qp.qp.Doorbell()
		if a.qp.qp.State() == abi.QPSErr && i%10 == 0 {
			a.qp.modify(abi.ModifyQP{QPState: abi.QPSReset}, abi.QPMaskState)
			a.qp.connectTo(b.qp, defaults())
		}
		q.post(write(a, b, uint64(i), 4096, 4096, 64))
		q.send.waitStatus(uint64(i), abi.WCSuccess)
	}
	stop.Store(true)
	wg.Wait()
	require.NoError(t, a.qp.qp.Destroy())
	require.NoError(t, b.qp.qp.Destroy())
}

// scribble writes a word as another process would: without synchronisation.
//
//go:norace
func scribble(b []byte, v uint32) { binary.LittleEndian.PutUint32(b, v) }
