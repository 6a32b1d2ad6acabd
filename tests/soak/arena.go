package soak

import (
	"bytes"

	"github.com/rdmashim/rdmashim/tests/virtual"
)

// arena is memory of a node. Engines see mem; want is what it must hold.
type arena struct {
	mem, want []byte
}

// newArena makes an arena of n random bytes.
func newArena(r *virtual.Rand, n int) *arena {
	n = (n + 7) &^ 7
	a := &arena{mem: make([]byte, n), want: make([]byte, n)}
	r.Fill(a.mem)
	copy(a.want, a.mem)
	return a
}

// farBase is where the arena lies as memory of another process (mem.Far).
const farBase = 0x7f00_0000_0000

func (a *arena) Read(dst []byte, addr uint64) error {
	copy(dst, a.mem[addr-farBase:][:len(dst)])
	return nil
}

func (a *arena) Write(addr uint64, src []byte) error {
	copy(a.mem[addr-farBase:][:len(src)], src)
	return nil
}

// scribble is the program writing to its own memory: random bytes, which must
// stay.
func (a *arena) scribble(r *virtual.Rand, at, n int) {
	r.Fill(a.mem[at : at+n])
	copy(a.want[at:at+n], a.mem[at:at+n])
}

// accept takes what lies in memory as what must be there.
func (a *arena) accept(at, n int) { copy(a.want[at:at+n], a.mem[at:at+n]) }

// block is the granularity in which differences are looked for.
const block = 256

// diff returns the first offset at or after from, and below to, at which memory
// is not as it must be; -1 if there is none.
func (a *arena) diff(from, to int) int {
	for at := from; at < to; {
		end := min((at+block)&^(block-1), to)
		if !bytes.Equal(a.mem[at:end], a.want[at:end]) {
			for ; a.mem[at] == a.want[at]; at++ {
			}
			return at
		}
		at = end
	}
	return -1
}

// differing counts the bytes that are not as they must be.
func (a *arena) differing(from, to int) int {
	n := 0
	for at := a.diff(from, to); at >= 0; at = a.diff(at, to) {
		for end := min((at+block)&^(block-1), to); at < end; at++ {
			if a.mem[at] != a.want[at] {
				n++
			}
		}
	}
	return n
}

// span is a piece of an arena.
type span struct{ at, n int }

func (s span) end() int { return s.at + s.n }

// overlaps reports whether two spans share a byte.
func (s span) overlaps(t span) bool { return s.n > 0 && t.n > 0 && s.at < t.end() && t.at < s.end() }

// gather copies the spans of b one after another.
func gather(b []byte, spans []span) []byte {
	if len(spans) == 1 {
		s := spans[0]
		return b[s.at:s.end():s.end()]
	}
	var out []byte
	for _, s := range spans {
		out = append(out, b[s.at:s.end()]...)
	}
	return out
}

// scatter fills the spans of b with data, which may be less.
func scatter(b []byte, spans []span, data []byte) {
	for _, s := range spans {
		data = data[copy(b[s.at:s.end()], data):]
	}
}

// total is the number of bytes of spans.
func total(spans []span) (n int) {
	for _, s := range spans {
		n += s.n
	}
	return n
}
