package core

import (
	"maps"
	"slices"
	"testing"

	"github.com/rdmashim/rdmashim/tests/amount"
	"github.com/rdmashim/rdmashim/tests/explore"
)

// Steps lists what can happen next.
func (w *world) Steps() (out []explore.Step) {
	for _, a := range w.actions() {
		d := w.clone()
		problem := d.perform(a)
		out = append(out, explore.Step{Label: a.label, Problem: problem, To: d, Outside: a.outside})
	}
	return out
}

func (f fifo[T]) clone() fifo[T] { return fifo[T]{items: slices.Clone(f.items[f.head:])} }

// clone copies all but counters, which are zero.
func (w *world) clone() *world {
	d := *w
	c := *w.Client
	c.Repeats, c.Voids, c.Dropped = 0, 0, 0
	c.slots, c.free, c.methods = slices.Clone(c.slots), slices.Clone(c.free), maps.Clone(c.methods)
	for i := range c.slots {
		c.slots[i].slabs = c.slots[i].slabs.clone()
	}
	c.pending, c.freed = c.pending.clone(), c.freed.clone()
	d.Client = &c
	s := &Server{config: w.Server.config, made: w.Server.made, sessions: map[[16]byte]*Session{}, freed: w.Server.freed.clone(),
		shares: NewShares(MaxSessions)}
	d.Server = s
	s.attempts = maps.Clone(w.Server.attempts)
	for id, t := range s.attempts {
		t := *t
		s.attempts[id] = &t
	}
	if w.Session != nil {
		x := *w.Session
		x.server = s
		x.slots, x.methods, x.pending = slices.Clone(x.slots), slices.Clone(x.methods), x.pending.clone()
		for i := range x.slots {
			y := &x.slots[i]
			y.slabs = y.slabs.clone()
			y.reply.buffer = slices.Clone(y.reply.buffer)
		}
		if !x.ended {
			x.share = s.shares.Join(Address{})
			s.shares.take(x.share, 1)
			s.sessions[x.id] = &x
		}
		d.Session = &x
	}
	d.Calls, d.Reads, d.Running = slices.Clone(w.Calls), slices.Clone(w.Reads), slices.Clone(w.Running)
	d.Slabs = [2][]int{slices.Clone(w.Slabs[0]), slices.Clone(w.Slabs[1])}
	d.Conns = slices.Clone(w.Conns)
	for i := range d.Conns {
		d.Conns[i].To, d.Conns[i].From = slices.Clone(d.Conns[i].To), slices.Clone(d.Conns[i].From)
	}
	return &d
}

// worlds are the bounds of the exploration.
var worlds = []struct {
	name   string
	calls  int
	bounds bounds
	long   bool
}{
	{"two calls", 2, bounds{Epochs: 2, Slots: 1, Late: 1}, false},
	{"three calls, three connections", 3, bounds{Epochs: 3, Slots: 1, Late: 2}, true},
	{"two slots", 2, bounds{Epochs: 2, Slots: 2, Late: 2}, true},
	{"offers", 2, bounds{Epochs: 2, Slots: 1, Late: 1, Offer: true}, false},
	{"offers, two slots", 2, bounds{Epochs: 2, Slots: 2, Late: 2, Offer: true}, true},
	{"streams", 2, bounds{Epochs: 2, Slots: 1, Late: 1, Streams: true}, false},
	{"a session that is lost", 2, bounds{Epochs: 3, Slots: 1, Late: 2, Loses: true}, false},
}

// TestExplore holds, in all interleavings, that no call is executed twice, that
// each result is the call's own, that every call ends, that both ends stay in
// step, and that slots and slabs return.
func TestExplore(t *testing.T) {
	for _, c := range worlds {
		t.Run(c.name, func(t *testing.T) {
			if c.long {
				amount.Rest(t)
			}
			t.Logf("%d states", explore.Check(t, newWorld(c.bounds, c.calls), 2_000_000))
		})
	}
}
