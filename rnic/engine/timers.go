package engine

// timer keeps the requester's times. A Time of 0 means off, which no
// later time is.
type timer struct {
	retransmit Time // when to go back without having heard anything
	probe      Time // when to send the oldest packet again, to be told which are missing
	giveUp     Time // when the peer is believed to be gone
	longest    Time // giveUp of a peer that does not run
	paced      Time // when the path lets more go
	receiver   Time // end of the wait that an RNR NAK asked for
	unready    Time // when the first RNR NAK came since the peer acknowledged something

	probes   uint     // sent since the peer was heard
	backoff  uint     // timeouts since something showed that they are not too early
	srtt     Duration // 0: not measured
	variance Duration
	least    Duration // that was measured
	estimate Duration // of the round trip before it is measured; 0: none
	bound    Duration // the round trip is not longer; 0: measured since

	sampling bool // the packet with PSN samplePk, first sent at sampleAt, is being timed
	repeated bool // it was sent again
	sampleAt Time
	samplePk seq

	mark uint64 // what was on its way to the peer when that was first suspected; 0: it is not

	repeatedAt Time // when the requester last went back
	believed   int  // answers in time to repeated packets since the last measurement
}

// waitsForReceiver reports whether an RNR NAK's wait is going on.
func (t *timer) waitsForReceiver() bool { return t.receiver != 0 }

// sample begins to measure the round trip with the packet s, sent for the first
// time, unless a measurement is going on.
func (t *timer) sample(now Time, s seq) {
	if !t.sampling {
		t.sampling, t.repeated, t.sampleAt, t.samplePk = true, false, now, s
	}
}

// again notes that the packets [s, end) were sent again.
func (t *timer) again(s, end seq) {
	if s <= t.samplePk && t.samplePk < end {
		t.repeated = true
	}
}

// believable is how many answers to repeated packets in a row are taken to be
// to the last copies: enough for a path that loses one packet in five. It
// limits the needless repeats on a path that has become just so much longer
// that the answers to first copies look like that.
const believable = 8

// acknowledged ends the measurement when una has passed the sampled packet (RFC
// 6298 section 2). The answer to a repeated packet may be to any of its copies,
// so it measures nothing (section 3, Karn's rule); but the round trip is not
// longer than the time since the first of them. That bound is as good as the
// backoff, and takes its place. inTime says that the answer came as soon as one
// to the last copy would: then the bound is not needed, for a while.
func (t *timer) acknowledged(now Time, una seq, inTime bool) {
	if !t.sampling || una <= t.samplePk {
		return
	}
	t.sampling = false
	rtt := max(Duration(now-t.sampleAt), 1)
	switch {
	case t.repeated && inTime && t.believed < believable:
		t.believed++
		t.bound, t.backoff = min(t.bound, rtt), 0
		return
	case t.repeated:
		t.bound, t.backoff = rtt, 0
		return
	}
	t.measure(rtt)
}

// measure takes a round trip of a packet that was sent once.
func (t *timer) measure(rtt Duration) {
	t.believed = 0
	t.bound = 0
	if t.least == 0 || rtt < t.least {
		t.least = rtt
	}
	if t.srtt == 0 {
		t.srtt, t.variance = rtt, rtt/2
	} else {
		d := t.srtt - rtt
		t.variance += (max(d, -d) - t.variance) / 4
		t.srtt += (rtt - t.srtt) / 8
	}
}

// leastAckTimeout is the least local ACK timeout that is obeyed: the codes
// begin at 8 µs, which no soft device can keep (IBA 9.7.6.1.3 leaves the lower
// bound to the implementation).
const leastAckTimeout = Millisecond

// ackTimeout is the local ACK timeout, 0 if there is none.
func (q *QP) ackTimeout() Duration {
	d := Duration(q.attr.Timeout.Nanoseconds())
	if d == 0 {
		return 0
	}
	return max(d, leastAckTimeout)
}

// Estimate sets how long the round trip may take, known from the exchange that
// connected the queue pair, for example. It counts until a packet is measured,
// or until RESET.
func (q *QP) Estimate(rtt Duration) { q.req.timer.estimate = max(rtt, 0) }

