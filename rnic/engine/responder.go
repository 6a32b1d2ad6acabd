package engine

import (
	"net/netip"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// responder carries out the peer's requests.
type responder struct {
	next    seq      // the expected PSN
	msn     wire.MSN // messages completed
	refused bool     // next was answered with a sequence or RNR NAK; further packets wait for it

	ack     bool // everything up to ackTo is to be acknowledged
	ackTo   seq
	ackBy   Time // with ack: when it must leave at the latest; 0: not decided
	unacked int  // bytes, and packetCost for each packet, carried out since the last ACK
	nak     nak  // is to be sent
	last    lastAck

	during  wire.Operation  // OpSend or OpWrite in the middle of such a message, else OpNone
	done    uint64          // bytes of that message so far
	remote  wire.RETH       // of that WRITE
	private wire.PrivateMTU // of that message
	recv    ReceiveWR       // the receive of that SEND
	recvLen uint64
	holds   bool // recv was taken and not completed

	replay replayQueue
}

// nak is a negative acknowledgement that waits for Transmit.
type nak struct {
	pending  bool
	fatal    bool // it took the queue pair to ERR
	at       seq
	syndrome wire.Syndrome
}

// Receive takes a packet whose BTH names this queue pair, from the address
// from. The packet is not kept. Next: Transmit, Completions, NextTimeout.
func (q *QP) Receive(now Time, from netip.Addr, p *wire.Packet) {
	q.genuine = false
	if !q.acceptHeader(from, p) {
		return
	}
	if !p.Selective { // the bits mean nothing
		p.PrivateMTU, p.Proven = 0, false
	}
	q.counters.RcvdPkts++
	q.counters.RcvdBytes += uint64(len(p.Payload))
	switch {
	case p.Opcode == wire.CNP:
		q.counters.NoticesRcvd++
		q.flow.Marked(now)
	case p.Opcode.IsResponse():
		q.receiveResponse(now, p)
	case p.Opcode.IsRequest():
		was := q.state
		q.receiveRequest(now, p)
		if q.state != was && q.rsp.nak.fatal && q.isItsPeer() {
			q.failOwnRequest(now)
		}
	default:
		q.counters.DropService++
	}
	q.account()
}

// Genuine reports whether the packet of the last Receive had a PSN that only
// the peer knows: the expected one of a request, an outstanding one of a
// response.
func (q *QP) Genuine() bool { return q.genuine }

// acceptHeader is the validation that precedes all transport processing: state,
// transport service, P_Key, source (IBA 9.6.1). A packet that fails is dropped
// silently.
func (q *QP) acceptHeader(from netip.Addr, p *wire.Packet) bool {
	switch {
	case q.state == abi.QPSReset || q.state == abi.QPSInit:
		q.counters.DropState++
	case p.Opcode.Service() != q.service && !(p.Opcode == wire.CNP && q.service == wire.ServiceRC):
		q.counters.DropService++
	case !p.PKey.Match(wire.DefaultPKey):
		q.counters.DropPKey++
	case wire.Bare(from) != q.peer:
		q.counters.DropPeer++
	default:
		return true
	}
	return false
}

// receiveRequest validates a request in the specification's order (IBA 9.7.4.1)
// and carries it out.
func (q *QP) receiveRequest(now Time, p *wire.Packet) {
	if q.state == abi.QPSErr {
		q.repeatLast(p)
		return
	}
	if x := q.extension; x != nil && p.Selective && x.accept(now, p) {
		return
	}
	if !q.checkPSN(p) {
		q.scheduleAck(now, p, true)
		return
	}
	q.hear(now, p)
	ok := q.carryOut(now, p)
	if x := q.extension; x != nil && x.requests.n > 0 && ok {
		x.unstash(now)
	}
}

// hear follows a packet that only the peer could send. If the first is none of
// an extended peer, the queue pair keeps to the specification from now on.
func (q *QP) hear(now Time, p *wire.Packet) {
	q.genuine = true
	if x := q.extension; x != nil && (p.Selective || x.seen) {
		x.hear(p)
	} else {
		q.extension = nil
	}
	q.communicates()
	q.noteMarks(now, p)
}

// carryOut checks and carries out the request at next, and reports whether it
// passed.
func (q *QP) carryOut(now Time, p *wire.Packet) bool {
	if !p.Claim() {
		return false
	}
	if e := q.checkRequest(p); e.refuses() {
		p.Settle()
		q.refuse(e)
		return false
	}
	q.execute(p)
	q.scheduleAck(now, p, false)
	return true
}

// refuse answers the request at next with a NAK. A NAK other than RNR ends the
// queue pair (IBA 9.9.3, table 58).
func (q *QP) refuse(e refusal) {
	q.rsp.refused = true
	q.rsp.nak = nak{pending: true, fatal: !e.syndrome.IsRNR(), at: q.rsp.next, syndrome: e.syndrome}
	q.countNAK(e.syndrome)
	if x := q.extension; x != nil {
		x.requests.clear() // the requester goes back
	}
	if q.rsp.nak.fatal {
		q.raiseRefusal(e)
		if q.rsp.holds {
			q.completeReceive(e.status)
		}
		q.enterError()
	}
}

// isItsPeer reports whether the queue pair is connected to itself.
func (q *QP) isItsPeer() bool {
	self := netip.AddrPortFrom(wire.Bare(q.cfg.Self.Addr()), q.cfg.Self.Port())
	return q.attr.DestQPN == q.cfg.QPN && netip.AddrPortFrom(q.peer, q.attr.Peer.Port()) == self
}

// failOwnRequest passes the responder's refusal to the requester of a queue
// pair that is connected to itself: the NAK on the wire would find it in ERR,
// and its request flushed with no completion that has the reason.
func (q *QP) failOwnRequest(now Time) {
	s := q.req.una.near(q.rsp.nak.at.psn())
	if s >= q.req.una && s < q.req.sent {
		q.receiveAck(now, s, q.rsp.nak.syndrome, nil)
	}
}

func (q *QP) countNAK(s wire.Syndrome) {
	switch {
	case s.IsRNR():
		q.counters.RNRSent++
	case s.NAK() == wire.NAKPSNSequence:
		q.counters.NAKSeqSent++
	case s.NAK() == wire.NAKInvalidRequest:
		q.counters.NAKInvSent++
	case s.NAK() == wire.NAKRemoteAccess:
		q.counters.NAKAccessSent++
	case s.NAK() == wire.NAKRemoteOperational:
		q.counters.NAKOpSent++
	}
}

// repeatLast handles a request in ERR. The state discards everything, but the
// requester learns again what it was told before, as that may have been lost.
// Where this side's own NAK led to ERR and the refused request comes again, or
// one before it, that is the NAK: it acknowledges those before it. A message
// that was acknowledged is acknowledged again.
func (q *QP) repeatLast(p *wire.Packet) {
	q.counters.DropState++
	r := &q.rsp
	switch {
	case r.nak.fatal:
		r.nak.pending = r.nak.pending || r.nak.at.near(p.PSN) <= r.nak.at
	case r.last.when != 0 && r.last.at.answers(p):
		r.ack, r.ackTo, r.ackBy = true, r.last.at, overdue
	}
}
