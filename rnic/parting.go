package rnic

import (
	"net/netip"
	"slices"
	"time"

	"github.com/rdmashim/rdmashim/rnic/engine"
	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

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

// partingCopies are sent of an acknowledgement: at once, and 1, 3, 7 and 15
// gaps later. The gap is an eighth of the round trip, so that all take two of
// them, but at least partingGap. Nothing is sent after partingLimit.
const (
	partingCopies = 5
	partingGap    = engine.Time(250 * engine.Microsecond)
	partingShare  = 8
	partingLimit  = engine.Time(100 * engine.Millisecond)
)

// dreqCopies leave together before a DREQ, whose receiver does not wait for
// later ones.
const dreqCopies = 3

// maxPartings bounds the queue pairs that are remembered; the oldest is
// forgotten first.
const maxPartings = 256

// parting is what is left of a queue pair.
type parting struct {
	engine.Parting
	num    wire.QPN
	near   uint64      // as QP.near
	copies int         // that are still to be sent
	ahead  int         // those of them that leave together, before a DREQ
	at     engine.Time // when the next one goes
	gap    engine.Time // from there to the one after it
	until  engine.Time // when the last may go
}

// begin starts the copies.
func (p *parting) begin(now engine.Time) {
	p.copies, p.ahead, p.at = partingCopies, 1, now
	p.gap = min(max(engine.Time(p.RoundTrip)/partingShare, partingGap), partingLimit/(1<<(partingCopies-1)))
}

// partings are guarded by Device.mu.
type partings struct {
	list []parting   // oldest first
	next engine.Time // when one must be looked at, or noAlarm
}

// part keeps the last acknowledgement of a queue pair that is about to go, if
// it can be lost and the peer may wait for it; ahead copies leave together.
// Preconditions, here and below: mu is held.
func (d *Device) part(q *QP, ahead int) {
	rc, ok := q.engine.(*engine.QP)
	if !ok || d.check() != nil || d.lossless(q) {
		return
	}
	now := d.now()
	p, ok := rc.Parting(now)
	if !ok {
		return
	}
	if l := &d.parting; len(l.list) == maxPartings {
		l.list = slices.Delete(l.list, 0, 1)
	}
	last := parting{Parting: p, num: q.num, near: q.near, until: now + partingLimit}
	last.begin(now)
	last.ahead = ahead
	d.parting.list = append(d.parting.list, last)
	d.parting.next = now
	d.setAlarm(now)
}

// partBeforeDREQ is part for the queue pair of a connection that ends: the peer
// that is told flushes what it has not been acknowledged.
func (d *Device) partBeforeDREQ(id wire.CommID) {
	if q := d.qps[d.gsi.cm.QPN(id)]; q != nil {
		q.sendOwed()
		d.part(q, dreqCopies)
	}
}

// partAll is part for the queue pairs of a device that closes.
func (d *Device) partAll() {
	for _, q := range d.qps {
		if q != nil {
			d.part(q, 1)
		}
	}
}

// lossless reports whether what a queue pair sends gets to its peer for
// certain: also the rings of a device that has gone are read to their end.
func (d *Device) lossless(q *QP) bool {
	return d.caps.Lossless || q.near != 0 && link.Link(d.near) == d.link && d.near.Reaches(q.near)
}

// fillPartings adds the copies that are due to the batch.
func (d *Device) fillPartings(now engine.Time) {
	l := &d.parting
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
	l.drop(func(p *parting) bool { return p.copies == 0 || p.at > p.until })
}

// answerRepeat begins again with the copies that answer a packet, which found
// no queue pair. False if there are none.
func (d *Device) answerRepeat(now engine.Time, in *link.Packet, p *wire.Packet) bool {
	l := &d.parting
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
func (l *partings) forget(own wire.QPN, peer netip.AddrPort, num wire.QPN) {
	l.drop(func(p *parting) bool { return p.num == own || p.Names(peer, num) })
}

// drop removes those that gone says.
func (l *partings) drop(gone func(*parting) bool) {
	l.list = slices.DeleteFunc(l.list, func(p parting) bool { return gone(&p) })
	l.next = noAlarm
	for i := range l.list {
		l.next = min(l.next, l.list[i].at)
	}
}

// linger sends the copies that peers of other devices may need. It frees the
// lock while it waits, partingLimit at most.
func (d *Device) linger() {
	d.parting.drop(func(p *parting) bool { return p.Peer == d.caps.Local })
	for len(d.parting.list) > 0 && d.lost == nil {
		if wait := d.parting.next - d.now(); wait > 0 {
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
