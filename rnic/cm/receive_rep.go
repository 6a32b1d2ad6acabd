package cm

import "github.com/rdmashim/rdmashim/rnic/wire"

// receiveREP: the peer accepted (IBA 12.9.5).
func (m *Manager) receiveREP(now Time, msg *message) {
	var r wire.REP
	_ = r.Parse(msg.data)
	c := m.find(msg, r.CommIDs)
	if c == nil {
		// It was called off, or this host began anew: the peer need not wait.
		if m.gone(r.RemoteCommID) {
			m.refuse(replyTo(msg.from), msg.tid, r.CommIDs, wire.AboutREP, wire.RejInvalidCommID)
		}
		return
	}
	switch c.state {
	case ReqSent:
		c.attr.Soft = sendsFrom(msg.from.Port(), c.attr.Peer)
		m.reply(c, now, &r)
	case RepRcvd:
		m.counters.Duplicates++
		m.out = append(m.out, m.mra(c, wire.AboutREP))
	case Established, TimeWait:
		m.replays(c, now)
	default:
		m.counters.DropState++
	}
}

// reply takes the REP for c.
func (m *Manager) reply(c *conn, now Time, r *wire.REP) {
	if r.LocalCommID == 0 || r.LocalQPN <= wire.GSIQPN || r.LocalQPN == wire.MulticastQPN {
		m.counters.DropQPN++
		return
	}
	c.remote, c.guid = r.LocalCommID, r.LocalCAGUID
	a := &c.attr
	a.RemoteQPN, a.SQPSN = r.LocalQPN, r.StartingPSN
	a.MaxDestRdAtomic, a.MaxRdAtomic = r.InitiatorDepth, r.ResponderResources
	a.RNRRetryCount, a.FlowControl, a.SRQ = r.RNRRetryCount, r.FlowControl, r.SRQ
	a.Timeout = ackTimeout(r.TargetAckDelay, uint8(a.Timeout)-1)
	took := c.roundTrip(now)
	c.state = RepRcvd
	if old := m.qpns[c.remoteQPN()]; old != nil {
		// The peer's queue pair has another connection here: that one is stale,
		// and so that the two are not mixed up, this one ends too (IBA
		// 12.9.8.3.1).
		m.reject(c, now, wire.RejStaleConn, nil, nil)
		m.report(c, Event{Kind: Rejected, Reason: wire.RejStaleConn})
		m.abandon(old, now)
		return
	}
	m.register(c)
	m.stop(c)
	m.counters.Replies++
	m.report(c, Event{Kind: ConnectResponse, Attr: c.attr, QPN: c.localQPN, RoundTrip: took, Private: r.Private[:]})
}

// receiveREJ: the peer refuses, or does not know of the connection (IBA
// 12.6.7).
func (m *Manager) receiveREJ(now Time, msg *message) {
	var r wire.REJ
	_ = r.Parse(msg.data)
	c := m.rejected(msg, &r)
	if c == nil {
		return
	}
	if c.state == ReqSent && r.Reason == wire.RejPortCMRedirect && m.follow(c, now, msg, r.Info[:], r.InfoLen) {
		return
	}
	m.counters.RejectsRcvd++
	e := Event{Kind: Rejected, Reason: r.Reason, Private: r.Private[:]}
	switch c.state {
	case ReqSent:
		if r.Reason == wire.RejStaleConn {
			m.enterTimeWait(c, now)
		} else {
			m.idle(c)
		}
		m.report(c, e)
	case ReqRcvd, RepSent, RepWait:
		// A repeated REQ that the REJ overtook shall not come back as a new
		// one.
		m.enterTimeWait(c, now)
		c.quiet = true
		m.report(c, e)
	case RepRcvd:
		m.enterTimeWait(c, now)
		m.report(c, e)
	case Established, DreqSent:
		m.disconnected(c, now, e)
	default:
		m.counters.DropState++
	}
}

// rejected returns the connection that a REJ is about.
func (m *Manager) rejected(msg *message, r *wire.REJ) *conn {
	switch {
	case r.RemoteCommID == 0 && r.Reason == wire.RejTimeout && r.InfoLen >= 8:
		// A peer that calls a REQ off before its answer knows no identifier of
		// ours.
		guid := uint64(0)
		for _, b := range r.Info[:8] {
			guid = guid<<8 | uint64(b)
		}
		if c := m.remotes[remoteID{wire.Bare(msg.from.Addr()), guid, r.LocalCommID}]; c != nil && c.sent(msg) {
			return c
		}
		m.counters.DropUnknown++
		return nil
	case r.LocalCommID == 0 && r.About == wire.AboutREQ:
		// A peer that refuses a REQ without a connection has no identifier.
		c := m.find(msg, wire.CommIDs{RemoteCommID: r.RemoteCommID})
		if c != nil && c.state != ReqSent {
			m.counters.DropState++
			return nil
		}
		return c
	}
	return m.find(msg, r.CommIDs)
}
