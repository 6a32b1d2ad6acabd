package shm

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tests/explore"
)

// lending is a buffer of two halves that a sender lends for one packet, which
// it may send again, and which may be doubled and delayed on the way. At any
// time it may take the buffer back; the program then writes to it.
type lending struct {
	mistake string

	buffer  [2]uint8 // 1: what was sent; 2: what the program wrote afterwards
	again   int      // times that it may still be sent
	delayed int      // copies that are on their way to the ring
	states  []uint64 // of the records
	over    bool     // the lease
	at      int      // with over: the record that is taken back next
	owned   bool     // the program has the buffer
	gaveUp  bool     // the receiver was not waited for

	reads     int      // the record that the receiver is at
	does      uint8    // its next or present act
	sees      uint64   // claiming without compare and swap: the state
	got       [2]uint8 // the bytes it has read
	delivered bool
}

const (
	takes uint8 = iota
	claims
	readsFirst
	readsSecond
	settles
)

// Steps lists what can happen next.
func (s lending) Steps() (out []explore.Step) {
	add := func(label string, outside bool, f func(t *lending)) {
		t := s
		t.states = slices.Clone(s.states)
		f(&t)
		out = append(out, explore.Step{Label: label, Problem: t.problem(&s), To: t, Outside: outside})
	}
	if s.again > 0 && !s.over && !s.owned {
		add("sends", false, func(t *lending) { t.again--; t.states = append(t.states, wire.Ready) })
		add("sends, and a copy is delayed", true, func(t *lending) {
			t.again--
			t.delayed++
			t.states = append(t.states, wire.Ready)
		})
	}
	if s.delayed > 0 {
		add("the copy comes", false, func(t *lending) {
			if t.delayed--; !t.over || t.mistake == "a lease that nobody looks at" {
				t.states = append(t.states, wire.Ready)
			}
		})
	}
	if s.delivered && !s.over && !s.owned {
		add("is acknowledged", false, func(t *lending) { t.owned = true })
	}
	if !s.over && !s.owned {
		add("is flushed", true, func(t *lending) { t.over = true })
	}
	s.recallSteps(add)
	if s.owned && s.buffer[1] == 1 {
		add("writes", false, func(t *lending) {
			if t.buffer[0] == 2 {
				t.buffer[1] = 2
			}
			t.buffer[0] = 2
		})
	}
	s.receiverSteps(add)
	return out
}

func (s lending) recallSteps(add func(string, bool, func(*lending))) {
	if !s.over || s.owned {
		return
	}
	if s.at == len(s.states) {
		add("has the buffer back", false, func(t *lending) { t.owned = true })
		return
	}
	switch s.states[s.at] {
	case wire.Ready:
		add("takes a record back", false, func(t *lending) {
			if t.mistake != "no void" {
				t.states[t.at] = wire.Void
			}
			t.at++
		})
	case wire.Pulling:
		if s.mistake == "no wait" {
			add("does not wait", false, func(t *lending) { t.at++ })
			return
		}
		add("waits no longer", true, func(t *lending) {
			t.states[t.at], t.gaveUp = wire.Void, true
			t.at++
		})
	default:
		add("passes a record", false, func(t *lending) { t.at++ })
	}
}

func (s lending) receiverSteps(add func(string, bool, func(*lending))) {
	next := func(t *lending) { t.reads++; t.does, t.sees, t.got = takes, 0, [2]uint8{} }
	switch s.does {
	case takes:
		if s.reads == len(s.states) {
			return
		}
		if s.delivered && s.mistake != "a duplicate is read" {
			add("drops a duplicate", false, next)
			return
		}
		if s.mistake == "a claim in two steps" {
			add("looks at the state", false, func(t *lending) { t.sees, t.does = t.states[t.reads], claims })
			return
		}
		add("claims", false, func(t *lending) {
			if t.states[t.reads] != wire.Ready {
				next(t)
				return
			}
			t.states[t.reads], t.does = wire.Pulling, readsFirst
		})
	case claims:
		add("claims", false, func(t *lending) {
			if t.sees != wire.Ready {
				next(t)
				return
			}
			t.states[t.reads], t.does = wire.Pulling, readsFirst
		})
	case readsFirst:
		add("reads", false, func(t *lending) { t.got[0], t.does = t.buffer[0], readsSecond })
	case readsSecond:
		add("reads the rest", false, func(t *lending) { t.got[1], t.does = t.buffer[1], settles })
	case settles:
		add("settles", false, func(t *lending) {
			if t.states[t.reads] == wire.Pulling || t.mistake == "settling whatever the state" {
				t.states[t.reads], t.delivered = wire.Done, true
				return
			}
			next(t)
		})
	}
}

// problem tells what is wrong with a step from was.
func (s *lending) problem(was *lending) string {
	if s.delivered && was.does == settles && s.does == settles && was.got != [2]uint8{1, 1} {
		return fmt.Sprintf("%v is delivered", was.got)
	}
	reading := was.does == readsFirst && s.does == readsSecond || was.does == readsSecond && s.does == settles
	if reading && was.owned && !was.gaveUp {
		return "a buffer is read that its owner has back"
	}
	if s.does == settles && was.does == settles && s.delivered && !was.delivered {
		s.reads++
		s.does, s.got = takes, [2]uint8{}
	}
	return ""
}

// Stuck: a program that waits for its buffer gets it.
func (s lending) Stuck() string {
	if s.over && !s.owned {
		return "the buffer does not come back"
	}
	return ""
}

// In all interleavings what is delivered is what was sent, and a buffer that
// its owner has back is not read, but by a device that counts as gone.
func TestLoansExplored(t *testing.T) {
	first := lending{buffer: [2]uint8{1, 1}, again: 3}
	t.Logf("%d states", explore.Check(t, first, 1_000_000))
	for _, mistake := range []string{
		"no wait", "no void", "a claim in two steps", "settling whatever the state",
		"a lease that nobody looks at", "a duplicate is read",
	} {
		first.mistake = mistake
		_, problem := explore.Find(first, 1_000_000)
		require.NotEmpty(t, problem, mistake)
		t.Logf("%s: %s", mistake, problem)
	}
}
