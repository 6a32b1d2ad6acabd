package peercred

import (
	"io"
	"slices"
	"sync"
)

// Seats bounds the connections that are served at a time, Most, and shares them
// among processes.
type Seats struct {
	Most int // before use

	mu    sync.Mutex
	taken []seat // guarded by mu; the oldest first
}

type seat struct {
	conn io.Closer
	pid  int
}

// Take gives a connection of a process a seat, until Leave. When all are taken,
// the process with the most loses its oldest one, which is closed, if it still
// has as many as the newcomer's process then: else the newcomer gets none. So a
// process that holds connections is in the way of its own only.
func (s *Seats) Take(conn io.Closer, pid int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.taken) >= s.Most {
		held, greedy := map[int]int{}, pid
		for _, x := range s.taken {
			held[x.pid]++
		}
		for p, n := range held {
			if n > held[greedy] {
				greedy = p
			}
		}
		if held[greedy] < held[pid]+2 {
			return false
		}
		i := slices.IndexFunc(s.taken, func(x seat) bool { return x.pid == greedy })
		s.taken[i].conn.Close()
		s.taken = slices.Delete(s.taken, i, i+1)
	}
	s.taken = append(s.taken, seat{conn, pid})
	return true
}

// Leave gives a connection's seat back, if it has one.
func (s *Seats) Leave(conn io.Closer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken = slices.DeleteFunc(s.taken, func(x seat) bool { return x.conn == conn })
}

// Close closes the connections, and gives no seat from then on.
func (s *Seats) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.taken {
		x.conn.Close()
	}
	s.taken, s.Most = nil, 0
}
