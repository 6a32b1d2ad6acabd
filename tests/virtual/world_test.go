package virtual

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/rnic/engine"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// TestRandNeverChanges compares with the published values of splitmix64.
func TestRandNeverChanges(t *testing.T) {
	r := NewRand(0)
	for _, want := range []uint64{0xe220a8397b1dcdaf, 0x6e789e6aa1b965f4, 0x06c45d188009454f} {
		require.Equal(t, want, r.Uint64())
	}
	r = NewRand(0)
	b := make([]byte, 11)
	r.Fill(b)
	require.Equal(t, []byte{0xaf, 0xcd, 0x1d, 0x7b, 0x39, 0xa8, 0x20, 0xe2, 0xf4, 0x65, 0xb9}, b)
}

func TestEventsHappenInOrder(t *testing.T) {
	w := New(Options{})
	var got []int
	note := func(i int) func() { return func() { got = append(got, i) } }
	w.At(30, note(4))
	w.At(10, note(1))
	w.At(20, func() {
		note(2)()
		w.At(5, note(3)) // not in the past
	})
	w.At(10, note(10))
	require.NoError(t, w.Run(25, 100))
	require.Equal(t, []int{1, 10, 2, 3}, got)
	require.Equal(t, engine.Time(25), w.Now())
	require.NoError(t, w.Run(1000, 100))
	require.Equal(t, []int{1, 10, 2, 3, 4}, got)
}

func TestRunEndsWithTooManyEvents(t *testing.T) {
	w := New(Options{})
	var again func()
	again = func() { w.At(w.Now(), again) }
	again()
	require.ErrorIs(t, w.Run(1, 1000), ErrStuck)
	require.ErrorIs(t, w.Failure(), ErrStuck)
}

// pair is a world with two nodes that have no queue pairs: a packet that
// arrives with a right ICRC is counted in Drops.QPN.
func pair(f Faults) (w *World, send func(n int)) {
	w = New(Options{Seed: 7, Faults: f})
	a, b := w.AddNode("a", netip.MustParseAddr("10.0.0.1")), w.AddNode("b", netip.MustParseAddr("10.0.0.2"))
	p := wire.Packet{BTH: wire.BTH{Opcode: wire.RCAck, PKey: wire.DefaultPKey, DestQPN: 5}}
	return w, func(n int) {
		for range n {
			w.Inject(a, b, &p, nil)
		}
		_ = w.Run(w.Now()+engine.Time(engine.Second), 10*n)
	}
}

func TestFaultsHitAtTheirRates(t *testing.T) {
	const n = 20000
	w, send := pair(Faults{Loss: 0.1, Dup: 0.2, Reorder: 0.3, Corrupt: 0.05, Delay: 0.01, MaxHold: engine.Millisecond})
	send(n)
	h := w.Hit
	require.InDelta(t, 0.1*n, h[Lost], 0.01*n)
	require.InDelta(t, 0.2*0.9*n, h[Duplicated], 0.01*n)
	require.InDelta(t, 0.3*0.9*n, h[Reordered], 0.015*n)
	require.InDelta(t, 0.05*0.9*n, h[Corrupted], 0.01*n)
	require.InDelta(t, 0.01*0.7*0.9*n, h[Delayed], 0.005*n)
	require.Equal(t, uint64(n)-h[Lost]+h[Duplicated], w.Drops.QPN+w.Drops.ICRC, "every packet arrives or is lost")
	require.Greater(t, w.Drops.ICRC, h[Corrupted]*9/10)
}

func TestPartitionAndHeal(t *testing.T) {
	w, send := pair(Faults{})
	send(10)
	w.Cut(w.nodes[0], w.nodes[1], true)
	send(10)
	w.Cut(w.nodes[0], w.nodes[1], false)
	send(10)
	require.Equal(t, uint64(20), w.Drops.QPN)
	require.Equal(t, uint64(10), w.Hit[Partitioned])
	require.False(t, w.way(w.nodes[0], w.nodes[1]).cut)
}

// TestFrozenNodeGetsItsPacketsLater: nothing is lost, all of it waits.
func TestFrozenNodeGetsItsPacketsLater(t *testing.T) {
	w, send := pair(Faults{})
	w.Freeze(w.nodes[1], 3*engine.Time(engine.Second))
	send(5)
	require.Zero(t, w.Drops.QPN)
	require.NoError(t, w.Run(3*engine.Time(engine.Second), 100))
	require.Equal(t, uint64(5), w.Drops.QPN)
}

// TestTraceTellsRunsApart: one more packet, or one packet at another time, is
// another trace.
func TestTraceTellsRunsApart(t *testing.T) {
	trace := func(n int, f Faults) Trace {
		w, send := pair(f)
		send(n)
		return w.Trace()
	}
	delay := Faults{Delay: 1, MaxHold: engine.Millisecond}
	require.Equal(t, trace(5, delay), trace(5, delay))
	require.NotEqual(t, trace(5, delay), trace(6, delay))
	require.NotEqual(t, trace(5, delay), trace(5, Faults{}))
}
