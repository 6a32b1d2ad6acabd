package engine

import (
	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// scoreboard is what a requester knows of packets behind una, as RFC 6675's. at
// holds a state for each PSN of [una, una+span), at its number modulo span:
//
//	unknown  it was sent once, and nothing speaks of a loss
//	arrived  the peer has it, or its answer is kept here
//	missing  it is to be sent again
//	> 0      when it was sent again last
//
// Those from hi on are unknown, and none from top on was found missing. idle is
// the cost of those that arrived or are missing: they are not in flight.
type scoreboard struct {
	at       []Time // made with the first loss
	top, hi  seq
	executed seq // the peer carried out all before it
	idle     int
	scan     bool // Transmit is to look for what is missing

	// A round begins with a loss, at una = start, and ends after a round trip;
	// 0: none is going on.
	start          seq
	begun          Time
	lost, repaired int // packets, in the round; one may be so several times

	// When the packet resent, una then, was sent again, those before tail had
	// left; 0: that is noted. It is believed from tailAt on; 0: resent has not
	// arrived.
	resent, tail seq
	tailAt       Time

	stuck  seq // una, when it was last repaired
	inVain int // how often in a row una had moved by one packet at most
}

const (
	unknown Time = 0
	arrived Time = -1
	missing Time = -2
)

// costOf is the cost of the packet s of w, or of its answer.
func (q *QP) costOf(w *sendWR, s seq) int {
	off := uint64(s-w.first) * uint64(q.mtu)
	return int(min(uint64(w.length)-off, uint64(q.mtu))) + packetCost
}

// mark sets the state of the packet s of w, which lies in [una, una+span).
func (q *QP) mark(w *sendWR, s seq, to Time) {
	x := &q.req.scores
	p := &x.at[s%span]
	switch {
	case *p < 0 && to >= 0:
		x.idle -= q.costOf(w, s)
	case *p >= 0 && to < 0:
		x.idle += q.costOf(w, s)
	}
	*p = to
	x.hi = max(x.hi, s+1)
}

// scoring makes the scoreboard, and returns the end of what it may tell of.
func (q *QP) scoring() seq {
	x := &q.req.scores
	if x.at == nil {
		x.at = make([]Time, span)
	}
	return min(q.req.nxt, q.req.una+q.reach())
}

// learn takes over the bitmap of a NAK for s: the peer carried out all before
// s, and lacks s and what has no bit before the last bit.
func (q *QP) learn(now Time, s seq, bitmap wire.Bitmap) {
	r := &q.req
	x := &r.scores
	if r.timer.waitsForReceiver() {
		return
	}
	end := min(q.scoring(), s+seq(bitmap.Len()))
	x.executed = max(x.executed, s)
	found, counted := 0, seq(0)
	for i, p := q.sq.head, r.una; p < end; p++ {
		for q.sq.at(i).end <= p {
			i++
		}
		w := q.sq.at(i)
		there, answer := p < s || bitmap.Has(int(p-s)), w.kind.returnsData()
		switch was := x.at[p%span]; {
		case r.stash.at(p) != nil, there && !answer:
			q.mark(w, p, arrived)
		case there && p >= s: // its answer will come
			q.mark(w, p, max(now, 1))
		case was == unknown, was == arrived:
			q.mark(w, p, missing)
			if p >= counted { // a request was lost as one packet
				found++
				counted = p + 1
				if answer {
					counted, _ = r.asked.endOf(p)
				}
			}
		}
	}
	x.top = max(x.top, end)
	found += q.loseTail(now, end)
	q.heardEarly(now, end, func(p seq) bool { return x.at[p%span] == arrived })
	q.noteLoss(now, found)
	r.timer.probes = 0
	q.startRetransmit(now)
}

// miss notes that the peer carried out all before beyond, but una's answer is
// missing.
func (q *QP) miss(now Time, beyond seq) {
	r := &q.req
	x := &r.scores
	if r.timer.waitsForReceiver() {
		return
	}
	end := min(q.scoring(), beyond)
	x.executed = max(x.executed, beyond)
	found := 0
	for i, p := q.sq.head, max(r.una, x.top); p < end; p++ {
		for q.sq.at(i).end <= p {
			i++
		}
		w := q.sq.at(i)
		switch was := x.at[p%span]; {
		case r.stash.at(p) != nil, !w.kind.returnsData():
			q.mark(w, p, arrived)
		case was == unknown:
			q.mark(w, p, missing)
			found++
		}
	}
	x.top = max(x.top, end)
	if found > 0 {
		q.counters.ImpliedNAKs++
	}
	if found > 0 || q.overdue(now, r.una) {
		q.noteLoss(now, found)
		q.startRetransmit(now)
	}
}

// suspectAnswer takes the rest of una's answer to be lost, if una is one: the
// peer was silent for too long. It reports whether that can be repaired.
func (q *QP) suspectAnswer() bool {
	r := &q.req
	if a := &r.asked; !q.selective() || a.empty() || a.front().first > r.una {
		return false
	}
	w := q.sq.at(q.sq.head)
	end := min(q.scoring(), r.asked.front().end)
	for p := r.una; p < end; p++ {
		if r.scores.at[p%span] == unknown {
			q.mark(w, p, missing)
		}
	}
	r.scores.top, r.scores.scan = max(r.scores.top, end), true
	return true
}

// noteLoss has Transmit repair what is missing. Found packets were not known to
// be.
func (q *QP) noteLoss(now Time, found int) {
	r := &q.req
	x := &r.scores
	x.scan = true
	q.endRound(now)
	if found > 0 {
		q.beginRound(now)
	}
	x.lost += found
	q.sampleArrived(now)
}

// sampleArrived ends the measurement where the sampled packet arrived before
// una: it is not timed by when una reaches it.
func (q *QP) sampleArrived(now Time) {
	r := &q.req
	x := &r.scores
	if t := &r.timer; t.sampling && t.samplePk >= r.una && t.samplePk < x.hi && x.at[t.samplePk%span] == arrived {
		unmeasured := t.srtt == 0
		t.acknowledged(now, t.samplePk+1, false)
		if unmeasured && t.srtt != 0 {
			q.measured()
		}
	}
}

// overdue reports whether the packet s is to be sent again: it is missing, or
// the last copy had the time to arrive and be acknowledged.
func (q *QP) overdue(now Time, s seq) bool {
	at := q.req.scores.at[s%span]
	return at == missing || at > 0 && Duration(now-at) > q.answerTime()
}

// answerTime is when the answer to a packet is there as a rule.
func (q *QP) answerTime() Duration {
	t := &q.req.timer
	switch {
	case t.srtt != 0:
		return t.srtt + t.srtt/4 + t.variance
	case q.path != nil && q.path.srtt != 0:
		return 2 * q.path.srtt
	}
	d, _, _ := q.expected()
	return d
}

// repaired reports whether una was found missing, and sent again.
func (q *QP) repaired() bool {
	x := &q.req.scores
	return x.top > q.req.una && x.at[q.req.una%span] > 0
}

// pass clears the states of the packets before to, which becomes una.
func (q *QP) pass(now Time, to seq) {
	r := &q.req
	x := &r.scores
	for i, p := q.sq.head, r.una; p < min(to, x.hi); p++ {
		for q.sq.at(i).end <= p {
			i++
		}
		q.mark(q.sq.at(i), p, unknown)
	}
	q.endRound(now)
}

// beginRound notes a loss: a round begins unless one is going on.
func (q *QP) beginRound(now Time) {
	x := &q.req.scores
	if q.path != nil {
		q.path.lost()
	}
	if x.begun == 0 {
		q.counters.Retries++
		x.start, x.begun, x.lost, x.repaired = q.req.una, max(now, 1), 0, 0
	}
}

// endRound has the window follow the losses of a round.
func (q *QP) endRound(now Time) {
	x := &q.req.scores
	if x.begun == 0 || Duration(now-x.begun) < max(q.answerTime(), 1) {
		return
	}
	q.req.win.trim(x.lost, int(max(x.top, q.req.una)-x.start)+x.repaired, q.mtu)
	x.begun = 0
}

// loseTail looks behind end, where the bitmap of a NAK ends: when the packet
// resent has arrived, all that left before its last copy has, or is lost.
// Answers say nothing, since repeated ones go first.
func (q *QP) loseTail(now Time, end seq) (found int) {
	r := &q.req
	x := &r.scores
	if r.una > x.resent && x.tailAt == 0 {
		x.tailAt = now + Time(r.timer.srtt/4)
	}
	if x.tailAt == 0 || now < x.tailAt {
		return 0
	}
	to := min(q.scoring(), x.tail)
	x.tail, x.tailAt = 0, 0
	for i, p := q.sq.head, max(r.una, end); p < to; p++ {
		for q.sq.at(i).end <= p {
			i++
		}
		if w := q.sq.at(i); x.at[p%span] == unknown && !w.kind.returnsData() {
			q.mark(w, p, missing)
			found++
		}
	}
	x.top = max(x.top, to)
	return found
}

// trim notes that of so many packets some were lost in a round trip. The window
// shrinks by twice that part, to a half at most, and leaves room for 16
// packets: random losses hardly touch it, and leave it room to grow.
func (w *window) trim(lost, of, mtu int) {
	less := min(2*w.size/max(of, 1)*lost, w.size/2)
	w.size = max(w.size-less, min(w.size, 16*(mtu+packetCost)))
	w.slow = true
}

// forget makes all packets behind una unknown: they are sent again, or waited
// for.
func (x *scoreboard) forget(una seq) {
	for p := una; p < x.hi; p++ {
		x.at[p%span] = unknown
	}
	x.top, x.hi, x.idle, x.scan, x.begun, x.tail = 0, 0, 0, false, 0, 0
}

// sentAgain notes that the packets [s, end) of w leave again.
func (q *QP) sentAgain(now Time, w *sendWR, s, end seq) {
	r, x := &q.req, &q.req.scores
	if x.at == nil {
		return
	}
	if s == r.una && x.tail == 0 {
		x.resent, x.tail, x.tailAt = s, r.sent, 0
	}
	for end = min(end, r.una+span); s < end; s++ {
		if x.at[s%span] > 0 { // the last copy was lost, too
			q.beginRound(now)
			x.lost++
		}
		x.repaired++
		q.mark(w, s, max(now, 1))
	}
}

// reaches reports whether packets may be sent up to end. While one is missing,
// the peer keeps those only that a bitmap has room for.
func (q *QP) reaches(end seq) bool {
	return q.req.una >= q.req.scores.top || end <= q.req.una+q.reach()
}

// transmitRepairs sends again what is missing, the oldest first, as far as the
// window has room.
func (q *QP) transmitRepairs(now Time, b *Batch) {
	r := &q.req
	x := &r.scores
	if !x.scan {
		return
	}
	x.scan = false
	if !q.sends() || r.timer.waitsForReceiver() {
		return
	}
	nxt, cur := r.nxt, r.cur
	r.cur = q.sq.head
	for s := r.una; s < min(x.top, nxt); {
		for q.sq.at(r.cur).end <= s {
			r.cur++
		}
		if !q.overdue(now, s) {
			s++
			continue
		}
		if x.scan = b.Full(); x.scan {
			break
		}
		i := r.cur
		end, ok := q.repair(now, b, s, nxt, cur)
		if !ok {
			break
		}
		s, r.cur = end, i
	}
	r.nxt, r.cur = nxt, cur
	q.startProbe(now)
}

// repair sends the packet s again, or asks again for the answer s and what is
// missing of that answer behind it. Nxt and cur are the requester's. It returns
// the PSN behind, and false if that must wait: the oldest packet never does.
func (q *QP) repair(now Time, b *Batch, s, nxt seq, cur uint64) (end seq, ok bool) {
	r := &q.req
	x := &r.scores
	w := q.sq.at(r.cur)
	if w.status != abi.WCSuccess {
		q.failLocal()
		return s, false
	}
	flight := int(q.costAt(cur, nxt)-q.costAt(q.sq.head, r.una)) - x.idle
	room := min(r.win.size, q.room()) - flight - q.costOf(w, s)
	if s == r.una {
		q.noteStuck()
	} else if room < 0 {
		x.scan = true
		return s, false
	}
	end = s + 1
	r.nxt, r.probe = s, true
	if !w.kind.returnsData() {
		off := uint64(s-w.first) * uint64(q.mtu)
		ok = q.writeData(now, b, w, off, int(min(uint64(w.length)-off, uint64(q.mtu))))
		return end, ok
	}
	to, ok := r.asked.endOf(s)
	if !ok {
		return s, false
	}
	if s >= x.executed {
		end = to // the request itself was lost
	} else {
		for end < min(to, x.top) && q.overdue(now, end) && room >= q.costOf(w, end) {
			room -= q.costOf(w, end)
			end++
		}
	}
	q.writeAsk(now, b, w, end)
	return end, true
}

// noteStuck notes that una is repaired. Where a device spoils what it cuts, at
// most the first packet of a repaired run arrives.
func (q *QP) noteStuck() {
	r := &q.req
	x := &r.scores
	if r.una <= x.stuck+1 {
		x.inVain++
	} else {
		x.inVain = 0
	}
	x.stuck = r.una
	if x.inVain >= 3 {
		r.alone = r.sent
	}
}

// stashAnswer keeps the answer s, which came before una's.
func (q *QP) stashAnswer(now Time, s seq, p *wire.Packet) {
	r := &q.req
	if _, ok := r.asked.endOf(s); !ok || !q.selective() || len(p.Payload) > q.mtu {
		return
	}
	if !r.stash.put(q.cfg.Stash, r.una, q.reach(), s, p) || s >= q.scoring() {
		return
	}
	i := q.sq.head
	for q.sq.at(i).end <= s {
		i++
	}
	q.mark(q.sq.at(i), s, arrived)
	q.heard(now, s+1, func(p seq) bool { return p == s })
	q.sampleArrived(now)
}

// unstashAnswers takes the answers that were kept until una's came.
func (q *QP) unstashAnswers(now Time) {
	r := &q.req
	t := &r.stash
	for q.sends() && t.n > 0 {
		t.drop(r.una)
		if r.asked.empty() {
			return
		}
		h := t.take(max(r.una, r.asked.front().first))
		if h == nil {
			return
		}
		q.receiveData(now, h.seq, &h.p)
		q.cfg.Stash.release(h)
	}
}
