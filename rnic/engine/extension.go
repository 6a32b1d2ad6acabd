package engine

import "github.com/rdmashim/rdmashim/rnic/wire"

// extension is what a queue pair knows and keeps for the private extensions,
// selective repeat and private MTU. It is nil, and the queue pair keeps to the
// specification, where the device has no Stash, and from the first packet on of
// a peer without extensions. Then nothing of its files runs: extension.go,
// selective_*.go, scoreboard.go, stash.go and private_mtu.go.
//
// The queue pair asks it when
//
//	a request comes        accept, before its PSN is checked; unstash behind it
//	it answers             answer, bitmap, replyMissing
//	an answer comes        acknowledged, learn, miss, takePrivate,
//	                       unstashAnswers
//	the peer is silent     silence, repairing, doubtPrivate
//	it sends               choosePrivate, transmitRepairs, tryPrivate, reaches,
//	                       sentAgain, doubles
//	it goes back or fails  forget, drop, reset
type extension struct {
	q     *QP
	seen  bool // a packet of an extended peer came
	heard bool // a packet came that only the peer could send
	soft  bool // the last such packet was of an extended peer

	scoreboard         // of the packets beyond una
	answers    stash   // beyond una
	requests   stash   // beyond next
	repeats    repeats // of READs' answers
	private
	neighbour *neighbour // the peer; nil until it is seen
}

// newExtension begins a connection on a path with room for packets of so many
// bytes.
func newExtension(q *QP, room int) *extension {
	return &extension{q: q, private: newPrivate(room, q.mtu)}
}

// see notes that a packet of an extended peer came.
func (x *extension) see() {
	if x.seen = true; x.neighbour == nil {
		x.neighbour = x.q.cfg.Stash.join(x.q.peer)
	}
}

// hear follows a packet that only the peer could send.
func (x *extension) hear(p *wire.Packet) {
	if x.heard, x.soft = true, p.Selective; x.soft && x.neighbour == nil {
		x.see()
	}
}

// leave forgets the peer, whose address is another from now on.
func (x *extension) leave() {
	x.q.cfg.Stash.leave(x.neighbour)
	x.neighbour = nil
}

// accept takes a request of an extended peer, and reports whether that was all:
// it was no request, or not the expected one, and is answered as an extended
// peer understands it.
func (x *extension) accept(now Time, p *wire.Packet) bool {
	q, r := x.q, &x.q.rsp
	s := r.next.near(p.PSN)
	if s == r.next {
		x.notePrivate(p)
		return false
	}
	switch x.see(); {
	case s > r.next:
		q.counters.OutOfSeqRequest++
		if x.stashRequest(now, s, p) && p.AckReq || !r.refused {
			q.refuseGap()
		}
	case p.TriesMTU() && s+2*span >= r.next:
		x.notePrivate(p)
		q.duplicate(s, p)
	case p.Opcode.IsReadRequest() && !p.AckReq && x.soft: // the second of two copies
		q.counters.DuplicateRequest++
	default:
		return false
	}
	q.scheduleAck(now, p, true)
	return true
}

// acknowledged notes that una is about to move to another packet.
func (x *extension) acknowledged(now Time, to seq) {
	// Packets that waited for one that was sent again measure nothing.
	q := x.q
	inOrder := to > q.req.again && q.req.una >= x.top
	q.measureArrived(now, to, func(seq) bool { return inOrder })
	if x.hi > q.req.una || x.begun != 0 {
		x.pass(now, to)
	}
}

// silence finds what may be missing when the peer has been silent for longer
// than it should. It reports whether that is repaired.
func (x *extension) silence() bool {
	x.scan = x.top > x.q.req.una
	return x.suspectAnswer()
}

// answer writes into an answer what it says of the private MTU.
func (x *extension) answer(p *wire.Packet) { p.PrivateMTU, p.Proven = x.named() }

// drop forgets the packets that are kept.
func (x *extension) drop() {
	x.requests.clear()
	x.answers.clear()
}

// reset ends the connection.
func (x *extension) reset() {
	x.drop()
	x.leave()
}

// reach is how many PSNs beyond the first that is missing count: a responder
// keeps no packet from further on, and its NAKs, whose bitmaps fit one packet,
// tell of no more.
func reach(mtu int) seq { return seq(min(span, stashBytes/mtu, 8*mtu)) }
