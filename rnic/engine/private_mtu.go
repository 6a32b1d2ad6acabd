package engine

import "github.com/rdmashim/rdmashim/rnic/wire"

// private is the private MTU of a queue pair: packets as long as the path
// carries, not as one of the specification's five path MTUs, between two soft
// devices. Each message has its own, which its packets name:
//
//   - A responder's answers name the longest packets that it takes, which a
//     foreign peer never does.
//   - A requester that has a message for them first tries one such packet, a
//     WRITE without effect (as Ping's). An answer that says Proven shows that
//     the path carries it. Until then, and where none comes, messages are cut
//     at the path MTU. An MTU that one queue pair has proven holds for all to
//     that address.
//
// The answers to a READ have the MTU that its request names. So the way back is
// taken to carry packets as long as the way there does.
type private struct {
	own    wire.PrivateMTU // the longest packets that this side takes and sends; 0: none
	came   wire.PrivateMTU // the longest that came
	peer   wire.PrivateMTU // the longest that the peer takes, as it says, own at most; 0: it has not said
	proven wire.PrivateMTU // the peer says that such packets came

	wanted bool            // a message is longer than the path MTU
	trying wire.PrivateMTU // peer, or less after tries that failed
	tries  uint8           // of trying
	tried  Time            // the last
}

// newPrivate offers the private MTU that a path with room for so many bytes
// carries, if that is more than the path MTU.
func newPrivate(room, mtu int) private {
	if m := wire.FitPrivateMTU(room); m.Bytes() > mtu {
		return private{own: m}
	}
	return private{}
}

// named returns the private MTU that answers name, and whether they say Proven.
func (x *private) named() (wire.PrivateMTU, bool) {
	if x.came != 0 {
		return x.came, true
	}
	return x.own, false
}

// takes is the longest payload of a packet that is kept.
func (x *extension) takes() int { return max(x.q.mtu, x.own.Bytes()) }

// notePrivate notes the length of a request's packet.
func (x *extension) notePrivate(p *wire.Packet) {
	if p.PrivateMTU > x.came && p.PrivateMTU <= x.own && len(p.Payload) == p.PrivateMTU.Bytes() {
		x.came = p.PrivateMTU
	}
}

// takePrivate notes the private MTU that an answer names.
func (x *extension) takePrivate(p *wire.Packet) {
	switch {
	case x.own == 0 || p.PrivateMTU == 0:
	case p.Proven:
		x.see()
		x.proven = min(p.PrivateMTU, x.own)
		x.neighbour.proven = max(x.neighbour.proven, x.proven)
	case x.peer == 0:
		x.peer = min(p.PrivateMTU, x.own)
		x.trying = x.peer
	}
}

// usable is the private MTU for the next message, 0 if none is proven.
func (x *extension) usable() wire.PrivateMTU {
	q := x.q
	proven := x.proven
	if x.neighbour != nil {
		proven = max(proven, min(x.neighbour.proven, x.peer))
	}
	if proven.Bytes() <= q.mtu {
		return 0
	}
	return proven
}

// doubtPrivate forgets that a private MTU passes, since a peer has been silent
// for too long: the path may have become narrower. The next queue pair on it
// tries again.
func (x *extension) doubtPrivate() {
	if n := x.q.cfg.Stash.neighbours[x.q.peer]; n != nil {
		n.proven = 0
	}
}

// choosePrivate chooses the MTU of a message's packets.
func (x *extension) choosePrivate(w *sendWR) {
	q := x.q
	if int(w.length) <= q.mtu || x.own == 0 {
		return
	}
	x.wanted = true
	p := x.usable()
	if p == 0 {
		return
	}
	w.private, w.mtu = p, p.Bytes()
	if w.mtu > q.largest {
		q.largest = w.mtu
		q.flow.Carries(q.largest + packetCost)
	}
}

// A private MTU that was tried privateTries times without an answer, each after
// privateWait and four round trips at least, does not pass: the next but one
// smaller is tried.
const (
	privateTries = 3
	privateWait  = 10 * Millisecond
)

// tryPrivate sends a packet that is as long as the private MTU which the peer
// takes, where a message waits for such packets and none has passed. Its PSN is
// that before the oldest outstanding one: the responder acknowledges it again
// without carrying it out.
func (x *extension) tryPrivate(now Time, b *Batch) {
	q := x.q
	if x.trying.Bytes() <= q.mtu || !q.sends() || b.Full() || x.usable() != 0 || q.req.timer.waitsForReceiver() ||
		x.tries > 0 && now < x.tried+Time(privateWait+4*q.req.timer.srtt) {
		return
	}
	if x.tries++; x.tries > privateTries {
		x.trying -= min(x.trying, 2)
		x.tries = 0
		return
	}
	x.tried = now
	payload := b.payload(wire.RCWriteOnly, x.trying.Bytes())
	clear(payload)
	q.startPacket(wire.RCWriteOnly, q.req.una-1)
	q.out.AckReq, q.out.RETH, q.out.PrivateMTU = true, wire.RETH{}, x.trying
	b.add(q.attr.Peer, &q.out, payload)
	q.counters.SentPkts++
	q.counters.SentBytes += uint64(len(payload))
}
