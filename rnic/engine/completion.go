package engine

import "github.com/rdmashim/rdmashim/kshim/abi"

// completionQueue holds completions until the caller fetches them. It grows to
// what is there at once and then stays.
type completionQueue struct {
	list []Completion
	head int
}

func (c *completionQueue) push(x Completion) {
	if c.head == len(c.list) {
		c.list, c.head = c.list[:0], 0
	}
	c.list = append(c.list, x)
}

func (c *completionQueue) pop(buf []Completion) int {
	n := copy(buf, c.list[c.head:])
	c.head += n
	return n
}

func (q *QP) complete(c Completion) {
	q.comps.push(c)
}

// completeSend completes a work request that succeeded.
func (q *QP) completeSend(w *sendWR) {
	c := Completion{
		ID: w.id, Opcode: w.kind.wc,
		Silent: !q.cfg.SigAll && w.flags&abi.SendSignaled == 0,
	}
	switch {
	case w.kind.returnsData():
		c.ByteLen = w.length
		if w.kind.isAtomic() {
			q.counters.Atomics++
		} else {
			q.counters.Reads++
		}
	case w.kind.local():
	case w.kind.wc == abi.WCSend:
		q.counters.Sends++
	default:
		q.counters.Writes++
	}
	q.complete(c)
}

// HasCompletions reports whether Completions would have something besides what
// it flushes.
func (q *QP) HasCompletions() bool { return q.comps.head < len(q.comps.list) }

// Completions moves completions into buf, in the order in which they came
// about, and returns how many; call it again while it fills buf. In ERR it
// flushes what was posted, send queue first, also what is posted later.
func (q *QP) Completions(buf []Completion) int {
	n := q.comps.pop(buf)
	if q.state == abi.QPSErr {
		n += q.flush(buf[n:])
	}
	return n
}
