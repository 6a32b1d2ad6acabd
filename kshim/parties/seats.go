package parties

import (
	"io"
	"net/netip"
	"slices"
	"sync"
)

// Seats bounds the connections that are served at a time, Most, and shares them
// among the parties P.
type Seats[P comparable] struct {
	Most int // before use

	mu    sync.Mutex
	taken []seat[P] // guarded by mu; the oldest first
}

type seat[P comparable] struct {
	conn  io.Closer
	party P
}

// Take gives a connection of a party a seat, until Leave. When all are taken,
// the party with the most loses its oldest one, which is closed, if it still
// has as many as the newcomer's party then: else the newcomer gets none. So a
// party that holds connections is in the way of its own only.
func (s *Seats[P]) Take(conn io.Closer, party P) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.taken) >= s.Most {
		held, greedy := map[P]int{}, party
		for _, x := range s.taken {
			held[x.party]++
		}
		for p, n := range held {
			if n > held[greedy] {
				greedy = p
			}
		}
		if held[greedy] < held[party]+2 {
			return false
		}
		i := slices.IndexFunc(s.taken, func(x seat[P]) bool { return x.party == greedy })
		s.taken[i].conn.Close()
		s.taken = slices.Delete(s.taken, i, i+1)
	}
	s.taken = append(s.taken, seat[P]{conn, party})
	return true
}

// Leave gives a connection's seat back, if it has one.
func (s *Seats[P]) Leave(conn io.Closer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken = slices.DeleteFunc(s.taken, func(x seat[P]) bool { return x.conn == conn })
}

// Close closes the connections, and gives no seat from then on.
func (s *Seats[P]) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.taken {
		x.conn.Close()
	}
	s.taken, s.Most = nil, 0
}

// Of is whose an address is: an IPv4 address by itself, or all of the IPv6
// network that a host has to itself, a /64. It is not valid for no address.
func Of(a netip.Addr) netip.Prefix {
	a = a.Unmap().WithZone("")
	bits := a.BitLen()
	if a.Is6() && !a.IsLinkLocalUnicast() {
		bits = 64
	}
	p, _ := a.Prefix(bits)
	return p
}
