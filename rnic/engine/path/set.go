package path

import "net/netip"

// Set holds the paths of a device to its peers.
type Set struct {
	limit   int
	control func(m *Measured, window int) Controller
	of      map[netip.Addr]*path
}

// NewSet makes an empty set. At most limit bytes are in flight to a peer, over
// all flows; 0 sets no limit. Control makes the controller of a path that
// begins with a window; nil: Swift's. The set belongs to one device, whose
// flows' methods must not be called concurrently.
func NewSet(limit int, control func(m *Measured, window int) Controller) *Set {
	if control == nil {
		control = NewSwift
	}
	return &Set{limit, control, map[netip.Addr]*path{}}
}

// Len is the number of peers that have a flow.
func (s *Set) Len() int { return len(s.of) }

// path is shared by the flows to one address.
//
//	inFlight is the sum of those of the flows
//	active is the number of flows with something in flight
type path struct {
	users    int // flows
	active   int
	inFlight int // bytes
	packet   int // bytes of the longest
	Measured
	control Controller
}

// join finds or makes the path to an address.
func (s *Set) join(a netip.Addr, window int) *path {
	x := s.of[a]
	if x == nil {
		x = new(path)
		x.control = s.control(&x.Measured, window)
		s.of[a] = x
	}
	x.users++
	return x
}

// leave forgets the path to an address with its last flow.
func (s *Set) leave(a netip.Addr, x *path) {
	if x.users--; x.users == 0 {
		delete(s.of, a)
	}
}
