package soak

import (
	"fmt"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/engine"
	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tests/virtual"
)

// Sent implements virtual.Watcher.
func (r *run) Sent(f *virtual.Flight) {
	if f.From == r.nodes[stranger] || f.Tag == forged {
		return
	}
	r.tally[packetsSent]++
	r.tally["run: bytes sent"] += len(f.Bytes)
	p, err := f.Packet()
	if err != nil {
		r.fail(fmt.Errorf("node %s sent a packet that does not parse: %w: %x", f.From.Name, err, f.Bytes))
		return
	}
	e := r.ends[f.QP]
	if e == nil || e.gone || f.To != e.peer.node || p.DestQPN != e.peer.qp.Num {
		r.fail(fmt.Errorf("%s sent to a queue pair that it is not connected to: %s", f.QP, f))
		return
	}
	f.Tag = e
	e.seen.SentPkts++
	e.seen.SentBytes += uint64(len(p.Payload))
	r.fail(e.checkPacket(f, &p))
	r.stray(f)
	r.forge(e, &p)
}

// stray lets a stranger repeat the packet from its own address, with a right
// ICRC: no queue pair may accept it.
func (r *run) stray(f *virtual.Flight) {
	if r.plan.stray > 0 && r.rand.Hit(r.plan.stray) {
		r.tally["fault: from a stranger"]++
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
		r.tally["fault: outside of ICRC"]++
	}
	r.before = taken(qp)
	if e := r.ends[qp]; e != nil && p.FECN {
		e.mon.met++
	}
	if f.From == r.nodes[stranger] || f.Tag == forged {
		return
	}
	sender, _ := f.Tag.(*end)
	switch e := r.ends[qp]; {
	case sender == nil || e == nil:
	case e.gone || sender.peer != e:
		r.tally["restart: stale packet at a queue pair"]++
		r.world.Logf("%-12s that was a packet of a former life", "")
	default:
		e.arrives(f, p)
	}
}

// Arrived implements virtual.Watcher.
func (r *run) Arrived(f *virtual.Flight, qp *virtual.QP, p *wire.Packet) {
	r.checkTaken(qp)
	e := r.ends[qp]
	if e == nil || e.gone {
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
	e := r.ends[qp]
	if e == nil || e.gone {
		r.fail(fmt.Errorf("%s completes %d (%s) after its reset", qp, c.ID, c.Status))
		return
	}
	e.look()
	e.see(c)
	r.tally.completion(c)
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
		r.tally.request(o)
	} else if o.bug != fine && c.Status == outcomes[o.bug].send {
		r.tally["mistake: "+o.bug.String()]++
	}
	if !l.resuming { // a slot is free again
		l.resuming = true
		r.world.At(r.world.Now(), func() { l.resuming = false; l.post() })
	}
}

// taken is a queue pair's count of the packets that reached it: taken, or
// dropped before they were looked at (IBA 9.6.1).
func taken(qp *virtual.QP) uint64 {
	c := qp.Counters()
	n := c.RcvdPkts + c.DropService + c.DropPKey + c.DropPeer
	if s := qp.State(); s == abi.QPSReset || s == abi.QPSInit {
		n += c.DropState // elsewhere these were taken before they were dropped
	}
	return n
}

// checkTaken: every packet is counted once, by what became of it.
func (r *run) checkTaken(qp *virtual.QP) {
	if now := taken(qp); now != r.before+1 {
		r.fail(fmt.Errorf("%s counts a packet %d times as received or dropped", qp, now-r.before))
	}
}