// retransmitAfter is the retransmission timeout, with backoff. The ACK timeout
// bounds it, unless the path turns out to be longer: then every packet would be
// sent twice, and the timeout may grow as long as four of them fit into the
// requester's patience.
func (q *QP) retransmitAfter() Duration {
	t := &q.req.timer
	limit := q.maxTimeout()
	d, rtt, _ := q.expected()
	if q.waitsOut() {
		limit = max(limit, q.ackTimeout())
		d = limit
	}
	for range t.backoff {
		if d >= limit {
			break
		}
		d *= 2
	}
	rtt = max(rtt, t.bound)
	return max(min(d, limit), min(rtt+rtt/4, max(limit, q.patience()/4)))
}

// waitsOut reports whether silence is waited out for the local ACK timeout.
// Either nothing is lost on the way, and the peer is late. Or the peer is asked
// for memory, and no loss was seen: it may take that memory back when it knows
// that the answer came, as users of fast registration do, and a second request
// that comes late would then end the connection. Peers that repeat selectively
// do not mind it.
func (q *QP) waitsOut() bool {
	return q.lossless || q.req.asked.reads > 0 && !q.selective() && !q.lossy()
}

// maxTimeout is the longest retransmission timeout of a path that is not
// longer.
func (q *QP) maxTimeout() Duration {
	if a := q.ackTimeout(); a > 0 {
		return min(q.cfg.Tuning.MaxRTO, a)
	}
	return q.cfg.Tuning.MaxRTO
}

// expected is the time d by which an answer is there, from the round trip rtt
// as far as it is known. When nothing is known, d is InitialRTO.
func (q *QP) expected() (d, rtt Duration, known bool) {
	t := &q.req.timer
	switch {
	case t.srtt != 0:
		return t.srtt + max(4*t.variance, t.srtt/4, q.cfg.Tuning.MinRTO/2), t.srtt, true
	case t.estimate != 0:
		return t.estimate + max(2*t.estimate, q.cfg.Tuning.MinRTO), t.estimate, true // RFC 6298 (2.2)
	case t.bound != 0:
		return t.bound + q.cfg.Tuning.MinRTO, t.bound, true
	}
	return q.cfg.Tuning.InitialRTO, 0, false
}

// longest is how many times the ACK timeout a requester may wait before it
// takes silence for one (IBA 9.7.6.1.3: between one and four).
const longest = 4

// patience is how long nothing may be acknowledged before the peer is given up,
// 0 for ever (IBA 9.7.6.1.3).
func (q *QP) patience() Duration {
	return q.ackTimeout() * Duration(q.attr.RetryCnt+1)
}

// answerTime is when the answer to a packet is there as a rule.
func (q *QP) answerTime() Duration {
	t := &q.req.timer
	if t.srtt != 0 {
		return t.srtt + t.srtt/4 + t.variance
	}
	if _, rtt := q.flow.RoundTrip(); rtt != 0 {
		return 2 * rtt
	}
	d, _, _ := q.expected()
	return d
}

// startTimer makes sure that the timers run: something is in flight.
func (q *QP) startTimer(now Time) {
	t := &q.req.timer
	if t.retransmit == 0 {
		t.probes, t.mark = 0, 0
		q.startRetransmit(now)
	}
	if p := q.patience(); t.giveUp == 0 && p > 0 {
		t.giveUp, t.longest = now+Time(p), now+Time(longest*p)
	}
}

// startRetransmit sets the timers that end a silence of the peer.
func (q *QP) startRetransmit(now Time) {
	t := &q.req.timer
	t.retransmit = now + Time(q.retransmitAfter())
	q.startProbe(now)
}

