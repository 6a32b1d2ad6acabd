package engine

import (
	"math"
	"net/netip"

	"github.com/rdmashim/rdmashim/rnic/wire"
)

// Paths are the paths of a device to its peers, by address.
type Paths struct {
	limit int
	of    map[netip.Addr]*path
}

// NewPaths makes an empty set. At most limit bytes, packetCosts included, are
// in flight to a peer, over all queue pairs; 0 sets no limit. It belongs to
// one device, whose queue pairs' methods must not be called concurrently.
func NewPaths(limit int) *Paths { return &Paths{limit: limit, of: map[netip.Addr]*path{}} }

// Len is the number of peers that queue pairs are connected to.
func (p *Paths) Len() int { return len(p.of) }

// path is shared by the queue pairs that are connected to one address: the
// bytes in flight, and how many may be. They pass the same queues and end in
// one socket's buffer, so a window for each queue pair overflows these when
// there are many.
//
// A queue pair may send while all of them together stay below the limit. Above
// it, a queue pair may send up to an equal share, so that a newcomer gets its
// own at once and the others, which have more, wait until theirs was
// acknowledged. A queue pair that waits has packets in flight, and goes on with
// their acknowledgement.
//
//	inFlight is the sum of charged of the queue pairs
//	active is the number of those with something in flight
type path struct {
	users    int // queue pairs that are connected
	active   int
	inFlight int             // bytes
	kept     int             // blocks of the device's Stash
	proven   wire.PrivateMTU // packets of that length passed
	paced
	congestion
}

// join finds or makes the path to an address.
func (p *Paths) join(a netip.Addr, window int) *path {
	x := p.of[a]
	if x == nil {
		x = &path{congestion: newCongestion(window)}
		p.of[a] = x
	}
	x.users++
	return x
}

// leave forgets the path to an address with its last queue pair.
func (p *Paths) leave(a netip.Addr, x *path) {
	if x.users--; x.users == 0 {
		delete(p.of, a)
	}
}

// attach takes the queue pair to the path of its peer.
func (q *QP) attach() {
	if q.cfg.Paths == nil || q.path != nil && q.pathTo == q.peer {
		return
	}
	q.detach()
	q.path, q.pathTo = q.cfg.Paths.join(q.peer, q.cfg.Tuning.InitialWindow), q.peer
	q.path.packet = max(q.path.packet, q.largest+packetCost)
	q.path.serves(q.path.active)
}

// detach takes the queue pair, and its bytes in flight, off its path.
func (q *QP) detach() {
	if q.path == nil {
		return
	}
	q.charge(0)
	q.cfg.Paths.leave(q.pathTo, q.path)
	q.path = nil
}

// account tells the path how much the queue pair has in flight. It follows each
// change that other queue pairs may see.
func (q *QP) account() {
	if q.path == nil {
		return
	}
	n := 0
	if q.sends() {
		n = q.inFlight()
	}
	q.charge(n)
}

func (q *QP) charge(n int) {
	x := q.path
	switch {
	case q.charged == 0 && n > 0:
		x.active++
	case q.charged > 0 && n == 0:
		x.active--
	}
	if (q.charged == 0) != (n == 0) {
		x.serves(x.active)
	}
	x.inFlight += n - q.charged
	q.charged = n
}

// room is the cost that the queue pair may have in flight now, as far as its
// path is concerned.
func (q *QP) room() int {
	if q.path == nil {
		return math.MaxInt
	}
	return max(q.share(), q.pathLimit()-(q.path.inFlight-q.charged))
}

// share is the part of room that no other queue pair can take.
func (q *QP) share() int {
	if q.path == nil {
		return math.MaxInt
	}
	active := q.path.active
	if q.charged == 0 {
		active++
	}
	return q.pathLimit() / active
}

// pathLimit is the cost that all queue pairs of the path may have in flight.
func (q *QP) pathLimit() int {
	if l := q.cfg.Paths.limit; l > 0 {
		return min(q.stretched(l), q.path.size)
	}
	return q.path.size
}

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

// heardEarly is heard for packets that arrived before una. While una is
// missing, the timer measures nothing by itself, so it may follow this round
// trip.
func (q *QP) heardEarly(now Time, to seq, there func(seq) bool) {
	if rtt := q.heard(now, to, there); rtt != 0 && q.req.timer.srtt != 0 {
		q.req.timer.measure(rtt)
	}
}
