package rnic

import (
	"slices"

	"github.com/rdmashim/rdmashim/rnic/engine"
)

// Piggybacked ACKs: acknowledgements wait for packets that take them along
// (engine/responder_exec.go). Queue pairs that hold one are in Device.held;
// owed tells without the lock whether any is.

// hold notes that q holds an acknowledgement. Preconditions, here and below: mu
// is held.
func (d *Device) hold(q *QP) {
	if !q.holds {
		q.holds = true
		d.held = append(d.held, q)
		d.owed.Store(true)
	}
}

// drop takes a queue pair out that will send no acknowledgement any more.
func (d *Device) drop(q *QP) {
	if q.holds {
		q.holds = false
		d.held = slices.DeleteFunc(d.held, func(h *QP) bool { return h == q })
		d.owed.Store(len(d.held) > 0)
	}
}

// piggyback adds held acknowledgements to the batch that is about to leave.
func (d *Device) piggyback(now engine.Time) {
	kept := d.held[:0]
	for _, q := range d.held {
		switch {
		case q.gone || !q.engine.HoldsAck():
		case d.batch.Full():
			kept = append(kept, q)
			continue
		default:
			q.engine.ReleaseAck()
			if q.transmit(now) {
				d.senders.push(q)
			}
			d.note(q)
		}
		q.holds = false
	}
	clear(d.held[len(kept):])
	d.held = kept
	d.owed.Store(len(kept) > 0)
}

// sendHeld sends the acknowledgements that wait.
func (d *Device) sendHeld() {
	d.releaseAcks()
	d.settle(doorbellBatches)
}

// releaseAcks makes queue pairs that hold an acknowledgement senders.
func (d *Device) releaseAcks() {
	for i, q := range d.held {
		d.held[i] = nil
		q.holds = false
		if !q.gone && q.engine.HoldsAck() {
			q.engine.ReleaseAck()
			d.touch(q)
		}
	}
	d.held = d.held[:0]
	d.owed.Store(false)
}
