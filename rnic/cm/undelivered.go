package cm

import (
	"encoding/binary"
	"net/netip"
	"syscall"

	"github.com/rdmashim/rdmashim/rnic/wire"
)

// QuoteLen is how many bytes of a datagram Undelivered looks at: they hold the
// transaction and the identifier of the connection.
const QuoteLen = wire.MADHeaderLen + 4

// deniedTries is how many copies of a message this system's packet filter must
// have refused: a filter may drop a part of the packets.
const deniedTries = 3

// refusedAgain holds the pauses after which a message that was refused is sent
// again. The attempt ends when all copies were refused: between a device's end
// and the next one's begin the port is closed for a moment.
var refusedAgain = [...]Duration{20 * Millisecond, 40 * Millisecond}

// Undelivered takes the report that a datagram to a peer was not delivered:
// ECONNREFUSED, EHOSTUNREACH or ENETUNREACH by ICMP or the system, EPERM by its
// packet filter. Like a TCP connect (tcp_ipv4.c: tcp_v4_err), an attempt ends
// that no program of the peer has answered yet: with Rejected for a REQ that
// was refused, else with Unreachable. mad is the datagram's beginning; any host
// can send ICMP, so that a report without the attempt's transaction and
// identifier, which only the way to the peer has seen, is dropped. So is one
// about an attempt that was answered, or a connection. Next: Transmit, Event,
// NextTimeout.
func (m *Manager) Undelivered(now Time, to netip.AddrPort, mad []byte, why syscall.Errno) {
	var h wire.MAD
	if len(mad) < QuoteLen || h.Parse(mad) != nil || !h.IsCM() {
		return
	}
	c := m.conns[wire.CommID(binary.BigEndian.Uint32(mad[wire.MADHeaderLen:]))]
	switch {
	case c == nil || c.tid != h.TID || !c.awaitsAnswer(h.Attribute):
		return
	case wire.Bare(to.Addr()) != wire.Bare(c.sending.To.Addr()) || to.Port() != c.sending.To.Port():
		return
	case why == syscall.EPERM && c.tries < deniedTries:
		return
	case why == syscall.ECONNREFUSED && c.refusals < len(refusedAgain):
		c.resend = now + Time(refusedAgain[c.refusals])
		c.refusals++
		m.timers.set(c)
		return
	}
	m.counters.Undelivered++
	kind := Unreachable
	if why == syscall.ECONNREFUSED && !c.sidr {
		kind = Rejected
	}
	m.idle(c) // a peer that answers nevertheless gets a REJ
	m.report(c, Event{Kind: kind, Errno: why})
}

// awaitsAnswer reports whether c waits for the first answer to its message, a
// is that message's attribute.
func (c *conn) awaitsAnswer(a wire.CMAttribute) bool {
	switch c.state {
	case ReqSent:
		return a == wire.AttrREQ
	case SidrReqSent:
		return a == wire.AttrSIDRREQ
	}
	return false
}
