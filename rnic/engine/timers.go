package engine

import "github.com/rdmashim/rdmashim/kshim/abi"

// timer keeps the requester's times. A Time of 0 means off, which no
// later time is.
type timer struct {
	retransmit Time // when to go back without having heard anything
	giveUp     Time // when the peer is believed to be gone
	receiver   Time // end of the wait that an RNR NAK asked for

	rto      Duration // from measurement, without backoff
	backoff  uint     // timeouts in a row
	srtt     Duration // 0: not measured
	variance Duration

	sampling bool // sampled at sampledAt: the packet with PSN sampleSeq
	sampleAt Time
	samplePk seq
}

// waitsForReceiver reports whether an RNR NAK's wait is going on.
func (t *timer) waitsForReceiver() bool { return t.receiver != 0 }

// sample begins to measure the round trip with the packet s, sent for the first
// time, unless a measurement is going on.
func (t *timer) sample(now Time, s seq) {
	if !t.sampling {
		t.sampling, t.sampleAt, t.samplePk = true, now, s
	}
}

// acknowledged ends the measurement when it covers the sampled packet
// (RFC 6298 section 2).
func (t *timer) acknowledged(now Time, una seq) {
	if !t.sampling || una <= t.samplePk {
		return
	}
	t.sampling = false
	rtt := max(Duration(now-t.sampleAt), 1)
	if t.srtt == 0 {
		t.srtt, t.variance = rtt, rtt/2
	} else {
		d := t.srtt - rtt
		t.variance += (max(d, -d) - t.variance) / 4
		t.srtt += (rtt - t.srtt) / 8
	}
	t.rto = t.srtt + 4*t.variance
}

// ackTimeout is the local ACK timeout, 0 if there is none.
func (q *QP) ackTimeout() Duration {
	d := Duration(q.attr.Timeout.Nanoseconds())
	if d == 0 {
		return 0
	}
	return max(d, q.tun.MinAckTimeout)
}

// retransmitAfter is the retransmission timeout, with backoff.
func (q *QP) retransmitAfter() Duration {
	t := &q.req.timer
	limit := q.tun.MaxRTO
	if a := q.ackTimeout(); a > 0 {
		limit = min(limit, a)
	}
	d := q.tun.InitialRTO
	if t.srtt != 0 {
		d = max(t.rto, q.tun.MinRTO)
	}
	for range t.backoff {
		if d >= limit {
			break
		}
		d *= 2
	}
	return min(d, limit)
}

// patience is how long nothing may be acknowledged before the peer is given up,
// 0 for ever (IBA 9.7.6.1.3).
func (q *QP) patience() Duration {
	return q.ackTimeout() * Duration(q.attr.RetryCnt+1)
}

// startTimer makes sure that the timers run: something is in flight.
func (q *QP) startTimer(now Time) {
	t := &q.req.timer
	if t.retransmit == 0 {
		t.retransmit = now + Time(q.retransmitAfter())
	}
	if p := q.patience(); t.giveUp == 0 && p > 0 {
		t.giveUp = now + Time(p)
	}
}

// progress restarts the timers: the peer acknowledged something.
func (q *QP) progress(now Time) {
	t := &q.req.timer
	t.acknowledged(now, q.req.una)
	t.backoff, t.retransmit, t.giveUp, t.receiver = 0, 0, 0, 0
	if q.req.una < q.req.sent {
		q.startTimer(now)
	}
}

// NextTimeout is when HandleTimeout must be called; false if never. It may
// change with every other call.
func (q *QP) NextTimeout() (Time, bool) {
	t := &q.req.timer
	var at Time
	if q.rsp.ack {
		at = q.rsp.ackBy
	}
	for _, x := range [...]Time{t.retransmit, t.giveUp, t.receiver} {
		if x != 0 && (at == 0 || x < at) {
			at = x
		}
	}
	return at, at != 0
}

// HandleTimeout does what is due at now; an ACK that is due Transmit sends. Too early is harmless. Packets that
// arrived before now should be handed to Receive first. Next: Transmit,
// Completions, NextTimeout.
func (q *QP) HandleTimeout(now Time) {
	t := &q.req.timer
	if !q.sends() {
		return
	}
	if t.receiver != 0 && now >= t.receiver {
		t.receiver = 0
	}
	if t.giveUp != 0 && now >= t.giveUp && !q.wasStalled(now) {
		q.counters.RetryExceeded++
		q.failRequest(q.sq.head, abi.WCRetryExcErr)
		return
	}
	if t.retransmit != 0 && now >= t.retransmit {
		q.counters.Timeouts++
		t.backoff++
		switch {
		case planted == plantForEver:
			t.giveUp = now + Time(q.patience())
		case planted == plantSilence && t.backoff > 2:
			t.retransmit = 0
			return
		}
		q.req.wentBack = 0
		q.goBack(now, true)
	}
}

// wasStalled reports whether this call comes so late that it was the host that
// slept, not the peer; then the peer gets one more ACK timeout.
func (q *QP) wasStalled(now Time) bool {
	t := &q.req.timer
	late := Duration(now - t.giveUp)
	if late < q.ackTimeout() {
		return false
	}
	t.giveUp = now + Time(q.ackTimeout())
	return true
}
