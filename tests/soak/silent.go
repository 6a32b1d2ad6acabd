package soak

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/engine"
	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tests/virtual"
)

// silentQueue is a queue pair of a service without acknowledgements.
type silentQueue interface {
	State() abi.QPState
	Counters() *engine.Counters
	Modify(now engine.Time, to abi.QPState, attr *engine.Attr, mask abi.QPAttrMask) error
	Post(now engine.Time, wr *engine.SendWR) error
	Receive(now engine.Time, from netip.Addr, p *wire.Packet)
	Transmit(now engine.Time, b *engine.Batch) (more bool)
	Completions(buf []engine.Completion) int
	Outstanding() int
}

// silentEnd is what the soaks of datagrams and of unreliable connections know
// of a queue pair alike: nothing is sent again, and nothing waits, so that each
// call has one outcome.
type silentEnd struct {
	silentQueue
	node     *virtual.Node
	qpn      wire.QPN
	receives virtual.ReceiveQueue
	arena    *arena
	whole    *region // all of the arena
	readOnly *region // all of it, too
	dead     uint32  // the key of a region that is gone
	batch    *engine.Batch
	sigAll   bool
	ids      uint64

	// The oracle's.
	state    abi.QPState
	waiting  []*silentReceive // receives that no message has taken
	held     *silentReceive   // that a message of several packets has taken
	expect   []engine.Completion
	counters engine.Counters
}

// silentReceive is a receive.
type silentReceive struct {
	wr     engine.ReceiveWR
	spans  []span
	status abi.WCStatus // of any message that fits
}

// silentWorld makes a network that loses, repeats, reorders and damages
// packets.
func silentWorld(r *virtual.Rand, log func(string)) *virtual.World {
	share := func(top float64) float64 { return top * float64(r.Intn(2)*r.Intn(1000)) / 1000 }
	return virtual.New(virtual.Options{Seed: r.Uint64(), Log: log, Faults: virtual.Faults{
		Loss: share(0.2), Dup: share(0.2), Reorder: share(0.3), Corrupt: share(0.1), Delay: share(0.1), MaxHold: 300 * engine.Microsecond,
	}})
}

func newSilentEnd(r *virtual.Rand, n *virtual.Node, qpn wire.QPN) silentEnd {
	return silentEnd{node: n, qpn: qpn, batch: engine.NewBatch(r.Between(1, 4)), sigAll: r.Hit(0.3)}
}

// postReceive posts a receive of at least n bytes into a slot of memory, unless
// another one lies there, with a mistake now and then.
func (e *silentEnd) postReceive(r *virtual.Rand, reached map[string]int, slot span, n, sges int) {
	taken := func(v *silentReceive) bool { return v != nil && v.spans[0].at/slot.n == slot.at/slot.n }
	if taken(e.held) || slices.ContainsFunc(e.waiting, taken) {
		return
	}
	v := &silentReceive{wr: engine.ReceiveWR{ID: e.ids}}
	of := e.whole
	n += r.Intn(50)
	if r.Hit(0.04) {
		what := []string{"receive that is short", "receive in memory to read", "receive that is malformed"}[r.Intn(3)]
		switch reached[what]++; what {
		case "receive that is short":
			n = r.Intn(n)
		case "receive in memory to read":
			of, v.status = e.readOnly, abi.WCLocProtErr
		case "receive that is malformed":
			v.wr.Err, v.status = errMalformed, abi.WCLocQPOpErr
		}
	}
	v.spans = pieces(r, slot.at, n, sges)
	v.wr.SGE = of.list(v.spans)
	e.arena.scribble(r, slot.at, slot.n) // no packet may still go there
	e.receives.Push(v.wr)
	e.waiting = append(e.waiting, v)
}

// pieces makes at most so many spans of n bytes from at on, with gaps of a
// byte.
func pieces(r *virtual.Rand, at, n, most int) []span {
	var list []span
	for left := r.Between(1, most); left > 0; left-- {
		m := n
		if left > 1 {
			m = r.Intn(n + 1)
		}
		list = append(list, span{at, m})
		at, n = at+m+1, n-m
	}
	return list
}

// checkPost holds the answer to a post against what it must be: with so many
// requests outstanding in a queue of a depth.
func (e *silentEnd) checkPost(reached map[string]int, outstanding, depth int, err error) (posted bool, _ error) {
	var want error
	switch {
	case e.state != abi.QPSRTS && e.state != abi.QPSSQD && e.state != abi.QPSErr:
		want = syscall.EINVAL
	case outstanding == depth:
		want = syscall.ENOMEM
		reached["full send queue"]++
	}
	if !errors.Is(err, want) {
		return false, fmt.Errorf("post in %v with %d outstanding: %v, must be %v", e.state, outstanding, err, want)
	}
	return want == nil, nil
}

// sendAll lets the queue pair send all that it has, and checks each packet
// before it leaves.
func (e *silentEnd) sendAll(now engine.Time, check func(*wire.Datagram) error) error {
	for more := true; more; {
		e.batch.Reset()
		more = e.Transmit(now, e.batch)
		if more && len(e.batch.Packets) == 0 {
			return errors.New("a Transmit promises more and writes nothing")
		}
		for i := range e.batch.Packets {
			if err := check(&e.batch.Packets[i]); err != nil {
				return err
			}
			e.node.Send(&e.batch.Packets[i])
		}
	}
	return nil
}

// check takes the completions, which must be the expected ones, and holds
// state, memory and counters against what they must be.
func (e *silentEnd) check() error {
	var buf [1]engine.Completion
	for _, want := range e.expect {
		if n := e.Completions(buf[:]); n != 1 || buf[0] != want {
			return fmt.Errorf("%d completions %+v, the next must be %+v", n, buf[0], want)
		}
	}
	e.expect = e.expect[:0]
	if n := e.Completions(buf[:]); n != 0 {
		return fmt.Errorf("a completion too many: %+v", buf[0])
	}
	if e.State() != e.state {
		return fmt.Errorf("in state %v, must be in %v", e.State(), e.state)
	}
	if at := e.arena.diff(0, len(e.arena.mem)); at >= 0 {
		return fmt.Errorf("byte %d of memory is not what the packets that arrived make of it", at)
	}
	if *e.Counters() != e.counters {
		return fmt.Errorf("counters %+v, must be %+v", *e.Counters(), e.counters)
	}
	return nil
}

// checkEnd holds that nothing is outstanding in the end but what waits for a
// message or for RTS.
func (e *silentEnd) checkEnd(posted int) error {
	if e.Outstanding() != posted || e.receives.Len() != len(e.waiting) {
		return fmt.Errorf("%d sends and %d receives are left, must be %d and %d", e.Outstanding(), e.receives.Len(), posted, len(e.waiting))
	}
	return nil
}

func receiveFailed(v *silentReceive, s abi.WCStatus) engine.Completion {
	return engine.Completion{ID: v.wr.ID, Status: s, Opcode: abi.WCRecv, Recv: true, Solicited: true}
}
