package soak

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/engine"
	"github.com/rdmashim/rdmashim/rnic/mem"
	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tests/virtual"
)

const (
	silentPD     = 3
	silentDepth  = 8  // of send queues
	silentSGEs   = 3  // of a request
	silentInline = 64 // bytes
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

// silentEnd is a queue pair of a player: each call has one outcome.
type silentEnd struct {
	silentQueue
	player
	run      *silentRun
	node     *virtual.Node
	qpn      wire.QPN
	receives virtual.ReceiveQueue
	arena    *arena
	slot     int     // bytes of a receive's memory; the first one of the arena is that of sends
	whole    *region // all of the arena
	readOnly *region // all of it, too
	dead     uint32  // the key of a region that is gone
	batch    *engine.Batch
	sigAll   bool
	ids      uint64

	// The oracle's.
	state    abi.QPState
	posted   []*message       // sends that have not completed
	begun    int              // packets of posted[0] that were sent
	failed   *message         // the send that took the queue pair to ERR
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

// message is a send.
type message struct {
	wr      engine.SendWR
	spans   []span // of the payload in the sender's arena, if it is not inline
	status  abi.WCStatus
	payload []byte // from when it was sent

	src wire.QPN // of a datagram

	// Of an unreliable connection.
	good   int // with a status: packets that are sent before it shows
	region *region
	target span // of a WRITE, in the arena of the peer
	bug    bool // the peer refuses it
}

func (m *message) isWrite() bool { return isWrite(m.wr.Opcode) }

func (m *message) hasImm() bool {
	return m.wr.Opcode == abi.WRSendWithImm || m.wr.Opcode == abi.WRRDMAWriteWithImm
}

// length is what a WRITE announces, and what is sent unless the request fails.
func (m *message) length() int { return len(m.wr.Inline) + int(mem.ListLength(m.wr.SGE)) }

func (e *silentEnd) base() *silentEnd { return e }

// init gives a queue pair in RESET its place.
func (e *silentEnd) init(s *silentRun, p player, n *virtual.Node, qpn wire.QPN) {
	e.run, e.player, e.node, e.qpn = s, p, n, qpn
	e.batch, e.sigAll = engine.NewBatch(s.rand.Between(1, 4)), s.rand.Hit(0.3)
}

// equip makes the memory, of so many slots, and regions of all of it with
// rights. The last one is gone.
func (e *silentEnd) equip(slots int, rights ...abi.AccessFlags) (regions []*region, err error) {
	e.arena = newArena(&e.run.rand, slots*e.slot)
	for _, access := range rights {
		g := &region{
			span: span{0, len(e.arena.mem)}, node: e.node, arena: e.arena, iova: e.run.rand.Uint64() >> 24 << 3, access: access, pd: silentPD,
		}
		if err := g.register(); err != nil {
			return nil, err
		}
		regions = append(regions, g)
	}
	last := regions[len(regions)-1]
	e.whole, e.readOnly, e.dead = regions[0], regions[1], last.key
	return regions, last.deregister(0)
}

func (e *silentEnd) config() engine.Config {
	return engine.Config{
		QPN: e.qpn, PD: silentPD, Regions: e.node.Regions, Receives: &e.receives, SigAll: e.sigAll,
		SendDepth: silentDepth, MaxSendSGE: silentSGEs, MaxRecvSGE: silentSGEs, MaxInline: silentInline,
	}
}

// move changes the state, which must be allowed.
func (e *silentEnd) move(to abi.QPState, a engine.Attr, mask abi.QPAttrMask) error {
	if err := e.Modify(e.run.world.Now(), to, &a, mask); err != nil {
		return err
	}
	e.state = to
	switch to {
	case abi.QPSErr:
		e.fail(nil)
	case abi.QPSReset: // what was posted is forgotten; the program takes its receives back
		e.posted, e.begun, e.waiting, e.failed, e.held = nil, 0, nil, nil, nil
		e.receives.Clear()
	}
	e.moved(to, a, mask)
	return nil
}

// restart moves the queue pair to RESET, and begins a life with other numbers.
func (e *silentEnd) restart() error {
	if err := e.move(abi.QPSReset, engine.Attr{}, 0); err != nil {
		return err
	}
	e.run.reached["restart"]++
	e.renumber()
	return e.start()
}

// begin takes the queue pair to RTR, and mostly to RTS.
func (e *silentEnd) begin(init engine.Attr, initMask abi.QPAttrMask, rtr engine.Attr, rtrMask abi.QPAttrMask) error {
	err := e.move(abi.QPSInit, init, initMask)
	if err == nil {
		err = e.move(abi.QPSRTR, rtr, rtrMask)
	}
	if err == nil && !e.run.rand.Hit(0.2) {
		err = e.move(abi.QPSRTS, engine.Attr{SQPSN: e.psn()}, abi.QPMaskSQPSN)
	}
	return err
}

// flag draws how a request completes.
func (e *silentEnd) flag(m *message) {
	if e.run.rand.Hit(0.6) {
		m.wr.Flags |= abi.SendSignaled
	}
	if e.run.rand.Hit(0.3) {
		m.wr.Flags |= abi.SendSolicited
	}
}

// fill gives a request n bytes, inline or out of the arena.
func (e *silentEnd) fill(m *message, n int, inline bool) {
	r := &e.run.rand
	if inline {
		m.wr.Flags |= abi.SendInline
		m.wr.Inline = make([]byte, n)
		r.Fill(m.wr.Inline)
		return
	}
	m.spans = pieces(r, 0, n, silentSGEs)
	m.wr.SGE = []*region{e.whole, e.readOnly}[r.Intn(2)].list(m.spans)
}

// post posts a request, and holds the answer against what it must be.
func (e *silentEnd) post(m *message) error {
	var want error
	switch {
	case e.state != abi.QPSRTS && e.state != abi.QPSSQD && e.state != abi.QPSErr:
		want = syscall.EINVAL
	case len(e.posted) == silentDepth:
		want = syscall.ENOMEM
		e.run.reached["full send queue"]++
	}
	if err := e.Post(e.run.world.Now(), &m.wr); !errors.Is(err, want) {
		return fmt.Errorf("post in %v with %d outstanding: %v, must be %v", e.state, len(e.posted), err, want)
	}
	if want == nil {
		e.posted = append(e.posted, m)
	}
	return nil
}

// receiveAt posts a receive of at least n bytes into a slot of memory, unless
// another one lies there, with a mistake now and then.
func (e *silentEnd) receiveAt(slot, n int) {
	taken := func(v *silentReceive) bool { return v != nil && v.spans[0].at/e.slot == slot }
	if taken(e.held) || slices.ContainsFunc(e.waiting, taken) {
		return
	}
	r, at := &e.run.rand, slot*e.slot
	v := &silentReceive{wr: engine.ReceiveWR{ID: e.ids}}
	of := e.whole
	n += r.Intn(50)
	if r.Hit(0.04) {
		what := []string{"receive that is short", "receive in memory to read", "receive that is malformed"}[r.Intn(3)]
		switch e.run.reached[what]++; what {
		case "receive that is short":
			n = r.Intn(n)
		case "receive in memory to read":
			of, v.status = e.readOnly, abi.WCLocProtErr
		case "receive that is malformed":
			v.wr.Err, v.status = errMalformed, abi.WCLocQPOpErr
		}
	}
	v.spans = pieces(r, at, n, silentSGEs)
	v.wr.SGE = of.list(v.spans)
	e.arena.scribble(r, at, e.slot) // no packet may still go there
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