// startProbe sets the time of the next probe, unless the retransmission timeout
// comes first: two round trips and a margin, doubled by each probe before it.
// Without a measurement there is none. A path that grew longer counts as long
// as its bound, so that a packet can be measured before a probe repeats it.
func (q *QP) startProbe(now Time) {
	t := &q.req.timer
	t.probe = 0
	if t.srtt == 0 || q.waitsOut() {
		return
	}
	after := (2*max(t.srtt, t.bound) + max(4*t.variance, q.cfg.Tuning.MinRTO/8)) << t.probes
	switch x := q.extension; { // one packet too many costs less than the wait
	case x != nil && x.repairing():
		after = (q.answerTime() + q.cfg.Tuning.MinRTO/64) << t.probes
	case q.lossy():
		after = (q.answerTime() + q.cfg.Tuning.MinRTO/256) << t.probes
	}
	if at := now + Time(after); at < t.retransmit {
		t.probe = at
	}
}

// lossy reports whether the path to a peer that goes back N has just lost a
// packet, and did not turn out to be longer. The next loss may well be one that
// no later packet shows.
func (q *QP) lossy() bool {
	r := &q.req
	return !q.selective() && r.shrunk != 0 && r.una < r.shrunk+64 && r.timer.bound == 0
}

// progress restarts the timers: the peer acknowledged something. An ACK of
// repeated packets only does not show that the timeout is long enough: unless
// acknowledged knows more, the backoff stays (RFC 6298 section 5).
func (q *QP) progress(now Time) {
	t := &q.req.timer
	unmeasured := t.srtt == 0
	d, _, known := q.expected()
	t.acknowledged(now, q.req.una, known && (Duration(now-t.repeatedAt) <= d || q.answersProbe(now)))
	if unmeasured && t.srtt != 0 {
		q.measured()
	}
	if q.req.una > q.req.again {
		t.backoff = 0
	}
	t.retransmit, t.probe, t.giveUp, t.receiver, t.unready, t.paced = 0, 0, 0, 0, 0, 0
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
	for _, x := range [...]Time{t.retransmit, t.probe, t.giveUp, t.receiver, t.paced} {
		if x != 0 && (at == 0 || x < at) {
			at = x
		}
	}
	return at, at != 0
}

// Suspects reports whether HandleTimeout would take the peer's silence for a
// loss.
func (q *QP) Suspects(now Time) bool {
	t := &q.req.timer
	for _, x := range [...]Time{t.retransmit, t.probe, t.giveUp} {
		if x != 0 && x <= now {
			return q.sends()
		}
	}
	return false
}

// Taken says how many bytes, sent, are on their way to the peer, and how many
// of them the peer has taken, counted from the way's beginning. Where nothing
// is lost on the way a peer that has not taken what it is suspected about does
// not run: its silence is no answer, and there is nothing to send again. Then
// the timers are put off by the ACK timeout, as long as the specification
// allows. It is called when Suspects says so, before HandleTimeout.
func (q *QP) Taken(now Time, sent, taken uint64) {
	t := &q.req.timer
	if t.mark == 0 {
		t.mark = sent
	}
	if !q.lossless || sent == 0 || taken >= t.mark {
		t.mark = 0
		return
	}
	later := now + Time(q.retransmitAfter())
	if t.retransmit != 0 && t.retransmit <= now {
		t.retransmit = later
	}
	if t.giveUp != 0 && t.giveUp <= now {
		t.giveUp = max(t.giveUp, min(later, t.longest))
	}
}

// HandleTimeout runs the timers that expired by now; it leaves a due ACK to
// Transmit. Calling it early is harmless. Packets that arrived before now
// should be handed to Receive first. Next: Transmit, Completions, NextTimeout.
func (q *QP) HandleTimeout(now Time) {
	t := &q.req.timer
	if !q.sends() {
		return
	}
	defer q.account()
	if t.receiver != 0 && now >= t.receiver {
		t.receiver = 0
	}
	if t.giveUp != 0 && now >= t.giveUp && !q.wasStalled(now) {
		if x := q.extension; x != nil {
			x.doubtPrivate()
		}
		q.exceedRetries()
		return
	}
	if t.retransmit != 0 && now >= t.retransmit {
		q.counters.Timeouts++
		t.backoff++
		q.req.wentBack = 0
		q.goBack(now, true)
		return
	}
	if t.probe != 0 && now >= t.probe {
		q.probeOldest(now)
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
