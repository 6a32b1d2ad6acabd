package engine

import (
	"encoding/binary"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// requester sends the packets of the send queue.
//
//	una ≤ nxt ≤ sent ≤ post
//
// una is the oldest PSN that is not acknowledged, or whose READ response or
// ATOMIC ACK is missing; nxt goes out next; sent is one more than the highest
// that ever went out; post is the first that no work request has.
type requester struct {
	una, nxt, sent, post seq

	cur   uint64   // the work request of nxt
	hold  uint64   // in SQD: the first work request that was not begun
	asked askQueue // READ and atomic requests whose answers are missing
	win   window

	rnrLeft  uint8 // RNR NAKs that may still come before progress
	lapsed   seq   // sent, and
	lapsedAt seq   // una, when a timeout last came; 0: never
	alone    seq   // a packet sent before it goes again as a datagram of its own: two timeouts came in a row
	wentBack seq   // una when a lost packet was last made up for; 0: none since a timeout
	again    seq   // packets sent at least twice lie before it
	shrunk   seq   // una when the window was last reduced: until it moves, no round trip has passed

	since int  // cost sent since the last packet that asked for an ACK
	probe bool // the next packet asks for an ACK: it is the first after going back
	ping  bool // see Ping

	// oldest says that the packet una goes again, as a probe. The last probe
	// was probed, at probedAt; the packets before probedTo had left. 0: all
	// were repeated since. lone is the packet behind a probe that was
	// acknowledged alone.
	oldest                 bool
	probed, probedTo, lone seq
	probedAt               Time

	timer timer
}

// Transmit writes packets that may leave now into b, behind what is there. More
// reports that b was filled, so there may be more. An ACK whose time has not
// come leaves with requests only (HoldsAck), before them: the peer is to see
// its messages completed before it sees requests that answer them. Next:
// NextTimeout, and Completions when State turned to ERR.
func (q *QP) Transmit(now Time, b *Batch) (more bool) {
	// Answers and requests share the batch, so that neither starves the other.
	due := now >= q.rsp.ackBy
	rides := due || q.mayRequest()
	q.transmitReplies(now, b, b.middle(), due)
	q.transmitRequests(now, b)
	q.transmitPing(b)
	if x := q.extension; x != nil && x.wanted {
		x.tryPrivate(now, b)
	}
	q.transmitNotice(now, b)
	// Behind requests, being shorter, an ACK can share a datagram's send with
	// them.
	q.transmitReplies(now, b, b.end(), rides)
	q.account()
	return b.Full()
}

func (q *QP) transmitRequests(now Time, b *Batch) {
	q.req.timer.paced = 0
	q.transmitProbe(now, b)
	if x := q.extension; x != nil && x.scan {
		x.transmitRepairs(now, b)
	}
	for !b.Full() && q.mayRequest() {
		w := q.sq.at(q.req.cur)
		if w.kind.local() {
			if !q.executeLocal(w) {
				return
			}
			continue
		}
		if q.req.nxt == w.first && !q.checkLocal(w) {
			return
		}
		ok := false
		if w.kind.returnsData() {
			ok = q.sendAsk(now, b, w)
		} else {
			ok = q.sendData(now, b, w)
		}
		if !ok {
			return
		}
	}
}

// transmitProbe sends the packet una again, where a probe waits for it.
func (q *QP) transmitProbe(now Time, b *Batch) {
	r := &q.req
	if !r.oldest || b.Full() {
		return
	}
	r.oldest = false
	if !q.sends() || r.una != r.probed || r.una >= r.nxt || r.timer.waitsForReceiver() {
		return
	}
	nxt, cur := r.nxt, r.cur
	r.nxt, r.cur, r.probe = r.una, q.sq.head, true
	if w := q.sq.at(r.cur); w.kind.returnsData() {
		q.sendAsk(now, b, w)
	} else {
		q.sendData(now, b, w)
	}
	r.nxt, r.cur = nxt, cur
}

// mayRequest reports whether the requester may look at its next packet at all.
func (q *QP) mayRequest() bool {
	end := q.sq.tail
	if q.state == abi.QPSSQD {
		end = q.req.hold
	}
	return q.sends() && q.req.cur < end && !q.req.timer.waitsForReceiver()
}

// checkLocal looks at a request before its first packet: its own faults, its
// scatter list, and the fence. False holds the queue.
func (q *QP) checkLocal(w *sendWR) bool {
	if w.status == abi.WCSuccess && w.kind.returnsData() {
		switch {
		case q.attr.MaxRdAtomic == 0:
			w.status = abi.WCLocQPOpErr // nothing could ever be outstanding
		case q.cfg.Regions.CheckList(q.cfg.PD, w.sge, abi.AccessLocalWrite) != nil:
			w.status = abi.WCLocProtErr
		}
	}
	if w.status != abi.WCSuccess {
		q.failLocal()
		return false
	}
	return q.passesFence(w)
}

// passesFence reports whether a request may begin: one that is fenced waits
// until READs and atomics before it are complete (IBA 10.8.3.3).
func (q *QP) passesFence(w *sendWR) bool {
	a := &q.req.asked
	return w.flags&abi.SendFence == 0 || a.empty() || a.front().first >= w.first
}

// failLocal moves to ERR if the oldest request has a local error: everything
// before it is complete then.
func (q *QP) failLocal() {
	if !q.sends() || q.sq.len() == 0 {
		return
	}
	if w := q.sq.at(q.sq.head); w.status != abi.WCSuccess {
		q.counters.LocalErrors++
		q.failRequest(q.sq.head, w.status)
	}
}

// inFlight is the cost of packets that were sent and are not acknowledged,
// counting READs by their responses.
func (q *QP) inFlight() int {
	if q.req.una == q.req.nxt {
		return 0
	}
	n := int(q.costAt(q.req.cur, q.req.nxt) - q.costAt(q.sq.head, q.req.una))
	if x := q.extension; x != nil {
		n -= x.idle
	}
	return n
}

// fits reports whether n more bytes may be in flight now. One packet always
// may, and where the path's share fell before an ACK was asked for, one that
// asks.
func (q *QP) fits(now Time, n int) bool {
	f := q.inFlight()
	if f == 0 {
		return true
	}
	if f+n > q.req.win.size {
		return false
	}
	if f+n > q.room() {
		q.flow.Wait()
		return q.req.since >= f
	}
	until, held := q.flow.Held(now)
	if held {
		q.req.timer.paced = until
	}
	return !held
}

// reaches reports whether the peer would take a packet that ends at end.
func (q *QP) reaches(end seq) bool {
	x := q.extension
	return x == nil || x.reaches(end)
}

// sendData sends one packet of a SEND or WRITE. It returns false when that must
// wait.
func (q *QP) sendData(now Time, b *Batch, w *sendWR) bool {
	s := q.req.nxt
	if w.status != abi.WCSuccess {
		q.failLocal()
		return false
	}
	off := uint64(s-w.first) * uint64(w.mtu)
	n := int(min(uint64(w.length)-off, uint64(w.mtu)))
	if !q.fits(now, n+packetCost) || !q.reaches(s+1) {
		return false
	}
	return q.writeData(now, b, w, off, n)
}

// writeData writes the packet nxt of a SEND or WRITE: n bytes from off on.
func (q *QP) writeData(now Time, b *Batch, w *sendWR, off uint64, n int) bool {
	last := q.startData(w)
	payload, sum, err := q.fetch(b, q.out.Opcode, w, off, n)
	if err != nil {
		w.status = abi.WCLocProtErr
		q.failLocal()
		return false
	}
	q.req.since += n + packetCost
	q.out.AckReq = last || q.req.probe || q.req.since >= q.ackInterval()
	q.emit(now, b, payload, 1)
	q.finish(b, sum)
	q.sendTrain(now, b, w)
	return true
}

// startData fills the packet nxt of a SEND or WRITE, but for the payload, into
// the packet to be written. It reports whether it is the last.
func (q *QP) startData(w *sendWR) (last bool) {
	s, suffix := q.req.nxt, wire.Plain
	if last = s+1 == w.end; last {
		suffix = w.kind.suffix
	}
	q.startRequest(w.kind.operation, position(s == w.first, last), suffix)
	p := &q.out
	p.PrivateMTU = w.private
	p.Solicited = last && w.flags&abi.SendSolicited != 0 && w.kind.takesReceive()
	p.RETH = wire.RETH{VA: w.remote, RKey: w.rkey, DMALen: w.length}
	p.ImmDt.Data = binary.BigEndian.Uint32(w.imm[:])
	p.IETH.RKey = w.invalidate
	return last
}

// ackInterval is the cost of packets after which one in the middle of a message
// asks for an ACK: a quarter of the window, or the part of it that leaves in a
// millisecond, so that the window moves smoothly and the packets it lets go fit
// a small queue. The first flight asks with its last packet only: a message of
// 64 KiB needs no other ACK.
func (q *QP) ackInterval() int {
	w := min(q.req.win.size, q.share())
	if q.req.timer.srtt == 0 && q.req.again == 0 {
		return w - (q.largest + packetCost) + 1
	}
	return w / int(max(4, q.req.timer.srtt/Millisecond))
}

// position is the place in its message of a packet.
func position(first, last bool) wire.Position {
	switch {
	case first && last:
		return wire.Only
	case first:
		return wire.First
	case last:
		return wire.Last
	}
	return wire.Middle
}

// startRequest fills the fields that all requests have into the packet to be
// written; its PSN is nxt.
func (q *QP) startRequest(o wire.Operation, pos wire.Position, x wire.Suffix) {
	op, _ := wire.FindOpcode(q.service, o, pos, x)
	q.startPacket(op, q.req.nxt)
}

// startPacket begins a packet to the peer.
func (q *QP) startPacket(op wire.Opcode, s seq) {
	q.out.BTH = wire.BTH{
		Opcode:  op,
		MigReq:  true, // "migrated": some hardware refuses 0
		PKey:    wire.DefaultPKey,
		DestQPN: q.attr.DestQPN,
		PSN:     s.psn(),
	}
	if x := q.extension; x != nil {
		q.out.Selective = x.soft || !x.heard
	}
}

// emit adds the request packet that stands for n PSNs to the batch and moves
// on.
func (q *QP) emit(now Time, b *Batch, payload []byte, n seq) {
	r := &q.req
	b.add(q.attr.Peer, &q.out, payload)
	b.last().Alone = r.nxt < r.alone
	if q.flow.OnPath() {
		q.flow.Sent(now, int(q.costAt(r.cur, r.nxt+n)-q.costAt(r.cur, r.nxt)))
	}
	q.counters.SentPkts++
	q.counters.SentBytes += uint64(len(payload))
	if r.nxt < r.sent {
		q.counters.RetransmittedPkts++
		if x := q.extension; x != nil {
			x.sentAgain(now, q.sq.at(r.cur), r.nxt, r.nxt+n)
		}
		r.again = max(r.again, r.nxt+n)
		r.timer.again(r.nxt, r.nxt+n)
		q.flow.Unstamp(uint64(r.nxt), uint64(r.nxt+n))
	} else if q.out.AckReq {
		r.timer.sample(now, r.nxt)
		q.flow.Stamp(now, uint64(r.nxt))
	}
	if q.out.AckReq {
		r.since, r.probe = 0, false
	}
	r.nxt += n
	r.sent = max(r.sent, r.nxt)
	if r.nxt == q.sq.at(r.cur).end {
		r.cur++
	}
	q.startTimer(now)
}

// Awaits reports whether packets were sent whose acknowledgement, or timeout,
// will come.
func (q *QP) Awaits() bool { return q.sends() && q.req.una != q.req.nxt }
