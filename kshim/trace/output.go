package trace

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// Option changes the output of New.
type Option func(*output)

// WithName puts a name in brackets before each line: whose call it is.
func WithName(name string) Option {
	return func(o *output) {
		if name != "" {
			o.prefix = "[" + oneLine(name) + "] "
		}
	}
}

// WithTime shows when a call began, in seconds since New, and in angle brackets
// how long it took.
func WithTime() Option { return func(o *output) { o.timed = true } }

// WithPin shows Pin and its release, which are no system calls.
func WithPin() Option { return func(o *output) { o.pins = true } }

// WithMemory is for a program that announces none of its memory, because its
// kernel sees all of it: slice is the n bytes at an address, nil where none can
// be.
func WithMemory(slice func(addr, n uint64) []byte) Option {
	return func(o *output) { o.memory = slice }
}

// output prints lines.
type output struct {
	prefix string
	timed  bool
	pins   bool
	start  time.Time
	memory func(addr, n uint64) []byte
	trace  string // calls are spans of this trace (spans.go); "" prints lines

	mu sync.Mutex // one Write at a time
	w  io.Writer  // guarded by mu
}

// line is one call on its way to being printed.
type line struct {
	out   *output
	begun time.Time
	b     []byte

	args, result int // where in b the arguments end, and the answer begins
}

// call begins a line: the call's name and its opening parenthesis.
func (o *output) call(name string) *line {
	l := &line{out: o, b: make([]byte, 0, 512)}
	l.b = append(l.b, o.prefix...)
	if o.timed {
		l.begun = time.Now()
	}
	if o.timed && o.trace == "" {
		l.b = fmt.Appendf(l.b, "%11.6f ", l.begun.Sub(o.start).Seconds())
	}
	l.b = append(append(l.b, name...), '(')
	return l
}

func (l *line) text(s string) *line {
	l.b = append(l.b, s...)
	return l
}

// returns closes the arguments. It is called before the call is made, so that
// what follows is its answer.
func (l *line) returns() *line {
	l.args = len(l.b)
	l.text(") = ")
	l.result = len(l.b)
	return l
}

// print ends the line and writes it, at once. A line that cannot be written is
// lost.
func (l *line) print() {
	switch {
	case l.out.trace != "":
		l.b = l.span()
	case l.out.timed:
		l.b = fmt.Appendf(l.b, " <%.6f>\n", time.Since(l.begun).Seconds())
	default:
		l.b = append(l.b, '\n')
	}
	l.out.mu.Lock()
	defer l.out.mu.Unlock()
	_, _ = l.out.w.Write(l.b)
}
