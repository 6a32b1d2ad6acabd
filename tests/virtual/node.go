package virtual

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/engine"
	"github.com/rdmashim/rdmashim/rnic/engine/path"
	"github.com/rdmashim/rdmashim/rnic/mem"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// Node is a device: an address, a table of regions, and queue pairs.
type Node struct {
	Name    string
	Addr    netip.Addr
	Index   int
	Regions *mem.Table
	Paths   *path.Set     // shared by all queue pairs
	Stash   *engine.Stash // shared too; nil: those added from now on go back N
	QPs     []*QP
	// Foreign, if not nil, takes the node's packets in place of its queue
	// pairs. The packet is valid during the call only.
	Foreign func(from *Node, p *wire.Packet)

	world  *World
	frozen engine.Time
	port   *wireTime // see Options.OnePort
	qps    map[wire.QPN]*QP
	batch  *engine.Batch
}

// QP is a queue pair of a node, with what a driver keeps beside the engine.
type QP struct {
	*engine.QP
	Node     *Node
	Num      wire.QPN
	Receives ReceiveQueue
	// Sending is the state in which the packets that are being sent were
	// written.
	Sending abi.QPState

	done    [16]engine.Completion
	timer   engine.Time // when the earliest timer event of this queue pair is due
	timing  bool        // there is one
	pumping bool        // there is a pump event
	gone    bool        // destroyed
	spins   int         // timeouts in a row without the time having moved
	spinAt  engine.Time
}

func newNode(w *World, name string, addr netip.Addr, index int) *Node {
	var keys [32]byte
	binary.LittleEndian.PutUint64(keys[:], w.rand.Uint64())
	n := &Node{
		Name:    name,
		Addr:    addr,
		Index:   index,
		Regions: mem.NewTable(keys),
		Paths:   path.NewSet(w.opts.PathLimit, nil),
		world:   w,
		qps:     make(map[wire.QPN]*QP),
		batch:   engine.NewBatch(64),
	}
	if !w.opts.GoBackN {
		n.Stash = engine.NewStash()
	}
	return n
}

func (n *Node) addrPort() netip.AddrPort { return netip.AddrPortFrom(n.Addr, wire.Port) }

// AddQP makes a queue pair in RESET. The configuration's QPN must be new to the
// node; its Regions, Paths and Receives are the node's.
func (n *Node) AddQP(c engine.Config) *QP {
	qp := &QP{Node: n, Num: c.QPN}
	c.Regions, c.Paths, c.Stash = n.Regions, n.Paths, n.Stash
	c.Receives = &qp.Receives
	qp.QP = engine.New(c)
	n.qps[c.QPN] = qp
	n.QPs = append(n.QPs, qp)
	return qp
}

// Lookup returns the queue pair with a number, or nil.
func (n *Node) Lookup(num wire.QPN) *QP { return n.qps[num] }

// Remove destroys a queue pair: packets for it no longer find it, and its work
// is forgotten.
func (n *Node) Remove(qp *QP) {
	n.world.note(noteState, uint64(qp.Num), noteDestroyed)
	n.world.Logf("%-12s %s", "destroy", qp)
	qp.gone = true
	if err := qp.QP.Modify(n.world.now, abi.QPSReset, &engine.Attr{}, 0); err != nil {
		n.world.Fail(err)
	}
	delete(n.qps, qp.Num)
	n.QPs = slices.DeleteFunc(n.QPs, func(q *QP) bool { return q == qp })
}

// Post hands a work request to the queue pair and rings its bell.
func (qp *QP) Post(wr *engine.SendWR) error {
	if err := qp.QP.Post(qp.Node.world.now, wr); err != nil {
		return err
	}
	qp.pump()
	return nil
}

// PostReceive adds a receive.
func (qp *QP) PostReceive(wr engine.ReceiveWR) {
	qp.Receives.Push(wr)
}

// Poke lets the queue pair act on a change by its driver, as a driver does that
// posts a receive to a queue pair in ERR.
func (qp *QP) Poke() { qp.pump() }

// receive gives a packet to the engine.
func (qp *QP) receive(from *Node, p *wire.Packet) {
	w := qp.Node.world
	qp.QP.Receive(w.now, from.Addr, p)
	qp.drain()
	if w.opts.Batching <= 0 {
		qp.pump()
		return
	}
	qp.schedule()
	if !qp.pumping {
		qp.pumping = true
		w.events.push(event{at: w.now + engine.Time(w.rand.Uint64()%uint64(w.opts.Batching)), pump: qp})
	}
}

