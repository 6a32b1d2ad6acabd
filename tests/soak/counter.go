package soak

import (
	"encoding/binary"
	"fmt"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/tests/virtual"
)

// counter is a word to which several lanes add powers of two, each once:
// request i adds 1<<i. So its bits say which requests were executed, and a
// request that was executed twice carries into another's bit. So does what each
// one returns.
type counter struct {
	*counters
	at    int
	users []*op
	lanes []*lane
}

// counters are the words of a node.
type counters struct {
	arena  *arena
	region *region
	words  []*counter
}

const wordsPerNode = 4

// newCounters makes a node's words, with 0 in them.
func newCounters(run *run, n *virtual.Node) (*counters, error) {
	c := &counters{arena: newArena(&run.rand, wordsPerNode*8+2*gap)}
	words := span{gap, wordsPerNode * 8}
	clear(c.arena.mem[words.at:words.end()])
	clear(c.arena.want[words.at:words.end()])
	c.region = run.newRegion(n, c.arena, words, pd, allAccess)
	for i := range wordsPerNode {
		c.words = append(c.words, &counter{counters: c, at: gap + 8*i})
	}
	return c, c.region.register()
}

// take gives a request a bit of a word; nil if there is none left.
func (c *counters) take(r *virtual.Rand, l *lane, o *op) *counter {
	w := c.words[r.Intn(len(c.words))]
	if len(w.users) == 64 {
		return nil
	}
	o.compare = 1 << len(w.users)
	w.users = append(w.users, o)
	w.lanes = append(w.lanes, l)
	return w
}

// returned checks what a successful FETCH_ADD brought back.
func (c *counter) returned(l *lane, o *op) error {
	o.executed = true
	for i, u := range c.users {
		bit := uint64(1) << i
		was := o.before&bit != 0
		switch {
		case u == o && was:
			return fmt.Errorf("%s: %s found its own addition done: it was executed twice (word %#x)", l.name, o, o.before)
		case u == o:
		case was && u.bug != fine:
			return fmt.Errorf("%s: %s saw %s of %s executed", l.name, o, u, c.lanes[i].name)
		case was && c.lanes[i].posted <= u.index:
			return fmt.Errorf("%s: %s returned %#x, with the bit of a request that was not posted yet", l.name, o, o.before)
		case c.lanes[i] == l && was != (u.index < o.index):
			return fmt.Errorf("%s: %s returned %#x: out of order with request %d", l.name, o, o.before, u.index)
		case u.done && u.status == abi.WCSuccess && was == (u.before&o.compare != 0):
			return fmt.Errorf("%s: %s returned %#x and request %d of %s returned %#x: each before, or each after, the other",
				l.name, o, o.before, u.index, c.lanes[i].name, u.before)
		}
	}
	if rest := o.before >> len(c.users); len(c.users) < 64 && rest != 0 {
		return fmt.Errorf("%s: %s returned %#x, but nobody adds beyond bit %d", l.name, o, o.before, len(c.users)-1)
	}
	return nil
}

// finish checks the words when all is over.
func (c *counters) finish() error {
	for _, w := range c.words {
		v := binary.NativeEndian.Uint64(c.arena.mem[w.at:])
		sum := uint64(0)
		for i, u := range w.users {
			bit := uint64(1) << i
			sum |= bit
			switch {
			case u.done && u.status == abi.WCSuccess && v&bit == 0:
				return fmt.Errorf("%s: %s succeeded, but the word is %#x: not added, or added twice", w.lanes[i].name, u, v)
			case v&bit != 0 && (u.bug != fine || w.lanes[i].posted <= u.index):
				return fmt.Errorf("%s: %s was executed: the word is %#x", w.lanes[i].name, u, v)
			}
		}
		if v&^sum != 0 {
			return fmt.Errorf("word %#x has bits that nobody adds (%#x): something was added twice", v, v&^sum)
		}
		binary.NativeEndian.PutUint64(c.arena.want[w.at:], v)
	}
	if at := c.arena.diff(0, len(c.arena.mem)); at >= 0 {
		return fmt.Errorf("byte %d beside the shared words was changed", at)
	}
	return nil
}
