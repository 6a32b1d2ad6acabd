package engine

// Gauges are the present state of a requester. Unlike counters they go up and
// down.
type Gauges struct {
	InFlight    int      // bytes that were sent, or asked for, and are not acknowledged, and packetCost for each packet
	Window      int      // bytes that InFlight may grow to, as the path is shared now
	RTT         Duration // smoothed round trip (RFC 6298), 0: not measured yet
	RTTVariance Duration
	PathWindow  int      // bytes that all queue pairs to the peer may have in flight, as the delay allows; 0: no path
	BaseRTT     Duration // least round trip of that path, without a queue; 0: not measured yet
	MTU         int      // bytes of the packets of the next message that has several: the path MTU or a private one
	RTO         Duration // after which silence is a loss: from RTT, with backoff
}

// Gauges reads the requester; all zero outside of RTS and SQD, where it has
// nothing.
func (q *QP) Gauges() Gauges {
	if !q.sends() {
		return Gauges{}
	}
	t := &q.req.timer
	g := Gauges{
		InFlight: q.inFlight(), Window: min(q.req.win.size, q.room()),
		RTT: t.srtt, RTTVariance: t.variance, RTO: q.retransmitAfter(),
		MTU: max(q.mtu, q.usable().Bytes()),
	}
	if q.path != nil {
		g.PathWindow, g.BaseRTT = q.pathLimit(), q.path.base
	}
	return g
}

// Gauges of datagrams are zero: nothing is acknowledged.
func (q *Datagrams) Gauges() Gauges { return Gauges{} }

// Unready is how long the peer has had no receive for the oldest request.
func (q *QP) Unready(now Time) Duration {
	if since := q.req.timer.unready; since != 0 {
		return Duration(now - since)
	}
	return 0
}

// Unready of datagrams is 0: the peer does not tell.
func (q *Datagrams) Unready(Time) Duration { return 0 }
