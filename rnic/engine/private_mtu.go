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

// tell returns the private MTU that answers name, and whether they say Proven.
func (m *private) tell() (wire.PrivateMTU, bool) {
	if m.came != 0 {
		return m.came, true
	}
	return m.own, false
}

// mtuOf is the MTU of a request's message, in bytes.
func (q *QP) mtuOf(p *wire.Packet) int {
	if p.PrivateMTU != 0 {
		return p.PrivateMTU.Bytes()
	}
	return q.mtu
}

// takes is the longest payload of a packet that is kept.
func (q *QP) takes() int { return max(q.mtu, q.private.own.Bytes()) }

// notePrivate notes the length of a request's packet.
func (q *QP) notePrivate(p *wire.Packet) {
	m := &q.private
	if p.PrivateMTU > m.came && p.PrivateMTU <= m.own && len(p.Payload) == p.PrivateMTU.Bytes() {
		m.came = p.PrivateMTU
	}
}

// hearPrivate notes the private MTU that an answer names.
func (q *QP) hearPrivate(p *wire.Packet) {
	m := &q.private
	switch {
	case m.own == 0 || p.PrivateMTU == 0:
	case p.Proven:
		m.proven = min(p.PrivateMTU, m.own)
		q.neighbour.proven = max(q.neighbour.proven, m.proven)
	case m.peer == 0:
		m.peer = min(p.PrivateMTU, m.own)
		m.trying = m.peer
	}
}

// usable is the private MTU for the next message, 0 if none is proven.
func (q *QP) usable() wire.PrivateMTU {
	m := &q.private
	proven := m.proven
	if q.neighbour != nil {
		proven = max(proven, min(q.neighbour.proven, m.peer))
	}
	if proven.Bytes() <= q.mtu {
		return 0
	}
	return proven
}

// doubtPrivate forgets that a private MTU passes, since a peer has been silent
// for too long: the path may have become narrower. The next queue pair on it
// tries again.
func (q *QP) doubtPrivate() {
	if q.neighbour != nil {
		q.neighbour.proven = 0
	}
}

// choosePrivate chooses the MTU of a message's packets.
func (q *QP) choosePrivate(w *sendWR) {
	m := &q.private
	if int(w.length) <= q.mtu || m.own == 0 {
		return
	}
	m.wanted = true
	p := q.usable()
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
func (q *QP) tryPrivate(now Time, b *Batch) {
	m := &q.private
	if !m.wanted || m.trying.Bytes() <= q.mtu || !q.sends() || b.Full() || q.usable() != 0 || q.req.timer.waitsForReceiver() ||
		m.tries > 0 && now < m.tried+Time(privateWait+4*q.req.timer.srtt) {
		return
	}
	if m.tries++; m.tries > privateTries {
		m.trying -= min(m.trying, 2)
		m.tries = 0
		return
	}
	m.tried = now
	payload := b.payload(m.trying.Bytes())
	clear(payload)
	q.startPacket(wire.RCWriteOnly, q.req.una-1)
	q.out.AckReq, q.out.RETH, q.out.PrivateMTU = true, wire.RETH{}, m.trying
	b.add(q.attr.Peer, &q.out, payload)
	q.counters.SentPkts++
	q.counters.SentBytes += uint64(len(payload))
}

// takesTry answers a packet with which the peer tries a private MTU.
func (q *QP) takesTry(now Time, p *wire.Packet) bool {
	s := q.rsp.next.near(p.PSN)
	if !p.TriesMTU() || s >= q.rsp.next || s+2*span < q.rsp.next {
		return false
	}
	q.notePrivate(p)
	q.duplicate(s, p)
	q.scheduleAck(now, p, true)
	return true
}

// Ping asks the peer for a sign of life without a work request: the next
// Transmit sends a zero-length WRITE with the PSN before the oldest that is
// outstanding. To the responder that is a duplicate, which it acknowledges
// again without carrying it out (IBA 9.7.5.1.2, rxe_resp.c:duplicate_request);
// the ACK says nothing new and is dropped. So whether anything came of it shows
// in RcvdPkts only. It is not repeated. False in states that send nothing.
// Next: Transmit.
func (q *QP) Ping() bool {
	q.req.ping = q.sends()
	return q.req.ping
}

// transmitPing writes the packet that Ping asked for.
func (q *QP) transmitPing(b *Batch) {
	if !q.req.ping || !q.sends() || b.Full() {
		return
	}
	q.req.ping = false
	q.startPacket(wire.RCWriteOnly, q.req.una-1)
	q.out.AckReq, q.out.RETH = true, wire.RETH{}
	b.add(q.attr.Peer, &q.out, nil)
	q.counters.SentPkts++
}
