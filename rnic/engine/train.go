package engine

import (
	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/engine/path"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// A train is a run of packets from the middle of a SEND or WRITE: they differ
// in PSN and payload alone. What was decided for the first, or found right in
// it, holds for those behind it. On an Ethernet a message of 1 MiB has a
// thousand of them.

// sendTrain sends the train behind the packet of w that was just sent, as far
// as nothing would be decided anew for each of its packets. They leave as if
// each had been sent by itself.
func (q *QP) sendTrain(now Time, b *Batch, w *sendWR) {
	r := &q.req
	most, sent := q.trainLength(w), 0
	for off := uint64(r.nxt-w.first) * uint64(w.mtu); sent < most && !b.Full(); sent++ {
		payload, sum, err := q.fetch(b, q.out.Opcode, w, off, w.mtu)
		if err != nil {
			break // sendData finds it, too
		}
		b.addNext(payload)
		q.finish(b, sum)
		off += uint64(w.mtu)
	}
	if sent == 0 {
		return
	}
	cost := sent * (w.mtu + packetCost)
	r.since += cost
	r.nxt += seq(sent)
	r.sent = r.nxt
	q.flow.Sent(now, cost)
	q.counters.SentPkts += uint64(sent)
	q.counters.SentBytes += uint64(sent * w.mtu)
}

// trainLength is how many packets behind the one of w that was just sent may
// leave as a train: none of them ends the message, asks for an ACK, or goes
// again, and there is room for all in flight. A paced path decides for each.
func (q *QP) trainLength(w *sendWR) int {
	r := &q.req
	base, _ := q.flow.RoundTrip()
	if q.out.Opcode.Position() != wire.Middle || q.out.AckReq || r.nxt < r.sent || base >= path.Long {
		return 0
	}
	cost := w.mtu + packetCost
	room := min(r.win.size, q.room()) - q.inFlight()
	n := min(int(w.end-1-r.nxt), room/cost, (q.ackInterval()-1-r.since)/cost)
	if n <= 0 || !q.reaches(r.nxt+seq(n)) {
		return 0
	}
	return n
}

// ReceiveTrain takes the packets behind the first of in that are its train, and
// returns how many. The first is p, which was the last that Receive took: to
// the queue pair it is as if that had taken the others, too. Afterwards p has
// another's payload. Next: as after Receive.
func (q *QP) ReceiveTrain(now Time, p *wire.Packet, in []wire.Datagram) (n int) {
	r, x := &q.rsp, q.extension
	carriedOut := q.genuine && q.state != abi.QPSErr && p.Opcode.Operation() == r.during && p.PSN == (r.next-1).psn()
	if p.Opcode.Position() != wire.Middle || !carriedOut || x != nil && x.requests.n > 0 {
		return 0
	}
	size := len(p.Payload)
	for ; n+1 < len(in) && in[n+1].Follows(&in[n]); n++ {
		p.Payload = in[n+1].Head[wire.BTHLen:][:size]
		if q.checkLength(p).refuses() || q.store(p, false) != nil {
			break // Receive finds it, too
		}
		r.done += uint64(size)
	}
	if n == 0 {
		return 0
	}
	q.counters.RcvdPkts += uint64(n)
	q.counters.RcvdBytes += uint64(n * size)
	if p.FECN {
		q.counters.Marked += uint64(n)
	}
	q.executed(p, n)
	q.scheduleAck(now, p, false)
	return n
}
