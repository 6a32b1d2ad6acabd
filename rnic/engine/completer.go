package engine

import (
	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// receiveResponse handles a packet of the peer's responder (IBA 9.7.6, 9.9.2).
// Responses to PSNs that were acknowledged before ("ghosts"), or were never
// sent, are dropped.
func (q *QP) receiveResponse(now Time, p *wire.Packet) {
	if !q.sends() {
		q.counters.DropState++
		return
	}
	s := q.req.una.near(p.PSN)
	switch {
	case s < q.req.una:
		q.counters.DropStaleAck++
		if x := q.extension; x != nil && p.PrivateMTU != 0 && s == q.req.una-1 {
			x.takePrivate(p) // of a Ping, or of a packet that tries a private MTU
		}
		return
	case s >= q.req.sent:
		q.counters.DropUnsentAck++
		return
	case p.Opcode.Carries(wire.HasAETH) && p.AETH.Syndrome.IsReserved():
		q.counters.DropSyndrome++
		return
	}
	q.hear(now, p)
	switch p.Opcode.Operation() {
	case wire.OpAck:
		q.receiveAck(now, s, p.AETH.Syndrome, p.Bitmap())
	default:
		q.receiveData(now, s, p)
	}
	if x := q.extension; x != nil {
		x.takePrivate(p)
		x.unstashAnswers(now)
	}
}

// receiveAck handles an ACK or NAK. A NAK acknowledges all before its PSN, an
// ACK its PSN too (IBA 9.7.5.1.2). If an answer before it is missing, it was
// lost.
func (q *QP) receiveAck(now Time, s seq, syn wire.Syndrome, bitmap wire.Bitmap) {
	if syn.IsACK() {
		if !q.acknowledge(now, s+1) {
			q.impliedNAK(now, s+1, nil)
		} else {
			q.probeAnswered(now, s)
		}
		return
	}
	complete := q.acknowledge(now, s)
	switch {
	case syn.IsRNR():
		if complete {
			q.receiverNotReady(now, syn.RNRTimer())
		} else {
			q.counters.RNRRcvd++
			q.impliedNAK(now, s, nil)
		}
	case syn.NAK() == wire.NAKPSNSequence:
		q.counters.NAKSeqRcvd++
		if x := q.extension; x == nil || !x.learn(now, s, bitmap) {
			q.lost(now)
		}
	default:
		q.receiveFatal(s, syn.NAK())
	}
}

// receiveFatal ends the queue pair: the request with PSN s was refused.
func (q *QP) receiveFatal(s seq, code wire.NAKCode) {
	var status abi.WCStatus
	switch code {
	case wire.NAKInvalidRequest:
		q.counters.NAKInvRcvd++
		status = abi.WCRemInvReqErr
	case wire.NAKRemoteAccess:
		q.counters.NAKAccessRcvd++
		status = abi.WCRemAccessErr
	case wire.NAKRemoteOperational:
		q.counters.NAKOpRcvd++
		status = abi.WCRemOpErr
	default: // invalid RD request has no meaning for RC
		q.counters.DropSyndrome++
		return
	}
	i := q.sq.head
	for q.sq.at(i).end <= s {
		i++
	}
	q.failRequest(i, status)
}

// acknowledge moves una to s, or as far as no READ response or ATOMIC ACK is
// missing, and retires the work requests before it. It reports whether una
// reached s.
func (q *QP) acknowledge(now Time, s seq) bool {
	to := s
	if a := &q.req.asked; !a.empty() {
		to = min(s, max(a.front().first, q.req.una))
	}
	if to > q.req.una {
		q.advance(now, to)
	}
	return to == s
}

// advance sets una, completes what ends before it, and notes the progress.
func (q *QP) advance(now Time, to seq) {
	r := &q.req
	before := q.costAt(q.sq.head, r.una)
	if x := q.extension; x != nil {
		x.acknowledged(now, to)
	} else {
		q.measureArrived(now, to, func(seq) bool { return to > r.again })
	}
	r.una = to
	for q.sq.head < q.sq.tail && q.sq.at(q.sq.head).ended(to) {
		q.completeSend(q.sq.at(q.sq.head))
		q.sq.head++
	}
	if r.nxt < to {
		r.nxt = to
		for r.cur < q.sq.tail && q.sq.at(r.cur).ended(to) {
			r.cur++
		}
	}
	r.asked.answered(to)
	r.rnrLeft = q.attr.RNRRetry
	cost := q.costAt(q.sq.head, to) - before
	r.win.grow(q.flow.Stretched(q.cfg.Tuning.MaxWindow, r.timer.least), cost)
	q.flow.Acked(now, int(cost), r.timer.least)
	q.progress(now)
}

// impliedNAK makes up for the answers that are missing before beyond: one from
// there came, early if it is more than an ACK, but not una's.
func (q *QP) impliedNAK(now Time, beyond seq, early *wire.Packet) {
	if x := q.extension; x != nil && x.miss(now, beyond, early) {
		return
	}
	q.counters.ImpliedNAKs++
	q.lost(now)
}

// receiveData handles a READ response or ATOMIC ACK.
func (q *QP) receiveData(now Time, s seq, p *wire.Packet) {
	a := &q.req.asked
	if a.empty() || s < a.front().first {
		q.counters.DropResponse++
		return
	}
	if p.Opcode.Carries(wire.HasAETH) && !p.AETH.Syndrome.IsACK() {
		q.counters.DropSyndrome++
		return
	}
	if !q.acknowledge(now, s) {
		q.impliedNAK(now, s, p)
		return
	}
	// una is s now, and the oldest request is the one that s answers.
	w, end := q.sq.at(q.sq.head), a.front().end
	var status abi.WCStatus
	if p.Opcode.Operation() == wire.OpAtomicAck {
		status = q.takeAtomic(w, p)
	} else {
		status = q.takeRead(w, s, s+1 == end, p)
	}
	if status != abi.WCSuccess {
		q.counters.LocalErrors++
		q.failRequest(q.sq.head, status)
		return
	}
	q.advance(now, s+1)
}

// takeAtomic stores what was in the remote word, in the host's byte order.
func (q *QP) takeAtomic(w *sendWR, p *wire.Packet) abi.WCStatus {
	if !w.kind.isAtomic() {
		return abi.WCBadRespErr
	}
	if q.cfg.Regions.ScatterWord(q.cfg.PD, w.sge, p.AtomicAckETH.Orig) != nil {
		return abi.WCLocProtErr
	}
	return abi.WCSuccess
}

// takeRead stores a READ response. Its length must be what the request asked
// for (IBA 9.9.2: a bad response is fatal). First and Middle are not told
// apart: the answer to a READ repeated from the middle begins with First (IBA
// 9.7.5.1.9), rxe's with Middle.
func (q *QP) takeRead(w *sendWR, s seq, last bool, p *wire.Packet) abi.WCStatus {
	off := uint64(s-w.first) * uint64(w.mtu)
	want := min(uint64(w.length)-off, uint64(w.mtu))
	if w.kind.operation != wire.OpRead || p.Opcode.EndsMessage() != last || uint64(len(p.Payload)) != want {
		return abi.WCBadRespErr
	}
	if q.cfg.Regions.Scatter(q.cfg.PD, w.sge, off, p.Payload, s+1 == w.end) != nil {
		return abi.WCLocProtErr
	}
	return abi.WCSuccess
}
