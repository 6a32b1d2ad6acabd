package rnic

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/rnic/engine"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

func TestSenderListTakesTurns(t *testing.T) {
	var l senderList
	require.Nil(t, l.pop())
	all := make([]*QP, 100)
	for i := range all {
		all[i] = &QP{num: 1}
	}
	var want []*QP
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		q := all[r.IntN(len(all))]
		switch r.IntN(5) {
		case 0, 1:
			if !q.listed {
				want = append(want, q)
			}
			l.push(q)
			require.True(t, q.listed)
		case 2, 3:
			got := l.pop()
			if len(want) == 0 {
				require.Nil(t, got)
				continue
			}
			require.Same(t, want[0], got)
			require.False(t, got.listed)
			want = want[1:]
		case 4:
			l.moveToFront(q)
			for i, w := range want {
				if w == q {
					want = append([]*QP{q}, append(append([]*QP{}, want[:i]...), want[i+1:]...)...)
					break
				}
			}
		}
		require.Equal(t, len(want), l.n)
	}
}

func TestTimerHeap(t *testing.T) {
	var h timerHeap
	require.Equal(t, noAlarm, h.first())
	all := make([]*QP, 64)
	for i := range all {
		all[i] = &QP{places: places{slot: notInHeap}}
	}
	at := map[*QP]engine.Time{}
	r := rand.New(rand.NewPCG(3, 4))
	for range 50_000 {
		q := all[r.IntN(len(all))]
		switch r.IntN(3) {
		case 0:
			when := engine.Time(r.IntN(1000))
			h.wake(q, when)
			if old, in := at[q]; !in || when < old {
				at[q] = when
			}
		case 1:
			h.remove(q)
			delete(at, q)
		case 2:
			first := noAlarm
			for _, w := range at {
				first = min(first, w)
			}
			require.Equal(t, first, h.first())
			if len(at) > 0 {
				p := h.pop()
				require.Equal(t, first, at[p])
				require.Equal(t, notInHeap, p.slot)
				delete(at, p)
			}
		}
		require.Len(t, h, len(at))
	}
	for i, q := range h {
		require.Equal(t, i, q.slot)
	}
}

// TestDestroyedQueuePairIsInNoList destroys queue pairs that wait in the lists
// of an otherwise idle device, in each with others.
func TestDestroyedQueuePairIsInNoList(t *testing.T) {
	_, ds := neighbours(t, 1, 64)
	d := ds[0]
	for range 3 {
		q := newQP(t, d.Device, d.pd, qpOptions{})
		d.mu.Lock()
		for _, in := range []*QP{d.qp.qp, q.qp} {
			d.schedule(in)
			d.addHeld(in)
			d.timers.wake(in, noAlarm-1)
			d.mu.notes.leave(in)
		}
		d.mu.Mutex.Unlock() // the notes stay
		require.NoError(t, q.qp.Destroy())

		d.mu.Lock()
		require.Empty(t, d.changed)
		require.Zero(t, d.senders.n)
		require.Equal(t, []*QP{d.qp.qp}, d.held)
		require.True(t, d.owed.Load())
		require.Equal(t, timerHeap{d.qp.qp}, d.timers)
		require.True(t, d.mu.notes.empty())
		d.forget(d.qp.qp)
		require.False(t, d.owed.Load())
		d.mu.Unlock()
	}
}

// TestBatchOfClosed: the next device's batch is empty, and keeps no memory
// alive that a packet was lent.
func TestBatchOfClosed(t *testing.T) {
	b := takeBatch(3)
	b.Packets = append(b.Packets, wire.Datagram{Payload: []byte{1}}, wire.Datagram{Payload: []byte{2}})
	giveBatch(b)
	b = takeBatch(3)
	require.Empty(t, b.Packets)
	for _, p := range b.Packets[:3] {
		require.Zero(t, p)
	}
	giveBatch(b)
	require.Equal(t, 4, cap(takeBatch(4).Packets))
}
