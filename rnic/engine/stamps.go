package engine

// stamps are the times at which the last packets that ask for an ACK were sent,
// in their order. Packets that were sent again are not among them (Karn's
// rule).
type stamps struct {
	of [8]stamp
	n  int
}

type stamp struct {
	packet seq
	at     Time
}

func (s *stamps) push(packet seq, at Time) {
	if s.n < len(s.of) {
		s.of[s.n] = stamp{packet, at}
		s.n++
	}
}

// pop drops the packets before to and returns the time of the last of those
// that is there; 0 if none is.
func (s *stamps) pop(to seq, there func(seq) bool) (at Time) {
	k := 0
	for ; k < s.n && s.of[k].packet < to; k++ {
		if there(s.of[k].packet) {
			at = s.of[k].at
		}
	}
	s.n = copy(s.of[:], s.of[k:s.n])
	return at
}

// drop forgets the packets [from, to).
func (s *stamps) drop(from, to seq) {
	n := 0
	for _, x := range s.of[:s.n] {
		if x.packet < from || x.packet >= to {
			s.of[n] = x
			n++
		}
	}
	s.n = n
}

// heard tells the path how long the packets before to took that are there, and
// returns the last round trip; 0 if none is.
func (q *QP) heard(now Time, to seq, there func(seq) bool) Duration {
	at := q.req.stamps.pop(to, there)
	if at == 0 {
		return 0
	}
	rtt := max(Duration(now-at), 1)
	if q.path != nil {
		q.path.measured(now, rtt)
	}
	return rtt
}

// heardEarly is heard for what arrived before una. What una waits for keeps the
// timer from being measured: it may follow this.
func (q *QP) heardEarly(now Time, to seq, there func(seq) bool) {
	if rtt := q.heard(now, to, there); rtt != 0 && q.req.timer.srtt != 0 {
		q.req.timer.measure(rtt)
	}
}
