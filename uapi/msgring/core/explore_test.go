package core

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/rdmashim/rdmashim/rnic/splitmix"
)

// A model is a small system of real cores, all of whose interleavings explore
// looks at.
type model interface {
	// steps lists what can happen next; a problem is a broken invariant.
	steps() []transition
	// stuck says what is wrong with a state in which nothing can happen but
	// what comes from outside; "" is nothing.
	stuck() string
}

type transition struct {
	label   string
	problem string
	to      model
	outside bool // it may never happen
}

// explorer visits every state that can be reached, breadth first, so that the
// trace that it prints is a shortest one.
type explorer struct {
	t       *testing.T
	numbers map[uint64]int32 // states by their hash
	states  []origin
	queue   []model    // states, nil when visited
	edges   [][2]int32 // from, to
	ends    []int32    // states in which nothing can happen
}

type origin struct {
	from  int32
	label string
}

// explore fails the test if a state breaks an invariant, is stuck, or cannot
// reach an end any more. It returns the number of states.
func explore(t *testing.T, init model, atMost int) (states int) {
	t.Helper()
	x := &explorer{t: t, numbers: map[uint64]int32{}}
	x.enter(init, origin{from: -1})
	for i := int32(0); int(i) < len(x.queue); i++ {
		x.visit(i)
		if len(x.states) > atMost {
			t.Fatalf("more than %d states", atMost)
		}
	}
	x.allEnd()
	return len(x.states)
}

func (x *explorer) enter(m model, from origin) int32 {
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
	next := m.steps()
	outside := 0
	for _, n := range next {
		if n.outside {
			outside++
		}
		if n.problem != "" {
			x.report(i, n.label, n.problem)
		}
		x.edges = append(x.edges, [2]int32{i, x.enter(n.to, origin{i, n.label})})
	}
	if len(next) > outside {
		return
	}
	x.ends = append(x.ends, i)
	if problem := m.stuck(); problem != "" {
		x.report(i, "nothing more happens", problem)
	}
}

// allEnd goes back from the ends: what it does not reach can go on for ever and
// get nowhere.
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
	x.t.Helper()
	trace := []string{last}
	for ; at > 0; at = x.states[at].from {
		trace = append(trace, x.states[at].label)
	}
	slices.Reverse(trace)
	x.t.Fatalf("after %d states: %s\n\ttrace: %s", len(x.states), problem, strings.Join(trace, "; "))
}

// hash is a hash of all that a model holds.
func hash(m model) uint64 {
	h := hasher(0)
	h.value(reflect.ValueOf(m))
	return uint64(h)
}

type hasher uint64

// word mixes a word in, as splitmix64 does.
func (h *hasher) word(w uint64) { *h = hasher(splitmix.Mix(uint64(*h) ^ w)) }

func (h *hasher) value(v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		h.word(1)
		if v.Bool() {
			h.word(1)
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		h.word(uint64(v.Int()))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		h.word(v.Uint())
	case reflect.String:
		h.word(uint64(v.Len()))
		for _, c := range []byte(v.String()) {
			h.word(uint64(c))
		}
	case reflect.Slice, reflect.Array:
		h.word(uint64(v.Len()))
		for i := range v.Len() {
			h.value(v.Index(i))
		}
	case reflect.Struct:
		if head := v.FieldByName("head"); head.IsValid() { // a fifo
			items := v.FieldByName("items")
			h.value(items.Slice(int(head.Int()), items.Len()))
			return
		}
		for i := range v.NumField() {
			h.value(v.Field(i))
		}
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			h.word(0)
			return
		}
		h.word(1)
		h.value(v.Elem())
	default:
		panic(fmt.Sprintf("a model holds %s", v.Kind()))
	}
}
