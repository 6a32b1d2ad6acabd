package soak

import (
	"fmt"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/engine"
	"github.com/rdmashim/rdmashim/rnic/link/sim/virtual"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// Sent implements virtual.Watcher.
func (r *run) Sent(f *virtual.Flight) {
	if f.From == r.nodes[stranger] || f.Tag == forged {
		return
	}
	r.tally.Packets++
	r.tally.Bytes += uint64(len(f.Bytes))
	p, err := f.Packet()
	if err != nil {
		r.fail(fmt.Errorf("node %s sent a packet that does not parse: %w: %x", f.From.Name, err, f.Bytes))
		return
	}
	to := r.ends[f.To.Index][p.DestQPN]
	if to == nil || to.peer.node != f.From {
		r.fail(fmt.Errorf("node %s sent to a queue pair that it is not connected to: %s", f.From.Name, f))
		return
	}
	f.Tag = to.peer
	to.peer.seen.packets++
	to.peer.seen.bytes += uint64(len(p.Payload))
	r.fail(to.peer.checkPacket(f, &p))
	r.stray(f)
	r.forge(to.peer, &p)
}

// stray lets a stranger repeat the packet from its own address, with a right
// ICRC: nobody may listen to it.
func (r *run) stray(f *virtual.Flight) {
	if r.plan.stray > 0 && r.rand.Hit(r.plan.stray) {
		r.tally.Strays++
		r.world.Forge(r.nodes[stranger], f)
	}
}

const stranger = 2

// Dropped implements virtual.Watcher.
func (r *run) Dropped(f *virtual.Flight, why virtual.Fault) {
	if e, _ := f.Tag.(*end); e != nil {
		now := r.world.Now()
		e.flow.trouble, e.peer.flow.trouble = max(e.flow.trouble, now), max(e.peer.flow.trouble, now)
	}
}

// Arrives implements virtual.Watcher.
func (r *run) Arrives(f *virtual.Flight, qp *virtual.QP, p *wire.Packet) {
	if f.Flipped {
		r.tally.Masked++
	}
	if f.From == r.nodes[stranger] || f.Tag == forged {
		return
	}
	if e := r.endOf(qp); e != nil {
		e.arrives(f, p)
	}
}

// Arrived implements virtual.Watcher.
func (r *run) Arrived(f *virtual.Flight, qp *virtual.QP, p *wire.Packet) {
	e := r.endOf(qp)
	if e == nil {
		return
	}
	e.look()
	if !p.Opcode.IsRequest() {
		return
	}
	// Looking at a large memory after each packet would take most of the time.
	if len(e.in.target.mem) <= 64<<10 || r.rand.Hit(0.02) {
		r.fail(e.in.settle(0))
	}
}

// Completed implements virtual.Watcher.
func (r *run) Completed(qp *virtual.QP, c *engine.Completion) {
	e := r.endOf(qp)
	e.look()
	e.seen.completed(c)
	r.tally.Status[virtual.Status{Status: c.Status, Recv: c.Recv}]++
	if c.Recv {
		r.fail(e.in.received(c))
		return
	}
	l := e.out
	r.fail(l.sent(c))
	if r.world.Failure() != nil {
		return
	}
	o := l.ops[l.completed-1]
	if c.Status == abi.WCSuccess {
		r.tally.Requests[o.code]++
	} else if o.bug != fine && c.Status == outcomes[o.bug].send {
		r.tally.Mistakes[o.bug]++
	}
	if !l.resuming { // a slot is free again
		l.resuming = true
		r.world.At(r.world.Now(), func() { l.resuming = false; l.post() })
	}
}

func (r *run) endOf(qp *virtual.QP) *end { return r.ends[qp.Node.Index][qp.Num] }
