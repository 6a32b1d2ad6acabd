package core

import (
	"fmt"
	"slices"
	"testing"

	"github.com/rdmashim/rdmashim/tests/amount"
	"github.com/rdmashim/rdmashim/tests/explore"
)

// pumpModel is some waiters of one completion queue. A completion, in any
// order, or a deadline makes each one's wish come true.
type pumpModel struct {
	Pump   Pump
	W      []*pumpWaiter
	CQ     []int // waiters that the completions are for
	ToCome []int // completions that have not come yet
	Woken  bool  // the interrupt of the next wait
	Batch  int
}

type pumpWaiter struct {
	Waiter  Waiter
	Next    Step
	Filled  bool // the wake-up that Sleep waits for
	Wish    bool
	Looked  bool  // and has not told Next yet
	Saw     bool  // what it saw
	Wakes   []int // waiters that it has yet to wake
	Left    bool
	Entered bool
	Passes  bool // it leads or looks once, sleeps never, and leaves
	Did     bool // it has

	// A deadline: it passes, fills, interrupts.
	Deadline                 bool // it has one
	Passed, Fills, Interrupt bool
}

func newPumpModel(waiters, deadlines, passers, batch int) *pumpModel {
	m := &pumpModel{Batch: batch}
	for i := range waiters {
		m.W = append(m.W, &pumpWaiter{Deadline: i < deadlines})
		m.ToCome = append(m.ToCome, i)
	}
	for range passers {
		m.W = append(m.W, &pumpWaiter{Passes: true})
	}
	return m
}

func (m *pumpModel) clone() *pumpModel {
	c := *m
	c.CQ, c.ToCome = slices.Clone(m.CQ), slices.Clone(m.ToCome)
	c.W = nil
	moved := map[*Waiter]*Waiter{}
	for _, w := range m.W {
		d := *w
		d.Wakes = slices.Clone(w.Wakes)
		c.W = append(c.W, &d)
		moved[&w.Waiter] = &d.Waiter
	}
	c.Pump = Pump{leader: moved[m.Pump.leader]}
	for _, w := range m.Pump.waiters {
		c.Pump.waiters = append(c.Pump.waiters, moved[w])
	}
	return &c
}

func (m *pumpModel) index(w *Waiter) int {
	return slices.IndexFunc(m.W, func(x *pumpWaiter) bool { return &x.Waiter == w })
}

func (m *pumpModel) registered(i int) bool { return slices.Contains(m.Pump.waiters, &m.W[i].Waiter) }

func (m *pumpModel) Steps() (out []explore.Step) {
	add := func(label string, change func(*pumpModel)) {
		c := m.clone()
		change(c)
		out = append(out, explore.Step{Label: label, To: c})
	}
	for k, who := range m.ToCome {
		add(fmt.Sprintf("a completion for %d comes", who), func(c *pumpModel) {
			c.ToCome = slices.Delete(c.ToCome, k, k+1)
			c.CQ = append(c.CQ, who)
		})
		out[len(out)-1].Outside = true
	}
	for i, w := range m.W {
		m.deadline(i, w, add)
		m.waiter(i, w, add)
	}
	return out
}

func (m *pumpModel) deadline(i int, w *pumpWaiter, add func(string, func(*pumpModel))) {
	switch {
	case !w.Deadline || !w.Entered:
	case !w.Passed && !w.Left:
		add(fmt.Sprintf("the deadline of %d passes", i), func(c *pumpModel) {
			c.W[i].Passed = true
			c.W[i].Fills = true
		})
	case w.Fills:
		add(fmt.Sprintf("its timer wakes %d", i), func(c *pumpModel) {
			c.W[i].Interrupt = c.Pump.Wake(&c.W[i].Waiter)
			c.W[i].Filled = c.W[i].Filled || !c.W[i].Interrupt
			c.W[i].Fills = false
		})
	case w.Interrupt:
		add(fmt.Sprintf("the timer of %d interrupts the leader", i), func(c *pumpModel) {
			c.Woken = true
			c.W[i].Interrupt = false
		})
	}
}

