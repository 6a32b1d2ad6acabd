package rnic

import (
	"net/netip"
	"slices"
	"time"

	"github.com/rdmashim/rdmashim/rnic/engine"
	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// Piggybacked ACKs: acknowledgements wait for packets that take them along
// (engine/responder_exec.go). Queue pairs that hold one are in queues.held;
// owed reports without the lock whether any is.

// piggyback adds held acknowledgements to the batch that is about to leave, as
// far as there is room. Preconditions, here and below: mu is held.
func (d *Device) piggyback(now engine.Time) {
	d.filterHeld(func(q *QP) (keep bool) {
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
		d.markChanged(q)
		return false
	})
}

// sendHeld sends the acknowledgements that wait.
func (d *Device) sendHeld() {
	d.releaseAcks()
	d.serveChanged(doorbellBatches)
}

// releaseAcks makes queue pairs that hold an acknowledgement senders.
func (d *Device) releaseAcks() {
	d.filterHeld(func(q *QP) (keep bool) {
		if !q.gone && q.engine.HoldsAck() {
			q.engine.ReleaseAck()
			d.schedule(q)
		}
		return false
	})
}

// A queue pair is destroyed when its program has all that it wanted, and the
// peer may still wait for the last acknowledgement: if that was lost, the
// message has arrived and the peer reports WCRetryExcErr. So the
// acknowledgement is sent again a few times after the queue pair has gone, at
// once and later, since losses come in bursts; and when the peer repeats its
// request. The copies do not depend on the peer's timers: a busy peer finds
// them in its buffer, and one whose ACK timeout is long is not waited for.
// Close waits for them.
//
// Linux does nothing of the kind: a destroyed queue pair of rdma_rxe drops
// requests (rxe_recv.c:check_type_state), and its peer fails.

// finalAckCopies are sent of an acknowledgement: at once, and 1, 3, 7 and 15
// gaps later. The gap is an eighth of the round trip, so that all take two of
// them, but at least finalAckGap. Nothing is sent after finalAckLimit.
const (
	finalAckCopies = 5
	finalAckGap    = engine.Time(250 * engine.Microsecond)
	finalAckShare  = 8
	finalAckLimit  = engine.Time(100 * engine.Millisecond)
)

// dreqCopies leave together before a DREQ, whose receiver does not wait for
// later ones.
const dreqCopies = 3

// maxFinalAcks bounds the queue pairs that are remembered; the oldest is
// forgotten first.
const maxFinalAcks = 256

// finalAck is what is left of a queue pair.
type finalAck struct {
	engine.FinalAck
	num    wire.QPN
	near   uint64      // as QP.near
	copies int         // that are still to be sent
	ahead  int         // those of them that leave together, before a DREQ
	at     engine.Time // when the next one goes
	gap    engine.Time // from there to the one after it
	until  engine.Time // when the last may go
}

// begin starts the copies.
func (p *finalAck) begin(now engine.Time) {
	p.copies, p.ahead, p.at = finalAckCopies, 1, now
	p.gap = min(max(engine.Time(p.RoundTrip)/finalAckShare, finalAckGap), finalAckLimit/(1<<(finalAckCopies-1)))
}

// finalAcks are guarded by Device.mu.
type finalAcks struct {
	list []finalAck  // oldest first
	next engine.Time // when one must be looked at, or noAlarm
}

// keepFinalAck keeps the last acknowledgement of a queue pair that is about to
// go, if it can be lost and the peer may wait for it; ahead copies leave
// together. Next: serveChanged, or linger. Preconditions, here and below: mu is
// held.
func (d *Device) keepFinalAck(q *QP, ahead int) {
	rc, ok := q.engine.(*engine.QP)
	if !ok || q.left || d.check() != nil || d.lossless(q) {
		return
	}
	now := d.now()
	p, ok := rc.FinalAck(now)
	if !ok {
		return
	}
	if l := &d.final; len(l.list) == maxFinalAcks {
		l.list = slices.Delete(l.list, 0, 1)
	}
	last := finalAck{FinalAck: p, num: q.num, near: q.near, until: now + finalAckLimit}
	last.begin(now)
	last.ahead = ahead
	d.final.list = append(d.final.list, last)
	d.final.next = now
}

// finalAckBeforeDREQ is keepFinalAck for the queue pair of a connection that
// ends: the peer flushes at a DREQ what it has not been acknowledged.
func (d *Device) finalAckBeforeDREQ(id wire.CommID) {
	if q := d.qps[d.gsi.cm.QPN(id)]; q != nil && !q.left {
		q.sendOwed()
		d.keepFinalAck(q, dreqCopies)
	}
}

// peerLeft is at the peer's DREQ or DREP: its queue pair is in ERR and waits
// for nothing (cma.c: rdma_disconnect).
func (d *Device) peerLeft(n wire.QPN) {
	if q := d.qps[n]; q != nil {
		q.left = true
	}
	d.final.drop(func(p finalAck) bool { return p.num == n })
}

// keepFinalAcks is keepFinalAck for the queue pairs of a device that closes.
func (d *Device) keepFinalAcks() {
	for _, q := range d.qps {
		if q != nil {
			d.keepFinalAck(q, 1)
		}
	}
}

// lossless reports whether what a queue pair sends gets to its peer for
// certain: also the rings of a device that has gone are read to their end.
func (d *Device) lossless(q *QP) bool {
	return d.caps.Lossless || q.near != 0 && link.Link(d.near) == d.link && d.near.Reaches(q.near)
}

// fillFinalAcks adds the copies that are due to the batch.
func (d *Device) fillFinalAcks(now engine.Time) {
	l := &d.final
	if now < l.next {
		return
	}
	for i := range l.list {
		p := &l.list[i]
		if p.at > now || d.batch.Full() {
			continue
		}
		for ; p.ahead > 0 && !d.batch.Full(); p.ahead-- {
			p.Transmit(d.batch)
			d.retired.SentPkts++
			p.copies--
		}
		p.ahead = 1
		p.at, p.gap = now+p.gap, 2*p.gap
	}
	l.drop(func(p finalAck) bool { return p.copies == 0 || p.at > p.until })
}

// answerRepeat begins again with the copies that answer a packet, which found
// no queue pair. False if there are none.
func (d *Device) answerRepeat(now engine.Time, in *link.Packet, p *wire.Packet) bool {
	l := &d.final
	for i := range l.list {
		if last := &l.list[i]; last.num == p.DestQPN && last.Answers(in.Peer.Addr(), p) {
			last.begin(now)
			l.next = now
			d.retired.RcvdPkts++
			d.retired.DuplicateRequest++
			return true
		}
	}
	return false
}

// forget drops what is left of a queue pair that begins another connection, or
// whose peer does: a copy might be taken for an acknowledgement of that.
func (l *finalAcks) forget(own wire.QPN, peer netip.AddrPort, num wire.QPN) {
	l.drop(func(p finalAck) bool { return p.num == own || p.Names(peer, num) })
}

// drop removes those that gone says.
func (l *finalAcks) drop(gone func(finalAck) bool) {
	l.list = slices.DeleteFunc(l.list, gone)
	l.next = noAlarm
	for i := range l.list {
		l.next = min(l.next, l.list[i].at)
	}
}

// linger sends the copies that peers of other devices may need. It frees the
// lock while it waits, finalAckLimit at most.
func (d *Device) linger() {
	d.final.drop(func(p finalAck) bool { return p.Peer == d.caps.Local })
	for len(d.final.list) > 0 && d.lost == nil {
		if wait := d.final.next - d.now(); wait > 0 {
			d.mu.Unlock()
			time.Sleep(time.Duration(wait))
			d.mu.Lock()
			continue
		}
		for d.sending {
			d.sent.Wait()
		}
		d.transmit(closeBatches)
	}
}
