package virtual

import (
	"encoding/binary"
	"fmt"

	"github.com/rdmashim/rdmashim/rnic/engine"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// Flight is a packet on its way: the payload of a UDP datagram, from BTH to
// ICRC, as it would be on a wire.
type Flight struct {
	Number   uint64 // counts the packets that were sent
	From, To *Node
	QP       *QP // that sent it; nil: none did
	Sent     engine.Time
	Bytes    []byte
	Flipped  bool // damaged by the network
	Tag      any  // of the Watcher; copies have it too
}

// Corrupt inverts a bit, 0 … len(Bytes)*8-1.
func (f *Flight) Corrupt(bit int) {
	f.Bytes[bit/8] ^= 1 << (bit % 8)
	f.Flipped = true
}

// Packet parses the packet, which the network may have damaged.
func (f *Flight) Packet() (p wire.Packet, err error) {
	err = p.Parse(f.Bytes[:len(f.Bytes)-wire.ICRCLen])
	return p, err
}

// String shows the direction and the packet.
func (f *Flight) String() string {
	p, err := f.Packet()
	if err != nil {
		return fmt.Sprintf("%s>%s %d bytes: %v", f.From.Name, f.To.Name, len(f.Bytes), err)
	}
	return f.From.Name + ">" + f.To.Name + " " + formatPacket(&p)
}

// digest is the packet's ICRC, which depends on all of it.
func (f *Flight) digest() uint64 {
	return f.Number<<32 | uint64(binary.LittleEndian.Uint32(f.Bytes[len(f.Bytes)-wire.ICRCLen:]))
}

// Send sends a packet of an engine that is none of the node's queue pairs.
func (n *Node) Send(pkt *wire.Datagram) { n.world.launch(n, nil, pkt) }

// launch turns a packet that an engine wrote into a flight. qp is nil if it is
// none of the node's queue pairs.
func (w *World) launch(from *Node, qp *QP, pkt *wire.Datagram) {
	to := w.byAddr[pkt.Peer.Addr()]
	if to == nil {
		w.failf("node %s sends to %s, where nobody is", from.Name, pkt.Peer)
		return
	}
	f := w.newFlight()
	w.flights++
	*f = Flight{Number: w.flights, From: from, To: to, QP: qp, Sent: w.now, Bytes: f.Bytes[:0]}
	f.Bytes = append(append(f.Bytes, pkt.Head...), pkt.Payload...)
	f.Bytes = append(f.Bytes, wire.Pad(wire.PadLen(len(pkt.Payload)))...)
	f.Bytes = wire.AppendICRC(f.Bytes, w.flow(from, to).ICRC(0, f.Bytes))
	w.note(noteSent, uint64(from.Index)<<8|uint64(to.Index), f.digest())
	if w.log != nil {
		w.log(fmt.Sprintf("%-12s %s", "", f))
	}
	if w.opts.Watch != nil {
		w.opts.Watch.Sent(f)
	}
	w.Carry(f)
}

// Forge sends a copy of a packet as if it came from another node, with an ICRC
// that is right for that.
func (w *World) Forge(from *Node, f *Flight) {
	g := w.newFlight()
	w.flights++
	*g = Flight{Number: w.flights, From: from, To: f.To, Sent: w.now, Bytes: append(g.Bytes[:0], f.Bytes[:len(f.Bytes)-wire.ICRCLen]...)}
	g.Bytes = wire.AppendICRC(g.Bytes, w.flow(from, f.To).ICRC(0, g.Bytes))
	w.note(noteSent, uint64(from.Index)<<8|uint64(f.To.Index), g.digest())
	w.Carry(g)
}

// Inject sends a packet that no engine wrote. Its Pad must fit its payload.
func (w *World) Inject(from, to *Node, p *wire.Packet, tag any) {
	f := w.newFlight()
	w.flights++
	*f = Flight{Number: w.flights, From: from, To: to, Sent: w.now, Bytes: p.Append(f.Bytes[:0]), Tag: tag}
	f.Bytes = wire.AppendICRC(f.Bytes, w.flow(from, to).ICRC(0, f.Bytes))
	w.note(noteSent, uint64(from.Index)<<8|uint64(to.Index), f.digest())
	if w.log != nil {
		w.log(fmt.Sprintf("%-12s %s", "forged", f))
	}
	w.Carry(f)
}

// Arrive lets a packet arrive at a time, not before now.
func (w *World) Arrive(f *Flight, at engine.Time) {
	w.inFlight++
	w.events.push(event{at: max(at, w.now), flight: f})
}

// Deliver hands a packet to its node now: the ICRC is checked, the packet
// parsed, and its queue pair found.
func (w *World) Deliver(f *Flight) {
	defer w.release(f)
	if !w.flow(f.From, f.To).Check(f.Bytes, 0) {
		w.Drops.ICRC++
		w.note(noteICRC, 0, f.digest())
		if w.opts.Watch != nil {
			w.opts.Watch.Dropped(f, Corrupted)
		}
		return
	}
	p, err := f.Packet()
	if err != nil {
		// The engines' own packets parse, and damaged ones have a wrong ICRC.
		w.failf("packet with a right ICRC does not parse: %v: %x", err, f.Bytes)
		return
	}
	if f.To.Foreign != nil {
		w.Delivered++
		w.note(noteDelivered, uint64(p.DestQPN), f.digest())
		f.To.Foreign(f.From, &p)
		return
	}
	qp := f.To.qps[p.DestQPN]
	if qp == nil {
		w.Drops.QPN++
		w.note(noteNoQP, uint64(p.DestQPN), f.digest())
		return
	}
	w.Delivered++
	w.note(noteDelivered, uint64(p.DestQPN), f.digest())
	if w.log != nil {
		w.log(fmt.Sprintf("%-12s %s", "arrives", f))
	}
	if w.opts.Watch != nil {
		w.opts.Watch.Arrives(f, qp, &p)
	}
	qp.receive(f.From, &p)
	if w.opts.Watch != nil {
		w.opts.Watch.Arrived(f, qp, &p)
	}
}

func (w *World) copyFlight(f *Flight) *Flight {
	g := w.newFlight()
	b := append(g.Bytes[:0], f.Bytes...)
	*g = *f
	g.Bytes = b
	return g
}

func (w *World) newFlight() *Flight {
	if n := len(w.spare); n > 0 {
		f := w.spare[n-1]
		w.spare = w.spare[:n-1]
		return f
	}
	return new(Flight)
}

func (w *World) release(f *Flight) { w.spare = append(w.spare, f) }
