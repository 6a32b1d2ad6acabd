package cm

import (
	"fmt"
	"net/netip"
	"syscall"

	"github.com/rdmashim/rdmashim/rnic/wire"
)

// ResolveParams holds a question for the queue pair that serves datagrams.
type ResolveParams struct {
	Peer    netip.AddrPort // address and UDP port of the peer's device
	Service wire.ServiceID // of the port space UDP
	// Src and Dst go into the SIDR_REQ: the program's own address and port, and
	// the address that it wants. Src's address is this device's.
	Src netip.AddrPort
	Dst netip.Addr
	// Private is for the peer's program: at most SIDRUserLen bytes.
	Private []byte
}

// SIDRUserLen is the number of bytes that the addresses leave a program of a
// SIDR_REQ's private data.
const SIDRUserLen = wire.SIDRREQPrivateLen - wire.IPCMLen

// check returns the fault of the parameters.
func (p *ResolveParams) check() error {
	switch err := checkEnds("resolve", p.Peer, p.Src); {
	case err != nil:
		return err
	case !ofDatagrams(p.Service) || !p.Dst.IsValid():
		return fmt.Errorf("cm: resolve: service %v at %v is not one of the port space UDP at an address: %w", p.Service, p.Dst, syscall.EINVAL)
	case len(p.Private) > SIDRUserLen:
		return tooLong("resolve", p.Private, SIDRUserLen)
	}
	return nil
}

// Resolve sends a SIDR_REQ and makes a question in SIDR_REQ_SENT (IBA 12.11).
// SIDRReply or Unreachable is its end; then Destroy is left to do.
// Next: Transmit, NextTimeout.
func (m *Manager) Resolve(now Time, p *ResolveParams) (wire.CommID, error) {
	if err := p.check(); err != nil {
		return 0, err
	}
	c, err := m.newConn()
	if err != nil {
		return 0, err
	}
	c.state, c.sidr = SidrReqSent, true
	c.tid = m.transaction()
	c.service, c.src, c.dst = p.Service, p.Src, p.Dst
	c.timeout, c.retries = m.cfg.ResponseTimeout, m.cfg.Retries
	c.attr = Attr{Peer: p.Peer}
	c.sending = m.sidrReq(c, p.Private)
	m.counters.Questions++
	m.send(c, now)
	return c.id, nil
}

func (m *Manager) sidrReq(c *conn, private []byte) Datagram {
	r := &wire.SIDRREQ{RequestID: c.id, PKey: uint16(wire.DefaultPKey), ServiceID: c.service}
	if m.cfg.UDPPort != wire.Port {
		r.Reserved = m.cfg.UDPPort
	}
	h := wire.NewIPCM(c.src, c.dst)
	h.Append(r.Private[:0])
	copy(r.Private[wire.IPCMLen:], private)
	return datagram(c.attr.Peer, c.tid, wire.AttrSIDRREQ, r)
}

// receiveSIDRREP: the peer answers a question.
func (m *Manager) receiveSIDRREP(now Time, msg *message) {
	var r wire.SIDRREP
	_ = r.Parse(msg.data)
	c := m.conns[r.RequestID]
	switch {
	case c == nil || !c.sidr || c.tid != msg.tid:
		m.counters.DropUnknown++
	case !c.sent(msg):
		m.counters.DropPeer++
	case c.state != SidrReqSent:
		m.counters.Duplicates++
	case r.Status == wire.SIDRRedirect && m.follow(c, now, msg, r.Info[:], r.InfoLen):
	default:
		m.counters.AnswersRcvd++
		m.idle(c)
		e := Event{Kind: SIDRReply, Status: r.Status, Attr: c.attr, Private: r.Private[:]}
		if r.Status == wire.SIDRValid {
			e.Attr.RemoteQPN, e.QKey = r.QPN, r.QKey
		}
		m.report(c, e)
	}
}
