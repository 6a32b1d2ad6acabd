package engine

import (
	"net/netip"

	"github.com/rdmashim/rdmashim/rnic/wire"
)

// lastAck is the last ACK of the responder that left.
type lastAck struct {
	when Time // 0: none did
	at   seq
}

// answers reports whether the ACK of s answers a repeated request: of a SEND or
// WRITE that it acknowledges.
func (s seq) answers(p *wire.Packet) bool {
	return (p.Opcode.IsSend() || p.Opcode.IsWrite()) && s.near(p.PSN) <= s
}

// FinalAck is the last acknowledgement of a queue pair that goes, to be sent
// again. If it was lost, the requester repeats its request, which nobody
// answers any more, and ends with WCRetryExcErr although the message arrived.
// The copy of an acknowledgement that was sent before says nothing new, so a
// requester that has the first drops it (IBA 9.7.6).
type FinalAck struct {
	Peer      netip.AddrPort
	RoundTrip Duration // 0: not known

	at  seq
	out wire.Packet
}

// finalAckTime is how long after an acknowledgement its requester counts as one
// that may still wait for it, at least: it repeats its request within its own
// ACK timeout, which is taken to be about this queue pair's.
const finalAckTime = 100 * Millisecond

// FinalAck returns what is to be sent again when the queue pair is about to go,
// once for each acknowledgement; false if no requester can be waiting for one.
func (q *QP) FinalAck(now Time) (p FinalAck, ok bool) {
	last := q.rsp.last
	if q.rsp.last.when = 0; last.when == 0 || Duration(now-last.when) > max(finalAckTime, q.ackTimeout()) {
		return p, false
	}
	q.startReply(wire.RCAck, last.at, wire.SyndromeACK(wire.NoCredits))
	t := &q.req.timer
	rtt := max(t.srtt, t.bound)
	if rtt == 0 {
		rtt = t.estimate
	}
	return FinalAck{q.attr.Peer, rtt, last.at, q.out}, true
}

// Names reports whether it goes to the queue pair n of a device.
func (p *FinalAck) Names(peer netip.AddrPort, n wire.QPN) bool {
	return p.Peer == peer && p.out.DestQPN == n
}

// Answers reports whether it answers a packet from an address: the repeated
// request of a message that it acknowledges. The answer to a READ or an atomic
// has gone with the queue pair.
func (p *FinalAck) Answers(from netip.Addr, in *wire.Packet) bool {
	return in.Opcode.Service() == wire.ServiceRC && in.PKey.Match(wire.DefaultPKey) &&
		wire.Bare(from) == wire.Bare(p.Peer.Addr()) && p.at.answers(in)
}

// Transmit adds it to a batch, which is not full.
func (p *FinalAck) Transmit(b *Batch) { b.add(p.Peer, &p.out, nil) }
