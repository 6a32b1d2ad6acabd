package cm

import (
	"encoding/binary"
	"net/netip"

	"github.com/rdmashim/rdmashim/rnic/wire"
)

// body is one of wire's messages.
type body interface{ Append(b []byte) []byte }

// datagram puts a message into a datagram.
func datagram(to netip.AddrPort, tid uint64, a wire.CMAttribute, m body) (d Datagram) {
	d.To = to
	h := wire.CMHeader(tid, a)
	m.Append(h.Append(d.MAD[:0]))
	return d
}

// entropyPorts is where the UDP source ports of RoCEv2 begin that say nothing
// but which flow a packet belongs to (IBA A17).
const entropyPorts = 0xc000

// replyTo is where an answer to a datagram goes whose sender did not tell its
// UDP port: devices with another one than 4791 send from it.
func replyTo(from netip.AddrPort) netip.AddrPort {
	if p := from.Port(); p != 0 && p < entropyPorts {
		return from
	}
	return netip.AddrPortFrom(from.Addr(), wire.Port)
}

// lidOf carries a UDP port that is not 4791 in the place of a LID, which RoCE
// does not have; portOf is the reverse.
func lidOf(port uint16) uint16 {
	if port == wire.Port {
		return wire.PermissiveLID
	}
	return port
}

func portOf(lid uint16) uint16 {
	if lid == 0 || lid == wire.PermissiveLID {
		return wire.Port
	}
	return lid
}

func (m *Manager) req(c *conn, p *ConnectParams) Datagram {
	r := &wire.REQ{
		LocalCommID: c.id, ServiceID: c.service, LocalCAGUID: m.cfg.CAGUID, LocalQPN: c.localQPN,
		ResponderResources: p.MaxDestRdAtomic, InitiatorDepth: p.MaxRdAtomic,
		RemoteTimeout: c.timeout, LocalTimeout: m.cfg.ResponseTimeout, TransportService: wire.ServiceCodeRC, FlowControl: p.FlowControl,
		StartingPSN: c.attr.RQPSN, RetryCount: p.RetryCount, PKey: wire.DefaultPKey, MTU: p.MTU, RNRRetryCount: p.RNRRetryCount,
		MaxCMRetries: c.retries, SRQ: p.SRQ,
		Primary: wire.CMPath{
			LocalLID: lidOf(m.cfg.UDPPort), RemoteLID: lidOf(p.Peer.Port()),
			LocalGID: wire.GIDOf(p.Src.Addr()), RemoteGID: wire.GIDOf(p.Peer.Addr()),
			FlowLabel: p.FlowLabel, TrafficClass: p.TrafficClass, HopLimit: c.attr.HopLimit, AckTimeout: c.attr.Timeout,
		},
	}
	private := r.Private[:]
	if _, _, ip := c.service.IP(); ip {
		h := wire.NewIPCM(p.Src, p.Dst)
		h.Append(private[:0])
		private = private[wire.IPCMLen:]
	}
	copy(private, p.Private)
	return datagram(c.attr.Peer, c.tid, wire.AttrREQ, r)
}

func (c *conn) ids() wire.CommIDs { return wire.CommIDs{LocalCommID: c.id, RemoteCommID: c.remote} }

func (m *Manager) rep(c *conn, p *AcceptParams) Datagram {
	r := &wire.REP{
		CommIDs: c.ids(), LocalQPN: p.QPN, StartingPSN: c.attr.RQPSN, ResponderResources: p.MaxDestRdAtomic, InitiatorDepth: p.MaxRdAtomic,
		TargetAckDelay: m.cfg.AckDelay, FlowControl: p.FlowControl, RNRRetryCount: p.RNRRetryCount, SRQ: p.SRQ, LocalCAGUID: m.cfg.CAGUID,
	}
	copy(r.Private[:], p.Private)
	return datagram(c.attr.Peer, c.tid, wire.AttrREP, r)
}

func (m *Manager) rtu(c *conn) Datagram {
	return datagram(c.attr.Peer, c.tid, wire.AttrRTU, &wire.RTU{CommIDs: c.ids()})
}

func (m *Manager) mra(c *conn, about wire.CMAbout) Datagram {
	return datagram(c.attr.Peer, c.tid, wire.AttrMRA, &wire.MRA{CommIDs: c.ids(), About: about, Timeout: m.cfg.MRATimeout})
}

// rej is the REJ that ends c in its present state (IBA 12.6.7.3).
func (m *Manager) rej(c *conn, reason wire.RejectReason, info, private []byte) Datagram {
	r := &wire.REJ{CommIDs: c.ids(), About: wire.AboutOther, Reason: reason, InfoLen: uint8(len(info))}
	switch c.state {
	case ReqRcvd:
		r.About = wire.AboutREQ
	case RepRcvd:
		r.About = wire.AboutREP
	}
	copy(r.Info[:], info)
	copy(r.Private[:], private)
	return datagram(c.attr.Peer, c.tid, wire.AttrREJ, r)
}

// guid is the information in a REJ for a timeout: the sender of a REQ is known
// by it and its own identifier (IBA 12.6.7.2).
func (m *Manager) guid() []byte { return binary.BigEndian.AppendUint64(nil, m.cfg.CAGUID) }

func (m *Manager) dreq(c *conn) Datagram {
	return datagram(c.attr.Peer, m.transaction(), wire.AttrDREQ, &wire.DREQ{CommIDs: c.ids(), RemoteQPN: c.attr.RemoteQPN})
}

// refuse answers a message with a REJ that no connection stands behind.
func (m *Manager) refuse(to netip.AddrPort, tid uint64, ids wire.CommIDs, about wire.CMAbout, reason wire.RejectReason, info ...byte) {
	m.counters.RejectsSent++
	r := &wire.REJ{CommIDs: swap(ids), About: about, Reason: reason, InfoLen: uint8(len(info))}
	copy(r.Info[:], info)
	m.out = append(m.out, datagram(to, tid, wire.AttrREJ, r))
}

// swap is how the receiver of a message names its connection.
func swap(ids wire.CommIDs) wire.CommIDs {
	return wire.CommIDs{LocalCommID: ids.RemoteCommID, RemoteCommID: ids.LocalCommID}
}