// pump lets the queue pair send, and makes its timeout an event.
func (qp *QP) pump() {
	n, w := qp.Node, qp.Node.world
	qp.pumping = false
	if qp.gone {
		return
	}
	for more := true; more && w.failure == nil; {
		b := n.batch
		b.Reset()
		qp.Sending = qp.State()
		more = qp.QP.Transmit(w.now, b)
		if more && len(b.Packets) == 0 {
			w.failf("%s: Transmit promised more and wrote nothing", qp)
		}
		for i := range b.Packets {
			w.launch(n, qp, &b.Packets[i])
		}
	}
	qp.drain()
	qp.schedule()
}

// drain takes completions.
func (qp *QP) drain() {
	w := qp.Node.world
	for {
		n := qp.QP.Completions(qp.done[:])
		if n == 0 {
			return
		}
		for i := range qp.done[:n] {
			qp.complete(&qp.done[i])
		}
		if w.failure != nil {
			return
		}
	}
}

func (qp *QP) complete(c *engine.Completion) {
	w := qp.Node.world
	flags := uint64(c.Flags)
	for i, b := range []bool{c.Recv, c.Solicited, c.Silent} {
		if b {
			flags |= 1 << (32 + i)
		}
	}
	w.note(noteCompleted, c.ID, uint64(c.Status)<<56|uint64(c.Opcode)<<48|uint64(c.ByteLen))
	w.note(noteCompleted, uint64(qp.Num), flags)
	if w.log != nil {
		w.log(fmt.Sprintf("%-12s %s %s", "completed", qp, formatCompletion(c)))
	}
	if w.opts.Watch != nil {
		w.opts.Watch.Completed(qp, c)
	}
}

// schedule makes the queue pair's next timeout an event, unless one that is not
// later is there already.
func (qp *QP) schedule() {
	at, ok := qp.QP.NextTimeout()
	if !ok || qp.timing && qp.timer <= at {
		return
	}
	w := qp.Node.world
	qp.timer, qp.timing = max(at, w.now), true
	w.events.push(event{at: qp.timer, timer: qp})
}

// maxSpins is how many timeouts in a row a queue pair may have without time
// passing.
const maxSpins = 1000

// timeout lets the queue pair's timeout happen if it is still due.
func (qp *QP) timeout(at engine.Time) {
	w := qp.Node.world
	if qp.gone || !qp.timing || at != qp.timer {
		return // an earlier event took its place
	}
	qp.timing = false
	if next, ok := qp.QP.NextTimeout(); ok && next <= w.now {
		if qp.spinAt != w.now {
			qp.spinAt, qp.spins = w.now, 0
		}
		if qp.spins++; qp.spins > maxSpins {
			w.failf("%s: HandleTimeout at %d leaves a timeout that is due at %d, again and again", qp, w.now, next)
			return
		}
		w.note(noteTimeout, uint64(qp.Node.Index), uint64(qp.Num))
		if w.log != nil {
			w.log(fmt.Sprintf("%-12s %s", "timeout", qp))
		}
		qp.QP.HandleTimeout(w.now)
		qp.pump()
		return
	}
	qp.schedule()
}

// Modify changes the queue pair's attributes and state and lets it act on that.
func (qp *QP) Modify(to abi.QPState, attr *engine.Attr, mask abi.QPAttrMask) error {
	w := qp.Node.world
	w.note(noteState, uint64(qp.Num), uint64(to))
	w.Logf("%-12s %s to %s", "modify", qp, to)
	if err := qp.QP.Modify(w.now, to, attr, mask); err != nil {
		return err
	}
	qp.pump()
	return nil
}

// Connect takes a queue pair from RESET to RTS with these attributes.
func (qp *QP) Connect(attr engine.Attr) error {
	for _, step := range []struct {
		to   abi.QPState
		mask abi.QPAttrMask
	}{
		{abi.QPSInit, abi.QPMaskAccessFlags},
		{abi.QPSRTR, abi.QPMaskAV | abi.QPMaskDestQPN | abi.QPMaskPathMTU | abi.QPMaskRQPSN |
			abi.QPMaskMaxDestRdAtomic | abi.QPMaskMinRNRTimer},
		{abi.QPSRTS, abi.QPMaskSQPSN | abi.QPMaskMaxQPRdAtomic | abi.QPMaskTimeout | abi.QPMaskRetryCnt | abi.QPMaskRNRRetry},
	} {
		if err := qp.Modify(step.to, &attr, step.mask); err != nil {
			return err
		}
	}
	return nil
}

// String names the node and the queue pair: "a/0x000011".
func (qp *QP) String() string { return qp.Node.Name + "/" + qp.Num.String() }

// At is the address to which packets for this queue pair go.
func (qp *QP) At() netip.AddrPort { return qp.Node.addrPort() }
