package cm

import (
	"net/netip"

	"github.com/rdmashim/rdmashim/rnic/wire"
)

// A REQ with the identifier or queue pair of a connection says that its sender
// has this connection no more, perhaps because it began anew (IBA 12.9.8.3.1).
// An attacker that knows the numbers can say so in the peer's name. So the peer
// is asked first, through the connection's queue pair, which only the device
// can do: a Probe event asks it to, and it answers with AnswerProbe or Gone.
// Only a connection whose peer is silent is stale; its end, and the REJ of the
// REQ, come when that is known. An attacker's REQ gets no answer: a living peer
// would get a REJ of a request that it did not make.

// probes are how often the peer is asked, and probeEvery how long each answer
// is waited for: a connection that is stale ends 2 s after the REQ. trust is
// how long a peer that answered is not asked again.
const (
	probes     = 4
	probeEvery = 500 * Millisecond
	trust      = 5 * Second
)

// suspicion is that a connection is stale.
type suspicion struct {
	asked   int
	packets uint64 // that the queue pair had received when it was first asked

	// The REQ that raised it.
	from netip.AddrPort
	tid  uint64
	ids  wire.CommIDs
}

// stale handles a REQ that has the identifier or queue pair of c.
func (m *Manager) stale(c *conn, now Time, s suspicion) {
	switch c.state {
	case Established:
		if c.suspicion == nil && now >= c.trusted {
			c.suspicion = &s
			m.probe(c, now)
		} else {
			m.counters.DropSuspect++
		}
	case DreqSent, TimeWait:
		m.refuse(s.from, s.tid, s.ids, wire.AboutREQ, wire.RejStaleConn)
	default:
		// A connection that is being made is confirmed soon, or ends by itself;
		// an honest peer asks again.
		m.counters.DropSuspect++
	}
}

// probe asks the peer of c, and after the last time only whether it answered.
func (m *Manager) probe(c *conn, now Time) {
	c.suspicion.asked++
	c.resend = now + Time(probeEvery)
	m.timers.set(c)
	m.report(c, Event{Kind: Probe, Attr: c.attr, QPN: c.localQPN})
}

// silent ends c, whose peer has it no more.
func (m *Manager) silent(c *conn, now Time) {
	s := c.suspicion
	c.suspicion = nil
	m.stop(c)
	m.refuse(s.from, s.tid, s.ids, wire.AboutREQ, wire.RejStaleConn)
	m.abandon(c, now)
}

// AnswerProbe answers a Probe with the number of packets that the queue pair
// has received from its peer so far. It reports whether the peer is to be
// asked: a packet that makes it answer shall be sent. Next: Transmit, Event,
// NextTimeout.
func (m *Manager) AnswerProbe(now Time, id wire.CommID, packets uint64) (ask bool) {
	c := m.suspected(id)
	if c == nil {
		return false
	}
	switch s := c.suspicion; {
	case s.asked == 1:
		s.packets = packets
	case s.packets != packets:
		c.suspicion, c.trusted = nil, now+Time(trust)
		m.stop(c)
		return false
	case s.asked > probes:
		m.silent(c, now)
		return false
	}
	return true
}

// Gone answers a Probe: there is no such queue pair, or it sends nothing any
// more. Next: Transmit, Event, NextTimeout.
func (m *Manager) Gone(now Time, id wire.CommID) {
	if c := m.suspected(id); c != nil {
		m.silent(c, now)
	}
}

// suspected returns a connection whose peer is being asked; nil if it is not,
// or the connection has ended meanwhile.
func (m *Manager) suspected(id wire.CommID) *conn {
	if c := m.conns[id]; c != nil && c.suspicion != nil && c.state == Established {
		return c
	}
	return nil
}
