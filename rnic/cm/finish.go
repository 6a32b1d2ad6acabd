package cm

import "github.com/rdmashim/rdmashim/rnic/wire"

// Reject sends a REJ: for a ConnectRequest instead of Accept, after Accept as
// long as there is no Connected, for a ConnectResponse instead of Confirm, and
// before it to call a Connect off. private is at most [wire.REJPrivateLen]
// bytes. Programs' own reason is [wire.RejConsumer]. No event follows. Next:
// Transmit, NextTimeout, Destroy.
func (m *Manager) Reject(now Time, id wire.CommID, reason wire.RejectReason, private []byte) error {
	c, err := m.lookup(id)
	if err != nil {
		return err
	}
	if len(private) > wire.REJPrivateLen {
		return tooLong("reject", private, wire.REJPrivateLen)
	}
	switch c.state {
	case Idle, Established, DreqSent, TimeWait, SidrReqSent, SidrReqRcvd:
		return c.wrongState("be rejected")
	}
	m.reject(c, now, reason, nil, private)
	return nil
}

// reject ends c with a REJ; without one, and at once, if the peer may not exist
// and was sent enough. If it exists, its RTU or repeated REQ is answered.
func (m *Manager) reject(c *conn, now Time, reason wire.RejectReason, info, private []byte) {
	if c.state == RepSent && !m.spend() {
		m.idle(c)
		return
	}
	m.counters.RejectsSent++
	c.sending = m.rej(c, reason, info, private)
	m.out = append(m.out, c.sending)
	m.refused(c, now)
}

// Disconnect sends a DREQ. Disconnected tells the end. On a connection that is
// over, or going to be, it does nothing. Next: Transmit, NextTimeout.
func (m *Manager) Disconnect(now Time, id wire.CommID) error {
	c, err := m.lookup(id)
	if err != nil {
		return err
	}
	switch c.state {
	case Established:
		m.disconnect(c, now)
		return nil
	case DreqSent, TimeWait:
		return nil
	}
	return c.wrongState("disconnect")
}

func (m *Manager) disconnect(c *conn, now Time) {
	c.state = DreqSent
	c.sending = m.dreq(c)
	m.send(c, now)
}

// Destroy takes the connection from its owner, which gets no more events of it.
// The peer gets the message that the state asks for: a connection is
// disconnected, an attempt rejected. The rest of the connection's state goes by
// itself. Next: Transmit, NextTimeout.
func (m *Manager) Destroy(now Time, id wire.CommID) error {
	c, err := m.lookup(id)
	if err != nil {
		return err
	}
	c.orphan = true
	switch c.state {
	case Idle:
		m.forget(c)
		return nil
	case ReqSent:
		m.reject(c, now, wire.RejTimeout, m.guid(), nil)
	case ReqRcvd, RepSent, RepWait, RepRcvd:
		m.reject(c, now, wire.RejConsumer, nil, nil)
	case Established:
		m.disconnect(c, now)
	case SidrReqSent:
		m.idle(c)
	case SidrReqRcvd:
		m.answer(c, now, &AnswerParams{Status: wire.SIDRRejected})
	}
	if c.state != Idle {
		m.lingers(c)
	}
	return nil
}

// Forget drops a ConnectRequest or a SIDRRequest as if it had not come: the
// peer, which hears nothing, asks again. In other states it does nothing.
func (m *Manager) Forget(id wire.CommID) {
	if c := m.conns[id]; c != nil && (c.state == ReqRcvd || c.state == SidrReqRcvd) {
		m.forget(c)
	}
}

// gaveUp ends c after a peer's silence.
func (m *Manager) gaveUp(c *conn, now Time) {
	m.counters.Timeouts++
	switch c.state {
	case DreqSent:
		m.disconnected(c, now, Event{})
	case SidrReqSent:
		m.idle(c)
		m.report(c, Event{Kind: Unreachable})
	default:
		m.reject(c, now, wire.RejTimeout, m.guid(), nil)
		m.report(c, Event{Kind: Unreachable})
	}
}

// peerLeft ends a connection at the peer's DREQ or DREP.
func (m *Manager) peerLeft(c *conn, now Time) {
	if m.cfg.PeerLeft != nil {
		m.cfg.PeerLeft(c.localQPN)
	}
	m.disconnected(c, now, Event{})
}

// disconnected ends a connection.
func (m *Manager) disconnected(c *conn, now Time, e Event) {
	m.enterTimeWait(c, now)
	e.Kind = Disconnected
	m.report(c, e)
}
