package cm

import (
	"fmt"
	"syscall"

	"github.com/rdmashim/rdmashim/rnic/wire"
)

// AcceptParams holds the passive side's answer.
type AcceptParams struct {
	QPN wire.QPN
	// MaxDestRdAtomic and MaxRdAtomic should not exceed those of the
	// ConnectRequest's Attr.
	MaxDestRdAtomic, MaxRdAtomic uint8
	RNRRetryCount                uint8 // 0 … 7
	FlowControl, SRQ             bool
	Private                      []byte // at most [wire.REPPrivateLen] bytes
}

// Accept sends a REP for a ConnectRequest: the queue pair can receive (IBA
// 12.9.6). Connected, Rejected or Unreachable tells its outcome. Next:
// Transmit, NextTimeout.
func (m *Manager) Accept(now Time, id wire.CommID, p *AcceptParams) error {
	c, err := m.lookup(id)
	switch {
	case err != nil:
		return err
	case c.state != ReqRcvd:
		return c.wrongState("accept")
	case len(p.Private) > wire.REPPrivateLen:
		return tooLong("accept", p.Private, wire.REPPrivateLen)
	case p.RNRRetryCount > 7:
		return fmt.Errorf("cm: accept: retry counts have 3 bits: %w", syscall.EINVAL)
	case !p.QPN.Valid():
		return fmt.Errorf("cm: accept: queue pair number %v: %w", p.QPN, syscall.EINVAL)
	}
	m.answered(c)
	c.state, c.localQPN = RepSent, p.QPN
	c.attr.MaxDestRdAtomic, c.attr.MaxRdAtomic = p.MaxDestRdAtomic, p.MaxRdAtomic
	c.sending = m.rep(c, p)
	m.send(c, now)
	return nil
}

// CommEstablished tells that a packet came for the connection's queue pair: the
// peer has got the REP, so nothing waits for the RTU any more (IBA 12.9.6, RTU
// timeout). EISCONN when the RTU was faster, EINVAL in other states. Next:
// Event.
func (m *Manager) CommEstablished(id wire.CommID) error {
	c, err := m.lookup(id)
	switch {
	case err != nil:
		return err
	case c.state == Established:
		return fmt.Errorf("cm: connection %v is established: %w", id, syscall.EISCONN)
	case c.state != RepSent && c.state != RepWait:
		return fmt.Errorf("cm: connection %v is %v and waits for no RTU: %w", id, c.state, syscall.EINVAL)
	}
	m.connected(c, 0)
	return nil
}

// connected is the passive side's end of the handshake.
func (m *Manager) connected(c *conn, took Duration) {
	c.state = Established
	m.stop(c)
	m.counters.Accepted++
	m.report(c, Event{Kind: Connected, QPN: c.localQPN, RoundTrip: took})
}
