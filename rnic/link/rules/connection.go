package rules

import (
	"net/netip"
	"time"

	"github.com/rdmashim/rdmashim/rnic/wire"
)

// maxConnections bounds the connections that are known at a time. The oldest is
// forgotten for the next, which counts from its beginning again.
const maxConnections = 4096

// place is where a connection's packets go.
type place struct {
	from, to netip.Addr
	qpn      wire.QPN
}

// The two sequences of packet numbers of a connection, as seen by the side that
// sends them.
const (
	requests = iota
	answers
	sequences
)

// connection is the packets to one queue pair of a peer.
type connection struct {
	began time.Time // the first packet
	first bool      // no other connection was there before, but that of QP 1
	psn   [sequences]struct {
		known       bool
		first, last wire.PSN
	}
	rules []tally // as many as there are rules
}

// tally is what a rule has counted of a connection.
type tally struct {
	seen uint64    // packets that matched
	hit  bool      // the rule has acted
	hole time.Time // when its blackhole began; zero: it has not
}

// number takes the packet into account. from is its distance from the first of
// its sequence; again tells that it is a repeated one.
func (c *connection) number(f *facts) (from int64, again bool) {
	i, ok := f.numbered()
	s := &c.psn[i]
	if !s.known {
		s.known, s.first, s.last = true, f.bth.PSN, f.bth.PSN
		return 0, false
	}
	from = int64(f.bth.PSN.Sub(s.first))
	if !ok {
		return from, false
	}
	if again = !f.bth.PSN.After(s.last); !again {
		s.last = f.bth.PSN
	}
	return from, again
}

// connections are the connections that are known, in the order in which they
// came.
type connections struct {
	known map[place]*connection
	order []place // a ring once it is full; at is its oldest
	at    int
	any   bool // there was one besides those to QP 1
}

// find returns the connection of a place, a new one if it has none.
func (c *connections) find(p place, rules int, now time.Time) *connection {
	if x := c.known[p]; x != nil {
		return x
	}
	if c.known == nil {
		c.known = make(map[place]*connection)
	}
	if len(c.order) < maxConnections {
		c.order = append(c.order, p)
	} else {
		delete(c.known, c.order[c.at])
		c.order[c.at] = p
		c.at = (c.at + 1) % maxConnections
	}
	x := &connection{began: now, first: !c.any && p.qpn != 1, rules: make([]tally, rules)}
	c.any = c.any || p.qpn != 1
	c.known[p] = x
	return x
}
