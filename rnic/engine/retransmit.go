package engine

import (
	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// goBack starts again at the oldest packet that is missing: in the middle of a
// message, or of a READ's responses (IBA 9.7.6). Something is outstanding.
func (q *QP) goBack(now Time, timeout bool) {
	r := &q.req
	q.counters.Retries++
	if timeout {
		// Where a device damages segments that it cuts, at most the first
		// packet of the repeated run has arrived.
		if r.una <= r.lapsedAt+1 {
			r.alone = r.sent
		}
		r.lapsed, r.lapsedAt = r.sent, r.una
	}
	if r.shrunk != r.una {
		r.shrunk = r.una
		q.shrink(timeout)
	}
	q.rewind()
	r.timer.repeatedAt = now
	q.startRetransmit(now)
}

// shrink notes a loss. The window shrinks where all behind the lost packet is
// repeated; the path judges by its delay.
func (q *QP) shrink(timeout bool) {
	known := q.req.timer.srtt != 0
	q.req.win.shrink(q.largest, timeout, known)
	if !timeout {
		q.flow.Lost()
	} else if known && q.req.timer.backoff > 1 {
		q.flow.Timeout()
	}
}

// rewind sends everything from una on again.
func (q *QP) rewind() {
	r := &q.req
	r.nxt, r.cur = r.una, q.sq.head
	r.since, r.probe = 0, true
	r.oldest, r.probedTo = false, 0
	if x := q.extension; x != nil {
		x.forget(r.una)
	}
}

// measured notes the first measurement. Of a packet that left before a timeout,
// and once, it shows that the timeout came too early: the packets that left
// with that one are on their way, too, and need not be repeated.
func (q *QP) measured() {
	r := &q.req
	r.win.restore()
	if r.timer.samplePk < r.lapsed && r.nxt < r.sent {
		r.nxt = r.sent
		for r.cur < q.sq.tail && q.sq.at(r.cur).ended(r.nxt) {
			r.cur++
		}
	}
}

// lost goes back because the peer, or a gap in its answers, said that una is
// missing. It does so once in two round trips: a second message about the same
// packet was on its way already, and the answer to the retransmission is not
// yet there.
func (q *QP) lost(now Time) {
	r := &q.req
	t := &r.timer
	if t.waitsForReceiver() || r.wentBack == r.una && (t.srtt == 0 || Duration(now-t.repeatedAt) < 2*t.srtt+4*t.variance) {
		return
	}
	r.wentBack = r.una
	t.probes = 0
	q.goBack(now, false)
}

// harmless is how many packets of a READ's answer a probe asks for again at
// most: a peer that is merely late sends them twice.
const harmless = 4

// probeOldest has the oldest packet sent again, asking for an ACK, as RACK's
// tail loss probe does (RFC 8985 section 7): long before the timeout, the
// answer tells which packets the peer misses. A peer that misses nothing only
// acknowledges once more. A READ is probed once, since its answer is data.
func (q *QP) probeOldest(now Time) {
	r := &q.req
	r.timer.probes++
	q.startProbe(now)
	if x := q.extension; x != nil && x.silence() {
		return
	}
	if a := &r.asked; !a.empty() && a.front().first <= r.una && (r.timer.probes > 1 || a.front().end-r.una > harmless) {
		return
	}
	r.oldest, r.probed, r.probedTo, r.probedAt = true, r.una, r.nxt, now
}

// probeAnswered notes an ACK of s. If it acknowledges a probe and no more, then
// the packets that left before the probe, with PSNs behind it, were lost. An
// ACK that comes too soon may be to an earlier copy; the second in a row is
// not: a peer that delays ACKs has made the round trip look long.
func (q *QP) probeAnswered(now Time, s seq) {
	r := &q.req
	if s != r.probed || s+1 >= r.probedTo {
		return
	}
	second := r.lone == s
	r.lone = s + 1
	if second || q.answersProbe(now) {
		q.lost(now)
	}
}

// answersProbe reports whether an answer that comes now may be the last
// probe's, by the time since: a sooner one is an earlier copy's.
func (q *QP) answersProbe(now Time) bool {
	t, after := &q.req.timer, Duration(now-q.req.probedAt)
	return after >= t.least-t.least/4 && after <= 2*t.srtt+4*t.variance
}

// receiverNotReady waits as long as the peer asked for, then starts again at
// una (IBA 9.7.5.2.8). The RNR retry count bounds how often, 7 is for ever.
func (q *QP) receiverNotReady(now Time, t wire.RNRTimer) {
	r := &q.req
	if r.timer.waitsForReceiver() {
		return // a copy of the NAK
	}
	q.counters.RNRRcvd++
	if q.attr.RNRRetry != 7 {
		if r.rnrLeft == 0 {
			q.counters.RNRRetryExceeded++
			q.failRequest(q.sq.head, abi.WCRNRRetryExcErr)
			return
		}
		r.rnrLeft--
	}
	if r.timer.unready == 0 {
		r.timer.unready = now
	}
	q.rewind()
	r.wentBack = 0
	r.timer.sampling = false // the wait is not of the path
	q.flow.UnstampAll()
	r.timer.receiver = now + Time(t.Nanoseconds())
	r.timer.retransmit, r.timer.probe, r.timer.giveUp = 0, 0, 0 // the peer lives
}
