package engine

import "github.com/rdmashim/rdmashim/rnic/wire"

// pressure is the number of bytes that a responder carries out, packetCost for
// each packet included, before it acknowledges without delay. A requester whose
// window has opened asks for an ACK as often.
const pressure = 256 << 10

// overdue is an earlier time than any.
const overdue Time = -1

// scheduleAck decides how long the ACK may wait that p may have called for. It
// may wait for a packet to ride with, or for the application to be woken,
// unless the requester cannot go on without it: it asks in the middle of a
// message, or repeats what it did not hear about, or has sent a lot.
func (q *QP) scheduleAck(now Time, p *wire.Packet, duplicate bool) {
	r := &q.rsp
	if !r.ack {
		return
	}
	if r.ackBy == 0 {
		r.ackBy = now + Time(q.cfg.Tuning.AckDelay)
	}
	if duplicate || r.unacked >= pressure || p.AckReq && !p.Opcode.EndsMessage() {
		r.ackBy = overdue
	}
}

// ackSent follows every packet that acknowledges all that was carried out.
func (q *QP) ackSent() {
	r := &q.rsp
	r.ack, r.ackBy, r.unacked = false, 0, 0
}

// HoldsAck reports that an ACK waits for another packet to ride with, for its
// time (NextTimeout), or for Hurry.
func (q *QP) HoldsAck() bool { return q.rsp.ack }

// Hurry ends the delay of an ACK that waits. Next: Transmit.
func (q *QP) Hurry() {
	if q.rsp.ack {
		q.rsp.ackBy = overdue
	}
}
