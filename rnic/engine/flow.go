package engine

// attach takes the queue pair to the path of its peer.
func (q *QP) attach() {
	q.flow.Join(q.cfg.Paths, q.peer, q.cfg.Tuning.InitialWindow, q.largest+packetCost)
	if x := q.extension; x != nil && x.neighbour != nil && x.neighbour.addr != q.peer {
		x.leave()
	}
}

// account tells the path how much the queue pair has in flight. It follows each
// change that other queue pairs may see.
func (q *QP) account() {
	if !q.flow.OnPath() {
		return
	}
	n := 0
	if q.sends() {
		n = q.inFlight()
	}
	q.flow.Charge(n)
}

// room is the cost that the queue pair may have in flight now, as far as its
// path is concerned.
func (q *QP) room() int { return q.flow.Room(q.req.timer.least) }

// share is the part of room that no other queue pair can take.
func (q *QP) share() int { return q.flow.Share(q.req.timer.least) }

// measureArrived gives the path the round trips of the packets before to that
// are there, and returns the last one; 0 if none is.
func (q *QP) measureArrived(now Time, to seq, there func(seq) bool) Duration {
	return q.flow.Arrived(now, uint64(to), func(p uint64) bool { return there(seq(p)) })
}

// measureEarly is measureArrived for packets that arrived before una. While una
// is missing, the timer measures nothing by itself, so it may follow this round
// trip.
func (q *QP) measureEarly(now Time, to seq, there func(seq) bool) {
	if rtt := q.measureArrived(now, to, there); rtt != 0 && q.req.timer.srtt != 0 {
		q.req.timer.measure(rtt)
	}
}