// waiter is what waiter i does next, as the loop around Next does.
func (m *pumpModel) waiter(i int, w *pumpWaiter, add func(string, func(*pumpModel))) {
	next := func(c *pumpModel, done bool) {
		step, successor := c.Pump.Next(&c.W[i].Waiter, done)
		c.W[i].Next, c.W[i].Left, c.W[i].Looked = step, step == Leave, false
		if successor != nil {
			c.W[i].Wakes = []int{c.index(successor)}
		}
	}
	switch {
	case len(w.Wakes) > 0:
		add(fmt.Sprintf("%d wakes %d", i, w.Wakes[0]), func(c *pumpModel) {
			if who := w.Wakes[0]; w.Left || c.registered(who) {
				c.W[who].Filled = true
			}
			if c.W[i].Wakes = c.W[i].Wakes[1:]; len(c.W[i].Wakes) == 0 && !w.Left {
				next(c, false)
			}
		})
	case w.Left:
	case !w.Entered:
		add(fmt.Sprintf("%d enters", i), func(c *pumpModel) {
			c.W[i].Entered = true
			next(c, false)
		})
	case w.Next == Look && !w.Looked:
		saw := w.Wish || w.Passed || w.Did
		add(fmt.Sprintf("%d looks: %v", i, saw), func(c *pumpModel) { c.W[i].Looked, c.W[i].Saw = true, saw })
	case w.Next == Look:
		add(fmt.Sprintf("%d goes on", i), func(c *pumpModel) { next(c, w.Saw) })
	case w.Passes && (w.Next == Sleep || len(m.CQ) == 0):
		add(fmt.Sprintf("%d passes", i), func(c *pumpModel) {
			c.W[i].Did = true
			next(c, false)
		})
	case w.Next == Sleep && w.Filled:
		add(fmt.Sprintf("%d wakes", i), func(c *pumpModel) {
			c.W[i].Filled = false
			next(c, false)
		})
	case w.Next == Lead && len(m.CQ) > 0:
		add(fmt.Sprintf("%d hands out completions of %v", i, m.CQ), func(c *pumpModel) {
			n := min(c.Batch, len(c.CQ))
			for _, who := range c.CQ[:n] {
				c.W[who].Wish = true
			}
			c.W[i].Wakes, c.CQ = c.CQ[:n:n], c.CQ[n:]
			c.W[i].Did = w.Passes
		})
	case w.Next == Lead && m.Woken:
		add(fmt.Sprintf("%d is interrupted", i), func(c *pumpModel) {
			c.Woken = false
			next(c, false)
		})
	}
}

func (m *pumpModel) Stuck() string {
	led, waits := false, false
	for i, w := range m.W {
		switch {
		case w.Left || !w.Entered || w.Passes:
			continue
		case w.Wish:
			return fmt.Sprintf("%d waits for ever though its wish has come true", i)
		case w.Passed:
			return fmt.Sprintf("%d waits for ever though its deadline has passed", i)
		}
		waits = true
		led = led || w.Next == Lead
	}
	if waits && !led {
		return "somebody waits, and nobody leads"
	}
	return ""
}

// TestExplorePump holds that no waiter sleeps with its wish fulfilled, in any
// interleaving.
func TestExplorePump(t *testing.T) {
	for _, c := range []struct {
		waiters, deadlines, passers, batch int
		long                               bool
	}{
		{2, 0, 0, 2, false},
		{2, 1, 0, 2, false},
		{2, 2, 0, 1, false},
		{3, 0, 0, 2, false},
		{2, 0, 1, 2, false},
		{2, 1, 1, 1, false},
		{3, 1, 0, 2, true},
		{3, 2, 0, 2, true},
	} {
		t.Run(fmt.Sprintf("waiters %d deadlines %d passers %d batch %d", c.waiters, c.deadlines, c.passers, c.batch), func(t *testing.T) {
			if c.long {
				amount.Rest(t)
			}
			t.Logf("%d states", explore.Check(t, newPumpModel(c.waiters, c.deadlines, c.passers, c.batch), 2_000_000))
		})
	}
}
