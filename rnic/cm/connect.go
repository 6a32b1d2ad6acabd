package cm

import (
	"fmt"
	"net/netip"
	"syscall"

	"github.com/rdmashim/rdmashim/rnic/wire"
)

// ConnectParams holds the active side's request.
type ConnectParams struct {
	Peer    netip.AddrPort // address and UDP port of the peer's device
	Service wire.ServiceID
	// Src and Dst go into the REQ of a service of the RDMA IP CM service: the
	// program's own address and port, and the address that it wants. Src's
	// address is this device's in any case.
	Src netip.AddrPort
	Dst netip.Addr

	QPN wire.QPN
	MTU uint8 // path MTU code, 1 … 5, at most the port's
	// MaxDestRdAtomic and MaxRdAtomic are how many READs and atomics this
	// side's queue pair may serve and may have outstanding.
	MaxDestRdAtomic, MaxRdAtomic uint8
	RetryCount, RNRRetryCount    uint8 // 0 … 7
	FlowControl, SRQ             bool
	TrafficClass                 uint8
	FlowLabel                    uint32
	Timeout                      wire.AckTimeout // local ACK timeout; 0: that of PacketLife
	// Private is for the peer's program: at most [wire.REQUserLen] bytes for
	// services of the RDMA IP CM service, [wire.REQPrivateLen] for others.
	Private []byte
}

// check returns the fault of the parameters. Private data that is too long is
// EINVAL, as with Linux.
func (p *ConnectParams) check(m *Manager) error {
	if err := checkEnds("connect", p.Peer, p.Src); err != nil {
		return err
	}
	room := wire.REQPrivateLen
	_, _, ip := p.Service.IP()
	if ip {
		room = wire.REQUserLen
	}
	switch {
	case ip && !p.Dst.IsValid():
		return fmt.Errorf("cm: connect: service %v needs a destination address: %w", p.Service, syscall.EINVAL)
	case len(p.Private) > room:
		return tooLong("connect", p.Private, room)
	case p.MTU < 1 || p.MTU > m.cfg.MTU:
		return fmt.Errorf("cm: connect: path MTU code %d, the port has 1 to %d: %w", p.MTU, m.cfg.MTU, syscall.EINVAL)
	case p.RetryCount > 7 || p.RNRRetryCount > 7:
		return fmt.Errorf("cm: connect: retry counts have 3 bits: %w", syscall.EINVAL)
	case !p.QPN.Valid():
		return fmt.Errorf("cm: connect: queue pair number %v: %w", p.QPN, syscall.EINVAL)
	}
	return nil
}

// Connect sends a REQ and makes a connection in REQ_SENT (IBA 12.9.5).
// ConnectResponse, Rejected or Unreachable is its end. Next: Transmit,
// NextTimeout.
func (m *Manager) Connect(now Time, p *ConnectParams) (wire.CommID, error) {
	if err := p.check(m); err != nil {
		return 0, err
	}
	c, err := m.newConn()
	if err != nil {
		return 0, err
	}
	c.state = ReqSent
	c.tid = m.transaction()
	c.service, c.src, c.dst, c.localQPN = p.Service, p.Src, p.Dst, p.QPN
	c.timeout, c.retries = m.cfg.ResponseTimeout, m.cfg.Retries
	c.attr = Attr{
		Peer: p.Peer, MTU: p.MTU, RQPSN: m.psn(), MaxDestRdAtomic: p.MaxDestRdAtomic, MaxRdAtomic: p.MaxRdAtomic,
		Timeout: ackTimeout(m.cfg.AckDelay, uint8(m.cfg.PacketLife)), RetryCount: p.RetryCount,
		TrafficClass: p.TrafficClass, HopLimit: 64, FlowLabel: p.FlowLabel,
	}
	if p.Timeout != 0 {
		c.attr.Timeout = min(p.Timeout, 31)
	}
	c.sending = m.req(c, p)
	m.counters.Requests++
	m.send(c, now)
	return c.id, nil
}

// Confirm sends the RTU after a ConnectResponse: the queue pair is in RTS.
// Next: Transmit, NextTimeout.
func (m *Manager) Confirm(id wire.CommID) error {
	c, err := m.lookup(id)
	if err != nil {
		return err
	}
	if c.state != RepRcvd {
		return c.wrongState("confirm")
	}
	c.state = Established
	c.sending, c.replay = m.rtu(c), true // a repeated REP means that it was lost
	m.stop(c)
	m.out = append(m.out, c.sending)
	return nil
}

// checkEnds returns the fault of the two addresses of a request.
func checkEnds(call string, peer, src netip.AddrPort) error {
	switch {
	case !peer.IsValid() || peer.Port() == 0:
		return fmt.Errorf("cm: %s: the peer needs an address and a UDP port, not %v: %w", call, peer, syscall.EINVAL)
	case !src.Addr().IsValid() || wire.Bare(src.Addr()).Is4() != wire.Bare(peer.Addr()).Is4():
		return fmt.Errorf("cm: %s: own address %v does not go with the peer's %v: %w", call, src.Addr(), peer.Addr(), syscall.EINVAL)
	}
	return nil
}

func tooLong(call string, private []byte, room int) error {
	return fmt.Errorf("cm: %s: %d bytes of private data, at most %d fit: %w", call, len(private), room, syscall.EINVAL)
}
