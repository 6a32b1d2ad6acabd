package flow

import "github.com/rdmashim/rdmashim/rnic/wire"

const (
	// farAway is a distance of PSNs that no connection has on its own, so that
	// a queue pair's number is taken to be in use anew.
	farAway = 1 << 16
	// maxHoles is how many gaps are remembered.
	maxHoles = 256
)

// place is where a PSN lies in a sequence.
type place uint8

const (
	next   place = iota // the one expected
	skip                // later: those between are missing
	late                // earlier, one that was missing until now
	filled              // the same, and the requester knew that it was lost
	again               // earlier, one that was there
	anew                // nowhere near: a new life of the queue pair
)

// sequence is the PSNs of one direction's requests.
type sequence struct {
	begun bool
	next  wire.PSN
	slack int    // by how many next may be too low, behind a READ of unknown packets
	wide  int    // the most PSNs that one request took
	holes []span // oldest first
}

// span is n PSNs from first on.
type span struct {
	first    wire.PSN
	n        int
	reported bool // the requester knows that they were lost
}

// take puts n PSNs from p on into the sequence, of which slack may be too few.
// It returns where they lie, and how many are missing before them.
func (s *sequence) take(p wire.PSN, n, slack int) (place, int) {
	d := int(p.Sub(s.next))
	where, missing := next, 0
	defer func() { s.wide = max(s.wide, n+slack) }()
	switch {
	case !s.begun || d > farAway+s.slack || d < -farAway-s.wide:
		*s = sequence{begun: true}
		where = anew
	case d < 0:
		if found, reported := s.fill(p, n); found && reported {
			return filled, 0
		} else if found {
			return late, 0
		}
		if end := p.Add(n); end.After(s.next) { // a READ that goes on beyond
			s.next, s.slack = end, slack
		}
		return again, 0
	case d > s.slack:
		where, missing = skip, d-s.slack
		if len(s.holes) == maxHoles {
			s.holes = append(s.holes[:0], s.holes[1:]...)
		}
		s.holes = append(s.holes, span{first: s.next.Add(s.slack), n: missing})
	}
	s.next, s.slack = p.Add(n), slack
	return where, missing
}

// reportHoles marks all holes as known to the requester.
func (s *sequence) reportHoles() {
	for i := range s.holes {
		s.holes[i].reported = true
	}
}

// fill takes n PSNs from p on out of the holes, if p is in one, and returns
// whether the requester knew of that.
func (s *sequence) fill(p wire.PSN, n int) (found, reported bool) {
	for _, h := range s.holes {
		if p.In(h.first, h.n) {
			found, reported = true, h.reported
		}
	}
	if !found {
		return false, false
	}
	var rest []span
	for _, h := range s.holes {
		from := min(max(int(p.Sub(h.first)), 0), h.n) // taken out: [from, to)
		to := min(max(int(p.Add(n).Sub(h.first)), from), h.n)
		for _, x := range []span{{h.first, from, h.reported}, {h.first.Add(to), h.n - to, h.reported}} {
			if x.n > 0 {
				rest = append(rest, x)
			}
		}
	}
	s.holes = rest[max(0, len(rest)-maxHoles):]
	return true, reported
}

// missing is how many PSNs are in holes.
func (s *sequence) missing() (n int) {
	for _, h := range s.holes {
		n += h.n
	}
	return n
}
