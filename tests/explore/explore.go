package explore

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Model is a state of a small system.
type Model interface {
	// Steps lists what can happen next.
	Steps() []Step
	// Stuck says what is wrong with a state in which nothing can happen but
	// what comes from outside; "" is nothing.
	Stuck() string
}

// Step leads from one state to the next.
type Step struct {
	Label   string
	Problem string // a broken invariant
	To      Model
	Outside bool // it may never happen
}

// explorer holds the states that were reached.
type explorer struct {
	problem string           // the first one
	numbers map[uint64]int32 // states by their hash
	states  []origin
	queue   []Model    // states, nil when visited
	edges   [][2]int32 // from, to
	ends    []int32    // states in which nothing can happen
}

type origin struct {
	from  int32
	label string
}

// Check fails the test if Find finds a problem, and returns the number of
// states.
func Check(t *testing.T, init Model, atMost int) (states int) {
	t.Helper()
	states, problem := Find(init, atMost)
	if problem != "" {
		t.Fatal(problem)
	}
	return states
}

// Find tells of a state that breaks an invariant, is stuck, or cannot reach an
// end any more, and of more than atMost states; "" is nothing. It also returns
// the number of states that it has seen.
func Find(init Model, atMost int) (states int, problem string) {
	x := &explorer{numbers: map[uint64]int32{}}
	x.enter(init, origin{from: -1})
	for i := int32(0); int(i) < len(x.queue) && x.problem == ""; i++ {
		x.visit(i)
		if len(x.states) > atMost {
			return len(x.states), fmt.Sprintf("more than %d states", atMost)
		}
	}
	if x.problem == "" {
		x.allEnd()
	}
	return len(x.states), x.problem
}

func (x *explorer) enter(m Model, from origin) int32 {
	h := hash(m)
	if n, ok := x.numbers[h]; ok {
		return n
	}
	n := int32(len(x.states))
	x.numbers[h] = n
	x.states = append(x.states, from)
	x.queue = append(x.queue, m)
	return n
}

func (x *explorer) visit(i int32) {
	m := x.queue[i]
	x.queue[i] = nil
	next := m.Steps()
	outside := 0
	for _, n := range next {
		if n.Outside {
			outside++
		}
		if n.Problem != "" {
			x.report(i, n.Label, n.Problem)
		}
		x.edges = append(x.edges, [2]int32{i, x.enter(n.To, origin{i, n.Label})})
	}
	if len(next) > outside {
		return
	}
	x.ends = append(x.ends, i)
	if problem := m.Stuck(); problem != "" {
		x.report(i, "nothing more happens", problem)
	}
}

// allEnd goes back from the ends: a state that it does not reach can go on for
// ever and get nowhere.
func (x *explorer) allEnd() {
	slices.SortFunc(x.edges, func(a, b [2]int32) int { return int(a[1] - b[1]) })
	reached := make([]bool, len(x.states))
	for list := x.ends; len(list) > 0; {
		at := list[len(list)-1]
		list = list[:len(list)-1]
		if reached[at] {
			continue
		}
		reached[at] = true
		k, _ := slices.BinarySearchFunc(x.edges, at, func(e [2]int32, to int32) int { return int(e[1] - to) })
		for ; k < len(x.edges) && x.edges[k][1] == at; k++ {
			list = append(list, x.edges[k][0])
		}
	}
	if i := slices.Index(reached, false); i >= 0 {
		x.report(int32(i), "it goes on for ever", "no end can be reached")
	}
}

func (x *explorer) report(at int32, last, problem string) {
	if x.problem != "" {
		return
	}
	trace := []string{last}
	for ; at > 0; at = x.states[at].from {
		trace = append(trace, x.states[at].label)
	}
	slices.Reverse(trace)
	x.problem = fmt.Sprintf("after %d states: %s\n\ttrace: %s", len(x.states), problem, strings.Join(trace, "; "))
}
