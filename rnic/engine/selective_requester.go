package engine

import (
	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/engine/path"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// learn takes over the bitmap of a NAK for s: the peer carried out all before
// s, and lacks s and the packets without a bit before the last bit. It reports
// whether the peer is one that tells.
func (x *extension) learn(now Time, s seq, bitmap wire.Bitmap) bool {
	q, r := x.q, &x.q.req
	if len(bitmap) == 0 || !x.soft {
		return false
	}
	if r.timer.waitsForReceiver() {
		return true
	}
	end := min(x.scoring(), s+seq(bitmap.Len()))
	x.executed = max(x.executed, s)
	found, counted := 0, seq(0)
	for i, p := q.sq.head, r.una; p < end; p++ {
		for q.sq.at(i).end <= p {
			i++
		}
		w := q.sq.at(i)
		there, answer := p < s || bitmap.Has(int(p-s)), w.kind.returnsData()
		switch was := *x.state(p); {
		case x.answers.at(p) != nil, there && !answer:
			x.mark(w, p, arrived)
		case there && p >= s: // its answer will come
			x.mark(w, p, max(now, 1))
		case was == unknown, was == arrived:
			x.mark(w, p, missing)
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
	found += x.loseTail(now, end)
	q.measureEarly(now, end, func(p seq) bool { return *x.state(p) == arrived })
	x.noteLoss(now, found)
	r.timer.probes = 0
	q.startRetransmit(now)
	return true
}

// miss notes that the peer carried out all before beyond, but una's answer is
// missing. Early is the answer that shows it, to be kept, or nil. It reports
// whether the peer is one that repeats selectively.
func (x *extension) miss(now Time, beyond seq, early *wire.Packet) bool {
	q, r := x.q, &x.q.req
	if !x.soft {
		return false
	}
	if early != nil {
		x.stashAnswer(now, beyond, early)
	}
	if r.timer.waitsForReceiver() {
		return true
	}
	end := min(x.scoring(), beyond)
	x.executed = max(x.executed, beyond)
	found := 0
	for i, p := q.sq.head, max(r.una, x.top); p < end; p++ {
		for q.sq.at(i).end <= p {
			i++
		}
		w := q.sq.at(i)
		switch was := *x.state(p); {
		case x.answers.at(p) != nil, !w.kind.returnsData():
			x.mark(w, p, arrived)
		case was == unknown:
			x.mark(w, p, missing)
			found++
		}
	}
	x.top = max(x.top, end)
	if found > 0 {
		q.counters.ImpliedNAKs++
	}
	if found > 0 || x.overdue(now, r.una) {
		x.noteLoss(now, found)
		q.startRetransmit(now)
	}
	return true
}

// suspectAnswer takes the rest of una's answer to be lost, if una is one: the
// peer was silent for too long. It reports whether that can be repaired.
func (x *extension) suspectAnswer() bool {
	q, r := x.q, &x.q.req
	if a := &r.asked; !x.soft || a.empty() || a.front().first > r.una {
		return false
	}
	w := q.sq.at(q.sq.head)
	end := min(x.scoring(), r.asked.front().end)
	for p := r.una; p < end; p++ {
		if *x.state(p) == unknown {
			x.mark(w, p, missing)
		}
	}
	x.top, x.scan = max(x.top, end), true
	return true
}

// noteLoss has Transmit repair missing packets, found of which are newly known.
func (x *extension) noteLoss(now Time, found int) {
	x.scan = true
	x.endRound(now)
	if found > 0 {
		x.beginRound(now)
	}
	x.lost += found
	x.sampleArrived(now)
}

// sampleArrived ends the measurement where the sampled packet arrived before
// una: it is not timed by when una reaches it.
func (x *extension) sampleArrived(now Time) {
	q, r := x.q, &x.q.req
	if t := &r.timer; t.sampling && t.samplePk >= r.una && t.samplePk < x.hi && *x.state(t.samplePk) == arrived {
		unmeasured := t.srtt == 0
		t.acknowledged(now, t.samplePk+1, false)
		if unmeasured && t.srtt != 0 {
			q.measured()
		}
	}
}

// beginRound notes a loss: a round begins unless one is going on.
func (x *extension) beginRound(now Time) {
	q := x.q
	x.lastLoss = max(now, 1)
	q.flow.Lost()
	if x.begun == 0 {
		q.counters.Retries++
		x.start, x.begun, x.lost, x.repaired = q.req.una, max(now, 1), 0, 0
	}
}

// endRound has the window follow the losses of a round.
func (x *extension) endRound(now Time) {
	q := x.q
	if x.begun == 0 || Duration(now-x.begun) < max(q.answerTime(), 1) {
		return
	}
	q.req.win.trim(x.lost, int(max(x.top, q.req.una)-x.start)+x.repaired, q.largest)
	x.begun = 0
}

// loseTail looks behind end, where the bitmap of a NAK ends: when the packet
// resent has arrived, all that left before its last copy has, or is lost.
// Answers say nothing, since repeated ones go first.
func (x *extension) loseTail(now Time, end seq) (found int) {
	q, r := x.q, &x.q.req
	if r.una > x.resent && x.tailAt == 0 {
		x.tailAt = now + Time(r.timer.srtt/4)
	}
	if x.tailAt == 0 || now < x.tailAt {
		return 0
	}
	to := min(x.scoring(), x.tail)
	x.tail, x.tailAt = 0, 0
	for i, p := q.sq.head, max(r.una, end); p < to; p++ {
		for q.sq.at(i).end <= p {
			i++
		}
		if w := q.sq.at(i); *x.state(p) == unknown && !w.kind.returnsData() {
			x.mark(w, p, missing)
			found++
		}
	}
	x.top = max(x.top, to)
	return found
}

// sentAgain notes that the packets [s, end) of w leave again.
func (x *extension) sentAgain(now Time, w *sendWR, s, end seq) {
	r := &x.q.req
	if x.at == nil {
		return
	}
	if s == r.una && x.tail == 0 {
		x.resent, x.tail, x.tailAt = s, r.sent, 0
	}
	end = min(end, r.una+span)
	x.fit(r.una, end)
	if *x.state(s) > 0 { // the last copy was lost, too
		x.beginRound(now)
		x.lost++
	}
	for ; s < end; s++ {
		x.repaired++
		x.mark(w, s, max(now, 1))
	}
}

// reaches reports whether packets may be sent up to end. While one is missing,
// the peer keeps those only that a bitmap has room for.
func (x *extension) reaches(end seq) bool {
	q := x.q
	return q.req.una >= x.top || end <= q.req.una+reach(q.mtu)
}

// transmitRepairs sends missing packets again, the oldest first, as far as the
// window has room.
func (x *extension) transmitRepairs(now Time, b *Batch) {
	q, r := x.q, &x.q.req
	x.scan = false
	if !q.sends() || r.timer.waitsForReceiver() {
		return
	}
	x.loseRepeats(now)
	nxt, cur := r.nxt, r.cur
	r.cur = q.sq.head
	for s := r.una; s < min(x.top, nxt); {
		for q.sq.at(r.cur).end <= s {
			r.cur++
		}
		if !x.overdue(now, s) {
			s++
			continue
		}
		if x.scan = b.Full(); x.scan {
			break
		}
		i := r.cur
		end, ok := x.repair(now, b, s, nxt, cur)
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
func (x *extension) loseRepeats(now Time) {
	q, r := x.q, &x.q.req
	for i, p := q.sq.head, r.una; p < min(x.top, r.nxt); p++ {
		if *x.state(p) <= 0 || !x.overdue(now, p) {
			continue
		}
		for q.sq.at(i).end <= p {
			i++
		}
		x.mark(q.sq.at(i), p, missing)
		x.beginRound(now)
		x.lost++
	}
}

// repair sends the packet s again, or asks again for the answer s and the
// missing packets behind it. nxt and cur are the requester's. It returns the
// PSN behind, and false if that must wait: the oldest packet never does.
func (x *extension) repair(now Time, b *Batch, s, nxt seq, cur uint64) (end seq, ok bool) {
	q, r := x.q, &x.q.req
	w := q.sq.at(r.cur)
	if w.status != abi.WCSuccess {
		q.failLocal()
		return s, false
	}
	flight := int(q.costAt(cur, nxt)-q.costAt(q.sq.head, r.una)) - x.idle
	room := min(r.win.size, q.room()) - flight - x.costOf(w, s)
	if s == r.una {
		x.noteStuck()
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
		for end < min(to, x.top) && x.overdue(now, end) && room >= x.costOf(w, end) {
			room -= x.costOf(w, end)
			end++
		}
	}
	q.writeAsk(now, b, w, end)
	return end, true
}

// noteStuck notes that una is repaired. Where a device damages segments that it
// cuts, at most the first packet of a repaired run arrives.
func (x *extension) noteStuck() {
	r := &x.q.req
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
func (x *extension) stashAnswer(now Time, s seq, p *wire.Packet) {
	q, r := x.q, &x.q.req
	if _, ok := r.asked.endOf(s); !ok || len(p.Payload) > x.takes() {
		return
	}
	if !x.answers.put(q.cfg.Stash, x.neighbour, r.una, reach(q.mtu), s, p) || s >= x.scoring() {
		return
	}
	i := q.sq.head
	for q.sq.at(i).end <= s {
		i++
	}
	x.mark(q.sq.at(i), s, arrived)
	q.measureArrived(now, s+1, func(p seq) bool { return p == s })
	x.sampleArrived(now)
}

// unstashAnswers takes the answers that were kept until una's came.
func (x *extension) unstashAnswers(now Time) {
	q, r, t := x.q, &x.q.req, &x.answers
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

// doublesFor is how many round trips after a loss READ requests leave twice.
const doublesFor = 16

// doubles reports whether a READ request leaves twice: on a long path that
// loses packets, to a peer that knows the second by its missing AckReq.
// Requests behind a lost one wait for a round trip, and its answer is worth
// many packets.
func (x *extension) doubles(now Time, w *sendWR) bool {
	q := x.q
	last := x.lastLoss
	base, rtt := q.flow.RoundTrip()
	return last != 0 && w.kind.operation == wire.OpRead && x.soft &&
		base >= path.Long && Duration(now-last) < doublesFor*rtt
}
