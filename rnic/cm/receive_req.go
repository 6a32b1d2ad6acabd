package cm

import (
	"net/netip"

	"github.com/rdmashim/rdmashim/rnic/wire"
)

// receiveREQ takes a peer's request for a connection (IBA 12.9.6, 12.9.8.3.1).
func (m *Manager) receiveREQ(now Time, msg *message) {
	var r wire.REQ
	_ = r.Parse(msg.data)
	peer := netip.AddrPortFrom(msg.from.Addr(), portOf(r.Primary.LocalLID))
	key := remoteID{wire.Bare(peer.Addr()), r.LocalCAGUID, r.LocalCommID}
	if c := m.remotes[key]; c != nil && c.tid == msg.tid && c.attr.RemoteQPN == r.LocalQPN {
		m.repeatedREQ(c, now)
		return
	}
	refuse := func(reason wire.RejectReason, info ...byte) {
		m.refuse(peer, msg.tid, wire.CommIDs{LocalCommID: r.LocalCommID}, wire.AboutREQ, reason, info...)
	}
	if old := m.same(&r, key); old != nil {
		m.stale(old, now, suspicion{from: peer, tid: msg.tid, ids: wire.CommIDs{LocalCommID: r.LocalCommID}})
		return
	}
	ip, reason := m.checkREQ(&r, peer)
	if reason != 0 {
		refuse(reason) // without the MTU that would do: no peer is known to read it
		return
	}
	l := m.listenerFor(r.ServiceID, ip.Dst())
	if ofDatagrams(r.ServiceID) {
		l = nil
	}
	if l == nil && m.waitsForListener(r.ServiceID, now, msg) {
		return
	}
	if l == nil {
		refuse(m.refusal(r.ServiceID))
		return
	}
	if l.redirect != 0 {
		refuse(wire.RejPortCMRedirect, elsewhere(r.Primary.RemoteGID, l.redirect)...)
		return
	}
	if l.full(key.addr, m.cfg.MaxRequests) {
		m.counters.DropBacklog++ // the peer asks again
		return
	}
	c, err := m.newConn()
	if err != nil {
		refuse(wire.RejNoResources)
		return
	}
	m.request(c, l, &r, peer, msg, &ip)
}

// refusal returns why a service refuses an address: there is no listener, or,
// as Linux says it, none for this address (cma.c: cma_ib_req_handler).
func (m *Manager) refusal(service wire.ServiceID) wire.RejectReason {
	if len(m.services[service]) > 0 {
		return wire.RejConsumer
	}
	return wire.RejInvalidServiceID
}

// same returns a connection that the sender of r cannot have any more, since r
// has its identifier or queue pair (IBA 12.9.8.3.1).
func (m *Manager) same(r *wire.REQ, key remoteID) *conn {
	if c := m.remotes[key]; c != nil {
		return c
	}
	return m.qpns[remoteQPN{key.addr, key.guid, r.LocalQPN}]
}

// abandon ends a connection that its peer has not any more.
func (m *Manager) abandon(c *conn, now Time) {
	m.counters.Stale++
	switch c.state {
	case Established:
		m.disconnect(c, now)
	case ReqRcvd, RepSent, RepWait, RepRcvd:
		m.enterTimeWait(c, now)
		c.quiet = true
		m.report(c, Event{Kind: Rejected, Reason: wire.RejStaleConn})
	}
}

// checkREQ returns the REQ's IP addresses, and the reason to refuse it, 0 for
// none.
func (m *Manager) checkREQ(r *wire.REQ, peer netip.AddrPort) (ip wire.IPCM, reason wire.RejectReason) {
	switch {
	case r.TransportService != wire.ServiceCodeRC || r.ExtendedTransport != 0:
		return ip, wire.RejInvalidService
	case r.LocalQPN <= wire.GSIQPN || r.LocalQPN == wire.MulticastQPN || r.LocalCommID == 0:
		return ip, wire.RejUnsupported
	case wire.Bare(r.Primary.LocalGID.Addr()) != wire.Bare(peer.Addr()):
		// Data would go to another address than this answer.
		return ip, wire.RejInvalidGID
	case r.MTU < 1 || r.MTU > m.cfg.MTU:
		return ip, wire.RejInvalidMTU
	}
	if _, _, is := r.ServiceID.IP(); is {
		_ = ip.Parse(r.Private[:])
		if ip.Major != 0 || !ip.Dst().IsValid() {
			return ip, wire.RejConsumer // as Linux (cma_ib_req_handler)
		}
		if wire.Bare(ip.Src().Addr()) != wire.Bare(peer.Addr()) {
			// Programs, and shares, go by an address that answers come to.
			return ip, wire.RejInvalidGID
		}
	}
	return ip, 0
}

// repeatedREQ: the answer was lost, or is not there yet.
func (m *Manager) repeatedREQ(c *conn, now Time) {
	switch c.state {
	case ReqRcvd:
		m.counters.Duplicates++
		m.out = append(m.out, m.mra(c, wire.AboutREQ))
	case RepSent, RepWait:
		m.counters.Duplicates++
		c.sentAt = 0
		m.out = append(m.out, c.sending)
	default:
		m.replays(c, now)
	}
}

// request makes c of a REQ and tells its new owner.
func (m *Manager) request(c *conn, l *Listener, r *wire.REQ, peer netip.AddrPort, msg *message, ip *wire.IPCM) {
	c.state, c.remote, c.guid, c.tid, c.service = ReqRcvd, r.LocalCommID, r.LocalCAGUID, msg.tid, r.ServiceID
	c.timeout, c.retries = min(r.LocalTimeout, m.cfg.MRATimeout), r.MaxCMRetries
	p := &r.Primary
	c.attr = Attr{
		Peer: peer, Soft: sendsFrom(msg.from.Port(), peer), RemoteQPN: r.LocalQPN, RQPSN: m.psn(), SQPSN: r.StartingPSN, MTU: r.MTU,
		MaxDestRdAtomic: r.InitiatorDepth, MaxRdAtomic: r.ResponderResources,
		Timeout:    ackTimeout(m.cfg.AckDelay, max(uint8(p.AckTimeout), 1)-1),
		RetryCount: r.RetryCount, RNRRetryCount: r.RNRRetryCount, FlowControl: r.FlowControl, SRQ: r.SRQ,
		TrafficClass: p.TrafficClass, HopLimit: p.HopLimit, FlowLabel: p.FlowLabel,
	}
	l.countRequest(c)
	m.register(c)
	m.credit-- // the answer comes later: this REQ earns nothing
	m.counters.RequestsRcvd++
	e := Event{Kind: ConnectRequest, Listener: l.id, Service: r.ServiceID, Attr: c.attr, Private: r.Private[:]}
	if ip.Dst().IsValid() {
		e.Src, e.Dst, e.Private = ip.Src(), ip.Dst(), r.Private[wire.IPCMLen:]
	}
	m.report(c, e)
}
