package core

// Address is a peer's address as shares count it, of the caller's choice.
type Address [16]byte

// Shares divides a number of places among addresses. One is given more while it
// has no more than what is then left, so n addresses that take all they can
// leave 1/(n+1) for the next (dynamic thresholds: Choudhury and Hahne, IEEE/ACM
// Transactions on Networking 6(2), 1998).
//
// Invariants: left is not negative, and its sum with all that is held constant.
// by has the shares that are joined or hold places.
type Shares struct {
	left int64
	by   map[Address]*Share
}

// Share is what an address has of shares.
type Share struct {
	address Address
	joined  int
	held    int64
}

// NewShares divides so many places.
func NewShares(total int64) *Shares { return &Shares{total, map[Address]*Share{}} }

// Join returns the share of an address, until as many calls of Leave.
func (s *Shares) Join(a Address) *Share {
	h := s.by[a]
	if h == nil {
		h = &Share{address: a}
		s.by[a] = h
	}
	h.joined++
	return h
}

// Leave is the end of a Join. Places held are given back later.
func (s *Shares) Leave(h *Share) {
	h.joined--
	s.Give(h, 0)
}

// Left is how many places are free.
func (s *Shares) Left() int64 { return s.left }

// Take takes n places, unless that is beyond the share.
func (s *Shares) Take(h *Share, n int64) bool {
	if h.held+n > s.left {
		return false
	}
	s.take(h, n)
	return true
}

func (s *Shares) take(h *Share, n int64) {
	h.held += n
	s.left -= n
}

// Give gives n places back.
func (s *Shares) Give(h *Share, n int64) {
	s.take(h, -n)
	if h.held == 0 && h.joined == 0 && s.by[h.address] == h {
		delete(s.by, h.address)
	}
}

// full reports whether an address has its share.
func (s *Shares) full(a Address) bool {
	h := s.by[a]
	return s.left == 0 || h != nil && h.held >= s.left
}
