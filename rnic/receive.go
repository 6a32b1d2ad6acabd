package rnic

import (
	"time"

	"github.com/rdmashim/rdmashim/rnic/engine"
	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// receiver is the receiving side of the link. All of it is guarded by
// drive.Receiver, the token of the goroutine that receives.
type receiver struct {
	in     []link.Packet
	parsed [2]wire.Packet // the packet at hand, and the one that it may overtake
	now    engine.Time    // when the last batch was delivered
}

// receive takes a batch from the link, if there is one, and does all that
// follows from it. Preconditions: drive.Receiver is held.
func (d *Device) receive() (int, error) {
	r := &d.rx
	n, err := d.link.Recv(r.in)
	if n == 0 || err != nil {
		return 0, err
	}
	d.mu.Lock()
	d.deliver(r.in[:n])
	d.serveChanged(receiverBatches)
	d.mu.Unlock()
	return n, nil
}

// deliver takes packets apart and hands them to their queue pairs. An ACK goes
// before the request that it rode with: so a request completes before its
// answer does, as if each had left when it was due. To the two halves of a
// queue pair it is the same. Preconditions, here and below: mu is held.
func (d *Device) deliver(in []link.Packet) {
	r := &d.rx
	now := d.now()
	d.drive.Arrived(time.Duration(now))
	r.now = now
	request := -1 // the packet that waits for the ACK behind it
	next := &r.parsed[0]
	for i := 0; i < len(in); i++ {
		if err := parse(next, &in[i]); err != nil {
			e, _ := err.(wire.Error)
			d.count.malformed[e]++
			continue
		}
		p, waits := next, request >= 0
		if waits {
			first := r.other(p)
			if p.Opcode == wire.RCAck && p.DestQPN == first.DestQPN {
				d.deliverOne(in[i:i+1], p)
				continue
			}
			n := d.deliverOne(in[request:], first)
			end := request + n
			if request = -1; end > i { // in[i] was of its train
				i = end - 1
				continue
			}
		}
		if p.Opcode.IsRequest() {
			request, next = i, r.other(p)
			continue
		}
		d.deliverOne(in[i:i+1], p)
	}
	if request >= 0 {
		d.deliverOne(in[request:], r.other(next))
	}
}

// other is the one of the receiver's two packets that p is not.
func (r *receiver) other(p *wire.Packet) *wire.Packet {
	if p == &r.parsed[0] {
		return &r.parsed[1]
	}
	return &r.parsed[0]
}

// parse takes a packet apart.
func parse(p *wire.Packet, in *link.Packet) error {
	if in.Payload == nil {
		return p.Parse(in.Head)
	}
	err := p.ParseApart(in.Head, in.Payload)
	p.Pull = in.Pull
	return err
}

// deliverOne hands p, the first packet of all, to its queue pair, and with it
// those that are its train (engine.QP.ReceiveTrain), and returns how many.
func (d *Device) deliverOne(all []link.Packet, p *wire.Packet) (n int) {
	now, in := d.rx.now, &all[0]
	if in.Group.IsValid() {
		d.deliverGroup(in, p)
		return 1
	}
	q := d.find(p.DestQPN)
	if q == nil {
		switch {
		case d.answerRepeat(now, in, p):
		case p.DestQPN != wire.GSIQPN:
			d.count.dropQPN++
		case !d.guesses.RefusePacket(now, in.Peer, p):
			d.gsi.receive(now, in, p)
		}
		return 1
	}
	if q.source.Near && !in.Near { // a peer may lose its ring
		q.source.Near = d.near.Hears(q.near)
	}
	if !q.source.Admits(in) {
		q.engine.Counters().DropPeer++
		return 1
	}
	// A full buffer is shown to soft devices alone: others have not asked.
	p.FECN = p.FECN || in.Marked || in.Crowded && p.Selective
	q.engine.Receive(now, in.Peer.Addr(), p)
	q.observe(now, in, p)
	d.schedule(q)
	if rc, ok := q.engine.(*engine.QP); ok {
		n = rc.ReceiveTrain(now, p, all)
	}
	return 1 + n
}

// find returns the queue pair of a number, or nil. It is often the last one.
func (d *Device) find(n wire.QPN) *QP {
	if d.found == nil || d.found.num != n {
		d.found = d.qps[n]
	}
	return d.found
}
