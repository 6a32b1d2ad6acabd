package shm

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The protocol of the asleep word and the bell as a state machine, explored
// to the end: 1 … 3 producers of two records each, one consumer. A state in
// which nothing can go on and a record lies in a ring is a lost wake-up.

const mostProducers = 3

// world is a state. A producer is idle, has published, or must ring the
// bell; with checkFirst it may also have read asleep. The consumer runs,
// sets asleep words, looks, or sleeps.
type world struct {
	producer [mostProducers]uint8 // pc
	records  [mostProducers]uint8
	left     [mostProducers]uint8
	asleep   [mostProducers]bool
	event    bool
	consumer uint8 // pc
	ring     uint8 // that the consumer is at
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

type variant struct {
	name                                string
	noLook, lookOne, checkFirst, noBell bool
}

// steps returns the states that follow s.
func (s world) steps(n int, v variant) (out []world) {
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
		out = append(out, t)
	}
	t := s
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
		t.consumer, t.event = runs, false
		t.asleep = [mostProducers]bool{}
	}
	return append(out, t)
}

// exploreAsleep returns the number of states, and one that has lost a wake-up.
func exploreAsleep(n int, v variant) (states int, lost *world) {
	first := world{}
	for i := range n {
		first.left[i] = 2
	}
	seen, queue := map[world]bool{first: true}, []world{first}
	for len(queue) > 0 {
		s := queue[0]
		queue = queue[1:]
		next := s.steps(n, v)
		if len(next) == 0 && s.records != [mostProducers]uint8{} {
			return len(seen), &s
		}
		for _, t := range next {
			if !seen[t] {
				seen[t] = true
				queue = append(queue, t)
			}
		}
	}
	return len(seen), nil
}

func TestAsleepExplored(t *testing.T) {
	for n := 1; n <= mostProducers; n++ {
		states, lost := exploreAsleep(n, variant{})
		require.Nil(t, lost, "%d producers", n)
		t.Logf("%d producers: %d states", n, states)
	}
	for _, v := range []variant{
		{name: "no second look", noLook: true},
		{name: "looks at one ring only", lookOne: true},
		{name: "asleep read before publishing", checkFirst: true},
		{name: "no bell", noBell: true},
	} {
		_, lost := exploreAsleep(2, v)
		require.NotNil(t, lost, v.name)
	}
}
