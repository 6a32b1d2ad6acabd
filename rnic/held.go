package rnic

import "github.com/rdmashim/rdmashim/rnic/engine"

// Piggybacked ACKs: acknowledgements wait for packets that take them along
// (engine/responder_exec.go). Queue pairs that hold one are in queues.held;
// owed tells without the lock whether any is.

// piggyback adds held acknowledgements to the batch that is about to leave, as
// far as there is room. Preconditions, here and below: mu is held.
func (d *Device) piggyback(now engine.Time) {
	d.sift(func(q *QP) (keep bool) {
		if q.gone || !q.engine.HoldsAck() {
			return false
		}
		if d.batch.Full() {
			return true
		}
		q.engine.ReleaseAck()
		if q.transmit(now) {
			d.senders.push(q)
		}
		d.mark(q)
		return false
	})
}

// sendHeld sends the acknowledgements that wait.
func (d *Device) sendHeld() {
	d.releaseAcks()
	d.settle(doorbellBatches)
}

// releaseAcks makes queue pairs that hold an acknowledgement senders.
func (d *Device) releaseAcks() {
	d.sift(func(q *QP) (keep bool) {
		if !q.gone && q.engine.HoldsAck() {
			q.engine.ReleaseAck()
			d.touch(q)
		}
		return false
	})
}
