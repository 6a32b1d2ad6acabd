package core

import (
	"testing"

	"github.com/rdmashim/rdmashim/tests/amount"
	"github.com/rdmashim/rdmashim/tests/explore"
)

// TestExploreRing looks at every interleaving of two ends with small rings.
func TestExploreRing(t *testing.T) {
	// Four quanta of a byte, and a chunk is one: CREDIT goes for each.
	sized := func(slots, controls uint64) bounds {
		ring := Layout{4, 1}
		return bounds{Config{Ring: ring, Longest: 1, Staging: Layout{8, 1}, Slots: slots, Controls: controls}, 1}
	}
	for _, c := range []struct {
		name       string
		b          bounds
		setup      func(a, b *side)
		fine, late bool
		full       int // ends that have filled the other's ring
		long       bool
	}{
		{name: "one way and FIN", b: sized(16, 8), long: true, setup: func(a, b *side) {
			a.Left, a.Closes = 5, true
			b.Reads, b.Closes = true, true
		}},
		{name: "one way and FIN, acknowledged late", b: sized(16, 8), full: 1, late: true, setup: func(a, b *side) {
			a.Left, a.Closes = 1, true
			b.Reads, b.Closes = true, true
		}},
		{name: "posts keep the order of their credit", b: sized(16, 8), fine: true, setup: func(a, b *side) {
			a.Left, a.Reads = 1, true
			b.Left, b.Reads = 1, true
		}},
		{name: "both write and read", b: sized(16, 8), fine: true, late: true, long: true, setup: func(a, b *side) {
			a.Left, a.Reads = 2, true
			b.Left, b.Reads = 2, true
		}},
		{name: "both write, read and close", b: sized(16, 8), long: true, setup: func(a, b *side) {
			a.Left, a.Reads, a.Closes = 2, true, true
			b.Left, b.Reads, b.Closes = 1, true, true
		}},
		{name: "both are blocked until they read", b: sized(16, 8), full: 2, setup: func(a, b *side) {
			a.Left, a.Reads = 1, true
			b.Left, b.Reads = 1, true
		}},
		{name: "nobody reads", b: sized(16, 8), setup: func(a, b *side) {
			a.Left, a.Always = 5, true
			b.Left, b.Always = 1, true
		}},
		{name: "a reader's controls fill no share of their own", b: sized(24, 4), setup: func(a, b *side) {
			a.Left = 10
			b.Reads = true
		}},
		{name: "a reader's controls leave slots to its data", b: sized(12, 4), setup: func(a, b *side) {
			a.Left, a.Reads = 3, true
			b.Left, b.Reads = 1, true
		}},
		{name: "a CREDIT leaves a staged chunk its slot", b: sized(2, 1), fine: true, late: true, setup: func(a, b *side) {
			a.Left, a.Reads = 1, true
			b.Left = 2
		}},
		{name: "one ends its data, reads and leaves", b: sized(16, 8), late: true, setup: func(a, b *side) {
			a.Left = 1
			b.Reads, b.Closes, b.Leaves = true, true, true
		}},
		{name: "one leaves with unread data behind its own", b: sized(16, 8), fine: true, late: true, setup: func(a, b *side) {
			a.Left, a.Reads = 2, true
			b.Left, b.Resets = 2, true
		}},
		{name: "a CREDIT without a slot is kept", b: sized(2, 1), late: true, setup: func(a, b *side) {
			a.Left = 7
			b.Reads = true
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.long {
				amount.Rest(t)
			}
			w := &world{[2]*side{newSide(c.b), newSide(c.b)}, c.fine, c.late}
			for i := range c.full {
				w.fill(i)
			}
			c.setup(w.Side[0], w.Side[1])
			t.Logf("%d states", explore.Check(t, w, 100_000))
		})
	}
}

// fill writes side i's chunks until the peer's ring is full.
func (w *world) fill(i int) {
	s := w.Side[i]
	for s.Left = 1; w.canStage(i); s.Left = 1 {
		w.stage(i)
		w.settle(i)
		w.deliver(i)
		w.settle(i)
	}
}
