package engine

// scoreboard holds a requester's knowledge of packets behind una, as RFC
// 6675's. at holds a state for each PSN of [una, una+len(at)), at its number
// modulo len(at), a power of two:
//
//	unknown  it was sent once, and nothing speaks of a loss
//	arrived  the peer has it, or its answer is kept here
//	missing  it is to be sent again
//	> 0      when it was sent again last
//
// Those from hi on are unknown, and none from top on was found missing. idle is
// the cost of those that arrived or are missing: they are not in flight.
type scoreboard struct {
	at       []Time // made with the first loss, grows up to span
	top, hi  seq
	executed seq // the peer carried out all before it
	idle     int
	scan     bool // Transmit is to look for missing packets

	// A round begins with a loss, at una = start, and ends after a round trip;
	// 0: none is going on.
	start          seq
	begun          Time
	lost, repaired int  // packets, in the round; one may be so several times
	lastLoss       Time // 0: there was none

	// When the packet resent, una then, was sent again, those before tail had
	// left; 0: no such packet is noted. The note counts from tailAt on; 0:
	// resent has not arrived.
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
func (x *extension) costOf(w *sendWR, s seq) int {
	off := uint64(s-w.first) * uint64(w.mtu)
	return int(min(uint64(w.length)-off, uint64(w.mtu))) + packetCost
}

// mark sets the state of the packet s of w, which lies in [una, una+len(at)).
func (x *extension) mark(w *sendWR, s seq, to Time) {
	p := x.state(s)
	switch {
	case *p < 0 && to >= 0:
		x.idle -= x.costOf(w, s)
	case *p >= 0 && to < 0:
		x.idle += x.costOf(w, s)
	}
	*p = to
	x.hi = max(x.hi, s+1)
}

// scoring makes the scoreboard, and returns the end of the PSNs it may tell of.
func (x *extension) scoring() seq {
	q := x.q
	end := min(q.req.nxt, q.req.una+reach(q.mtu))
	x.fit(q.req.una, end)
	return end
}

// state is that of the packet s, which lies in [una, una+len(at)).
func (x *scoreboard) state(s seq) *Time { return &x.at[s&seq(len(x.at)-1)] }

// fit makes room for the states of [una, end).
func (x *scoreboard) fit(una, end seq) {
	n := ringSize(len(x.at), end-una)
	if n == len(x.at) {
		return
	}
	old := *x
	x.at = make([]Time, n)
	for s := una; s < x.hi; s++ {
		*x.state(s) = *old.state(s)
	}
}

// overdue reports whether the packet s is to be sent again: it is missing, or
// the last copy had the time to arrive and be acknowledged.
func (x *extension) overdue(now Time, s seq) bool {
	q := x.q
	at := *x.state(s)
	return at == missing || at > 0 && Duration(now-at) > q.answerTime()
}

// repairing reports whether una was found missing, and sent again.
func (x *extension) repairing() bool {
	q := x.q
	return x.top > q.req.una && *x.state(q.req.una) > 0
}

// pass clears the states of the packets before to, which becomes una.
func (x *extension) pass(now Time, to seq) {
	q, r := x.q, &x.q.req
	for i, p := q.sq.head, r.una; p < min(to, x.hi); p++ {
		for q.sq.at(i).end <= p {
			i++
		}
		x.mark(q.sq.at(i), p, unknown)
	}
	x.endRound(now)
}

// forget makes all packets behind una unknown: they are sent again, or waited
// for.
func (x *scoreboard) forget(una seq) {
	for p := una; p < x.hi; p++ {
		*x.state(p) = unknown
	}
	x.top, x.hi, x.idle, x.scan, x.begun, x.tail = 0, 0, 0, false, 0, 0
}
