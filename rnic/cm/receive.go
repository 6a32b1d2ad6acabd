package cm

import (
	"net/netip"

	"github.com/rdmashim/rdmashim/rnic/wire"
)

// message is the message that Receive works on.
type message struct {
	from netip.AddrPort
	tid  uint64
	data []byte // behind the header

	attribute wire.CMAttribute
	held      bool // it has been held for a listener
}

// Receive takes a management datagram that came to queue pair 1 from a source
// address and UDP port. It may contain anything: a datagram that makes no sense
// is dropped, and counted. Next: Transmit, Event, NextTimeout.
func (m *Manager) Receive(now Time, from netip.AddrPort, mad []byte) {
	m.counters.Received++
	defer m.earn(len(m.out))
	var h wire.MAD
	if len(mad) != wire.MADLen || h.Parse(mad) != nil {
		m.counters.DropLength++
		return
	}
	if !h.IsCM() {
		m.counters.DropClass++
		return
	}
	from = netip.AddrPortFrom(from.Addr().Unmap(), from.Port())
	m.dispatch(now, &message{from: from, tid: h.TID, data: mad[wire.MADHeaderLen:], attribute: h.Attribute})
}

// dispatch takes a message of the connection manager.
func (m *Manager) dispatch(now Time, msg *message) {
	switch msg.attribute {
	case wire.AttrREQ:
		m.receiveREQ(now, msg)
	case wire.AttrMRA:
		m.receiveMRA(now, msg)
	case wire.AttrREJ:
		m.receiveREJ(now, msg)
	case wire.AttrREP:
		m.receiveREP(now, msg)
	case wire.AttrRTU:
		m.receiveRTU(now, msg)
	case wire.AttrDREQ:
		m.receiveDREQ(now, msg)
	case wire.AttrDREP:
		m.receiveDREP(now, msg)
	case wire.AttrSIDRREQ:
		m.receiveSIDRREQ(now, msg)
	case wire.AttrSIDRREP:
		m.receiveSIDRREP(now, msg)
	default: // LAP and APR too: RoCE has no alternate paths
		m.counters.DropAttribute++
	}
}

// find returns the connection that a message names, nil if there is none or the
// message is not from its peer.
func (m *Manager) find(msg *message, ids wire.CommIDs) *conn {
	c := m.conns[ids.RemoteCommID]
	switch {
	case c == nil || c.state == Idle || c.sidr:
		m.counters.DropUnknown++
	case !c.sent(msg):
		m.counters.DropPeer++
	case c.remote != 0 && c.remote != ids.LocalCommID:
		m.counters.DropUnknown++
	default:
		return c
	}
	return nil
}

// sent reports whether a message comes from c's peer, as far as addresses say.
func (c *conn) sent(msg *message) bool {
	return wire.Bare(c.attr.Peer.Addr()) == wire.Bare(msg.from.Addr()) && (!c.attr.Soft || c.attr.Peer.Port() == msg.from.Port())
}

// sendsFrom reports whether a peer sends from the UDP port that it receives at:
// then it is a soft device. rxe and cards choose source ports that only tell
// flows apart, and receive at 4791.
func sendsFrom(port uint16, peer netip.AddrPort) bool {
	return port == peer.Port() || peer.Port() != wire.Port
}

// gone reports whether nothing is left of a connection but its owner's
// identifier.
func (m *Manager) gone(id wire.CommID) bool {
	c := m.conns[id]
	return c == nil || c.state == Idle
}

// replays answers a repeated message as before. A peer that repeats a refused
// message may go on doing so.
func (m *Manager) replays(c *conn, now Time) {
	m.counters.Duplicates++
	if !c.replay {
		return
	}
	m.out = append(m.out, c.sending)
	if c.state == TimeWait {
		m.remember(c, now)
	}
}

// receiveMRA: the peer got REQ or REP and needs more time (IBA 12.6.6).
func (m *Manager) receiveMRA(now Time, msg *message) {
	var r wire.MRA
	_ = r.Parse(msg.data) // Receive saw to the length
	c := m.find(msg, r.CommIDs)
	if c == nil {
		return
	}
	switch {
	case c.state == ReqSent && r.About == wire.AboutREQ:
	case (c.state == RepSent || c.state == RepWait) && r.About == wire.AboutREP:
		c.state = RepWait
	default:
		m.counters.DropState++
		return
	}
	m.postpone(c, now, min(span(r.Timeout), span(m.cfg.MRATimeout)))
}

// receiveRTU: the active side has got the REP.
func (m *Manager) receiveRTU(now Time, msg *message) {
	var r wire.RTU
	_ = r.Parse(msg.data)
	c := m.find(msg, r.CommIDs)
	switch {
	case c == nil:
		// A peer that believes in a connection which is not: tell it.
		if m.gone(r.RemoteCommID) {
			m.refuse(replyTo(msg.from), msg.tid, r.CommIDs, wire.AboutOther, wire.RejInvalidCommID)
		}
	case c.state == RepSent || c.state == RepWait:
		m.connected(c, c.roundTrip(now))
	case c.state == TimeWait:
		m.replays(c, now)
	default:
		m.counters.Duplicates++
	}
}

// receiveDREQ: the peer ends the connection (IBA 12.9.7). It is answered for
// the program, which has no say in it.
func (m *Manager) receiveDREQ(now Time, msg *message) {
	var r wire.DREQ
	_ = r.Parse(msg.data)
	c := m.find(msg, r.CommIDs)
	if c == nil {
		// Nothing is left of it here: nothing shall be left of it there.
		if m.gone(r.RemoteCommID) {
			m.out = append(m.out, datagram(replyTo(msg.from), msg.tid, wire.AttrDREP, &wire.DREP{CommIDs: swap(r.CommIDs)}))
		}
		return
	}
	if r.RemoteQPN != c.localQPN {
		m.counters.DropQPN++
		return
	}
	switch c.state {
	case ReqSent, ReqRcvd:
		m.counters.DropState++
		return
	case RepSent, RepWait:
		m.connected(c, 0) // a peer that ends a connection had one: the RTU was lost
	}
	again := c.state == TimeWait
	if again {
		m.counters.Duplicates++
	}
	drep := datagram(c.attr.Peer, msg.tid, wire.AttrDREP, &wire.DREP{CommIDs: c.ids()})
	m.out = append(m.out, drep)
	if !again {
		m.peerLeft(c, now)
	}
}

// receiveDREP: the peer agrees that it is over.
func (m *Manager) receiveDREP(now Time, msg *message) {
	var r wire.DREP
	_ = r.Parse(msg.data)
	c := m.find(msg, r.CommIDs)
	switch {
	case c == nil:
	case c.state == DreqSent:
		m.peerLeft(c, now)
	default:
		m.counters.Duplicates++
	}
}
