package cm

import (
	"fmt"
	"net/netip"
	"syscall"

	"github.com/rdmashim/rdmashim/rnic/wire"
)

// receiveSIDRREQ takes a peer's question for the queue pair that serves
// datagrams (IBA 12.11.1).
func (m *Manager) receiveSIDRREQ(now Time, msg *message) {
	var r wire.SIDRREQ
	_ = r.Parse(msg.data)
	peer := replyTo(msg.from)
	if r.Reserved != 0 {
		peer = netip.AddrPortFrom(peer.Addr(), r.Reserved)
	}
	if c := m.questions[question{peer, r.RequestID, msg.tid, r.ServiceID}]; c != nil {
		m.replays(c, now) // nothing, while the program has not answered
		return
	}
	refuse := func(status wire.SIDRStatus, info ...byte) {
		m.counters.Answers++
		m.out = append(m.out, sidrRep(peer, msg.tid, r.RequestID, r.ServiceID, &AnswerParams{Status: status}, info...))
	}
	var ip wire.IPCM
	_ = ip.Parse(r.Private[:])
	switch {
	case !ofDatagrams(r.ServiceID):
		refuse(wire.SIDRUnsupportedService)
		return
	case ip.Major != 0 || !ip.Dst().IsValid(), wire.Bare(ip.Src().Addr()) != wire.Bare(peer.Addr()):
		// Programs, and shares, go by an address that answers come to.
		refuse(wire.SIDRRejected)
		return
	}
	l := m.listenerFor(r.ServiceID, ip.Dst())
	switch {
	case l == nil && m.waitsForListener(r.ServiceID, now, msg):
		return
	case l == nil && m.refusal(r.ServiceID) == wire.RejConsumer:
		refuse(wire.SIDRRejected)
		return
	case l == nil:
		refuse(wire.SIDRUnsupportedService)
		return
	case l.redirect != 0:
		refuse(wire.SIDRRedirect, elsewhere(wire.GIDOf(ip.Dst()), l.redirect)...)
		return
	case l.full(wire.Bare(peer.Addr()), m.cfg.MaxRequests):
		m.counters.DropBacklog++ // the peer asks again
		return
	}
	c, err := m.newConn()
	if err != nil {
		refuse(wire.SIDRNoQP)
		return
	}
	c.state, c.sidr, c.remote, c.tid, c.service = SidrReqRcvd, true, r.RequestID, msg.tid, r.ServiceID
	c.timeout, c.attr = m.cfg.ResponseTimeout, Attr{Peer: peer}
	l.countRequest(c)
	m.questions[c.question()] = c
	m.credit-- // the answer comes later: this question earns nothing
	m.counters.QuestionsRcvd++
	m.report(c, Event{Kind: SIDRRequest, Listener: l.id, Service: r.ServiceID, Src: ip.Src(), Dst: ip.Dst(), Attr: c.attr,
		Private: r.Private[wire.IPCMLen:]})
}

// AnswerParams holds the answer to a SIDRRequest.
type AnswerParams struct {
	Status  wire.SIDRStatus // programs' own are SIDRValid and SIDRRejected
	QPN     wire.QPN        // of SIDRValid, as QKey
	QKey    uint32
	Private []byte // at most [wire.SIDRREPPrivateLen] bytes
}

// Answer sends a SIDR_REP for a SIDRRequest (IBA 12.11.2). No event follows.
// Next: Transmit, NextTimeout, Destroy.
func (m *Manager) Answer(now Time, id wire.CommID, p *AnswerParams) error {
	c, err := m.lookup(id)
	switch {
	case err != nil:
		return err
	case c.state != SidrReqRcvd:
		return c.wrongState("be answered")
	case len(p.Private) > wire.SIDRREPPrivateLen:
		return tooLong("answer", p.Private, wire.SIDRREPPrivateLen)
	case p.Status == wire.SIDRValid && !p.QPN.Valid():
		return fmt.Errorf("cm: answer: queue pair number %v: %w", p.QPN, syscall.EINVAL)
	}
	m.answer(c, now, p)
	return nil
}

// answer ends a question, and keeps its answer for as long as the peer may
// repeat it.
func (m *Manager) answer(c *conn, now Time, p *AnswerParams) {
	m.counters.Answers++
	c.sending = sidrRep(c.attr.Peer, c.tid, c.remote, c.service, p)
	m.out = append(m.out, c.sending)
	m.refused(c, now)
}

// sidrRep is a SIDR_REP. A queue pair is in it only if it is one to send to, as
// with Linux (cm.c: cm_format_sidr_rep).
func sidrRep(to netip.AddrPort, tid uint64, id wire.CommID, service wire.ServiceID, p *AnswerParams, info ...byte) Datagram {
	r := &wire.SIDRREP{RequestID: id, Status: p.Status, ServiceID: service, InfoLen: uint8(len(info))}
	if p.Status == wire.SIDRValid {
		r.QPN, r.QKey = p.QPN, p.QKey
	}
	copy(r.Info[:], info)
	copy(r.Private[:], p.Private)
	return datagram(to, tid, wire.AttrSIDRREP, r)
}
