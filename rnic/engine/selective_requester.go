package engine

import (
	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// learn takes over the bitmap of a NAK for s: the peer carried out all before
// s, and lacks s and the packets without a bit before the last bit.
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
		switch was := *x.state(p); {
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
	q.heardEarly(now, end, func(p seq) bool { return *x.state(p) == arrived })
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
		switch was := *x.state(p); {
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
		if *r.scores.state(p) == unknown {
			q.mark(w, p, missing)
		}
	}
	r.scores.top, r.scores.scan = max(r.scores.top, end), true
	return true
}

// noteLoss has Transmit repair missing packets, found of which are newly known.
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
	if t := &r.timer; t.sampling && t.samplePk >= r.una && t.samplePk < x.hi && *x.state(t.samplePk) == arrived {
		unmeasured := t.srtt == 0
		t.acknowledged(now, t.samplePk+1, false)
		if unmeasured && t.srtt != 0 {
			q.measured()
		}
	}
}

// beginRound notes a loss: a round begins unless one is going on.
func (q *QP) beginRound(now Time) {
	x := &q.req.scores
	x.lastLoss = max(now, 1)
	q.flow.Lost()
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
	q.req.win.trim(x.lost, int(max(x.top, q.req.una)-x.start)+x.repaired, q.largest)
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
		if w := q.sq.at(i); *x.state(p) == unknown && !w.kind.returnsData() {
			q.mark(w, p, missing)
			found++
		}
	}
	x.top = max(x.top, to)
	return found
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
	end = min(end, r.una+span)
	x.fit(r.una, end)
	if *x.state(s) > 0 { // the last copy was lost, too
		q.beginRound(now)
		x.lost++
	}
	for ; s < end; s++ {
		x.repaired++
		q.mark(w, s, max(now, 1))
	}
}

// reaches reports whether packets may be sent up to end. While one is missing,
// the peer keeps those only that a bitmap has room for.
func (q *QP) reaches(end seq) bool {
	return q.req.una >= q.req.scores.top || end <= q.req.una+q.reach()
}

// transmitRepairs sends missing packets again, the oldest first, as far as the
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
	q.loseRepeats(now)
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

// loseRepeats takes packets for lost that were sent again and had the time to
// be acknowledged: they are in flight no more, and leave room for repairs.
func (q *QP) loseRepeats(now Time) {
	r := &q.req
	x := &r.scores
	for i, p := q.sq.head, r.una; p < min(x.top, r.nxt); p++ {
		if *x.state(p) <= 0 || !q.overdue(now, p) {
			continue
		}
		for q.sq.at(i).end <= p {
			i++
		}
		q.mark(q.sq.at(i), p, missing)
		q.beginRound(now)
		x.lost++
	}
}

// repair sends the packet s again, or asks again for the answer s and the
// missing packets behind it. nxt and cur are the requester's. It returns the
// PSN behind, and false if that must wait: the oldest packet never does.
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
		off := uint64(s-w.first) * uint64(w.mtu)
		ok = q.writeData(now, b, w, off, int(min(uint64(w.length)-off, uint64(w.mtu))))
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

// noteStuck notes that una is repaired. Where a device damages segments that it
// cuts, at most the first packet of a repaired run arrives.
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
	if _, ok := r.asked.endOf(s); !ok || !q.selective() || len(p.Payload) > q.takes() {
		return
	}
	if !r.stash.put(q.cfg.Stash, q.neighbour, r.una, q.reach(), s, p) || s >= q.scoring() {
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
