package emu

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// drain reads all that is in a queue.
func (q *eventQueue) drain(t *testing.T) (elements []uint64) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for {
		e, _, err := q.take(ctx, 16, 16)
		if err != nil {
			require.Equal(t, context.Canceled, err)
			require.Nil(t, q.head)
			require.Nil(t, q.tail)
			require.Zero(t, q.runs)
			return elements
		}
		elements = append(elements, e)
	}
}

// TestEventOrder holds the queue against a list, with sources that come and go.
func TestEventOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	q := newEventQueue()
	var want []uint64
	sources := map[uint64]*source{}
	counts := map[uint64]uint32{}
	next := uint64(0)
	for range 20000 {
		id := next - uint64(rng.IntN(4))
		s := sources[id]
		switch n := rng.IntN(20); {
		case n == 0 || s == nil:
			sources[next] = &source{queue: q, element: next}
			next++
		case n == 1:
			require.Equal(t, counts[id], s.retire())
			var left []uint64
			for _, e := range want {
				if e != id {
					left = append(left, e)
				}
			}
			want = left
			s.post() // too late
			require.Nil(t, s.first)
			delete(sources, id)
		case n < 9 && len(want) > 0:
			e, _, err := q.take(t.Context(), 16, 16)
			require.NoError(t, err)
			require.Equal(t, want[0], e)
			want = want[1:]
			counts[e]++
		default:
			s.post()
			want = append(want, id)
		}
	}
	require.Equal(t, want, q.drain(t))
}

// TestEventOverflow: a queue without a reader keeps a bounded number of places,
// and still every event. Posting takes no memory then.
func TestEventOverflow(t *testing.T) {
	q := newEventQueue()
	a, b, c := &source{queue: q, element: 1}, &source{queue: q, element: 2}, &source{queue: q, element: 3}
	const each = maxRuns
	for range each {
		a.post()
		b.post()
	}
	require.Equal(t, maxRuns, q.runs)
	c.post()
	c.post()
	a.post()
	require.Equal(t, maxRuns+1, q.runs, "one that has none waiting gets its place")
	require.Zero(t, testing.AllocsPerRun(100, func() { b.post(); a.post() }))
	got := map[uint64]int{}
	list := q.drain(t)
	require.Equal(t, []uint64{1, 2, 1, 2}, list[:4])
	for _, e := range list {
		got[e]++
	}
	require.Equal(t, map[uint64]int{1: each + 1 + 101, 2: each + 101, 3: 2}, got)
	a.post()
	b.post()
	require.Equal(t, []uint64{1, 2}, q.drain(t), "in order again")
}
