package shm

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/amount"
	"github.com/rdmashim/rdmashim/tests/explore"
)

// The protocol of the asleep word and the bell as a state machine, explored
// to the end: 1 … 3 producers of two records each, one consumer, and a program
// that dozes twice beside it and takes no record. A state in which nothing can
// go on and a record lies in a ring is a lost wake-up.

const mostProducers = 3

// world is a state. A producer is idle, has published, or must ring the
// bell; with checkFirst it may also have read asleep. The consumer runs,
// sets asleep words, looks, or sleeps.
type world struct {
	n        int // producers
	v        variant
	producer [mostProducers]uint8 // pc
	records  [mostProducers]uint8
	left     [mostProducers]uint8
	asleep   [mostProducers]bool
	event    bool
	consumer uint8 // pc
	ring     uint8 // that the consumer is at
	dozes    uint8 // that are left
	dozing   bool
}

const (
	idle = iota
	published
	mustWrite
	sawAwake
	sawAsleep
)

const (
	runs = iota
	sets
	looks
	sleeps
)

// variant holds the mistakes that a protocol may have.
type variant struct{ noLook, lookOne, checkFirst, noBell, dozerDrains, dozerClears, consumerLeaves bool }

// Steps lists the states that follow s.
func (s world) Steps() (out []explore.Step) {
	n, v := s.n, s.v
	for i := range n {
		t := s
		switch s.producer[i] {
		case idle:
			if s.left[i] == 0 {
				continue
			}
			if v.checkFirst {
				t.producer[i] = sawAwake
				if s.asleep[i] {
					t.producer[i] = sawAsleep
				}
				break
			}
			t.records[i]++
			t.left[i]--
			t.producer[i] = published
		case sawAwake, sawAsleep:
			t.records[i]++
			t.left[i]--
			t.producer[i] = idle
			if s.producer[i] == sawAsleep {
				t.producer[i] = published
			}
		case published:
			t.producer[i] = idle
			if s.asleep[i] {
				t.producer[i] = mustWrite
			}
			t.asleep[i] = false
		case mustWrite:
			t.producer[i] = idle
			t.event = !v.noBell
		}
		out = append(out, explore.Step{To: t})
	}
	if d, ok := s.doze(); ok {
		out = append(out, explore.Step{To: d})
	}
	t, problem := s, ""
	switch s.consumer {
	case runs:
		if s.records == [mostProducers]uint8{} {
			t.consumer, t.ring = sets, 0
		}
		t.records = [mostProducers]uint8{}
	case sets:
		t.asleep[s.ring] = true
		if t.ring++; int(t.ring) == n {
			t.consumer, t.ring = looks, 0
		}
	case looks:
		switch {
		case v.noLook:
			t.consumer = sleeps
		case s.records[s.ring] > 0:
			t.consumer, t.asleep = runs, [mostProducers]bool{}
		case v.lookOne || int(s.ring)+1 == n:
			t.consumer = sleeps
		default:
			t.ring++
		}
	case sleeps:
		if !s.event {
			return out
		}
		t.consumer, t.event = runs, v.consumerLeaves && s.dozing
		if t.event {
			problem = "a bell wakes the consumer twice"
		}
		if !s.dozing {
			t.asleep = [mostProducers]bool{}
		}
	}
	return append(out, explore.Step{To: t, Problem: problem})
}

// doze is the next step of the program that dozes: it falls asleep, or wakes up
// at any time. The consumer holds the lock while it sets and looks.
func (s world) doze() (t world, ok bool) {
	t = s
	alone := s.consumer != sleeps
	switch {
	case s.consumer == sets || s.consumer == looks:
		return t, false
	case s.dozing:
		t.dozing = false
		if alone || s.v.dozerDrains {
			t.event = false
		}
		if alone || s.v.dozerClears {
			t.asleep = [mostProducers]bool{}
		}
	case s.dozes == 0:
		return t, false
	default:
		t.dozes--
		t.dozing = s.records == [mostProducers]uint8{}
		for i := range s.n {
			t.asleep[i] = t.dozing || !alone
		}
	}
	return t, true
}

// Stuck: a consumer that sleeps for good leaves no record in a ring.
func (s world) Stuck() string {
	if s.records != [mostProducers]uint8{} {
		return "a wake-up is lost"
	}
	return ""
}

// producers is the first state of n producers and a consumer.
func producers(n int, v variant) world {
	w := world{n: n, v: v, dozes: 2}
	for i := range n {
		w.left[i] = 2
	}
	return w
}

func TestAsleepExplored(t *testing.T) {
	amount.Unraced(t)
	for n := 1; n <= mostProducers; n++ {
		t.Logf("%d producers: %d states", n, explore.Check(t, producers(n, variant{}), 1_000_000))
	}
	for name, v := range map[string]variant{
		"no second look":                {noLook: true},
		"looks at one ring only":        {lookOne: true},
		"asleep read before publishing": {checkFirst: true},
		"no bell":                       {noBell: true},
		"a dozer drains the bell":       {dozerDrains: true},
		"a dozer clears the words":      {dozerClears: true},
		"the bell is left to the dozer": {consumerLeaves: true},
	} {
		_, problem := explore.Find(producers(2, v), 1_000_000)
		require.NotEmpty(t, problem, name)
	}
}
