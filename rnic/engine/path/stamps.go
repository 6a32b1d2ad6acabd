package path

// stamps are the times at which the last packets that ask for an ACK were sent,
// in their order. Packets that were sent again are not among them (Karn's
// rule).
type stamps struct {
	of [8]stamp
	n  int
}

type stamp struct {
	packet uint64
	at     Time
}

// Stamp notes that a packet that asks for an answer leaves, for the first time.
func (f *Flow) Stamp(now Time, packet uint64) {
	if s := &f.stamps; s.n < len(s.of) {
		s.of[s.n] = stamp{packet, now}
		s.n++
	}
}

// Unstamp forgets the packets [from, to).
func (f *Flow) Unstamp(from, to uint64) {
	s, n := &f.stamps, 0
	for _, x := range s.of[:s.n] {
		if x.packet < from || x.packet >= to {
			s.of[n] = x
			n++
		}
	}
	s.n = n
}

// UnstampAll forgets all packets.
func (f *Flow) UnstampAll() { f.stamps.n = 0 }

// Arrived gives the path the round trips of the packets before to that are
// there, and returns the last one; 0 if none is.
func (f *Flow) Arrived(now Time, to uint64, there func(packet uint64) bool) Duration {
	at := f.stamps.pop(to, there)
	if at == 0 {
		return 0
	}
	rtt := max(Duration(now-at), 1)
	if x := f.path; x != nil {
		x.measure(now, rtt)
		x.control.Acked(now, 0, rtt, 0)
	}
	return rtt
}

// pop drops the packets before to and returns the time of the last of those
// that is there; 0 if none is.
func (s *stamps) pop(to uint64, there func(uint64) bool) (at Time) {
	k := 0
	for ; k < s.n && s.of[k].packet < to; k++ {
		if there(s.of[k].packet) {
			at = s.of[k].at
		}
	}
	s.n = copy(s.of[:], s.of[k:s.n])
	return at
}
