package rnic

import (
	"net/netip"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/driver"
	"github.com/rdmashim/rdmashim/rnic/cm"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// resolve asks for the queue pair that serves datagrams. Preconditions: the
// device is locked.
func (c *cmConn) resolve(now cm.Time, m *cm.Manager, p *driver.CMRequest, ev driver.CMEvents) (err error) {
	c.id, err = m.Resolve(now, &cm.ResolveParams{
		Peer:    netip.AddrPortFrom(p.Dst.Addr().Unmap(), c.d.asks),
		Service: wire.ServiceID(p.Service), Src: p.Src, Dst: p.Dst.Addr(), Private: p.Private,
	})
	if err == nil {
		c.d.gsi.users.conns[c.id] = ev
	}
	return err
}

// answer answers such a question.
func (c *cmConn) answer(a *cm.AnswerParams) error {
	return c.d.withCM(func(now cm.Time, m *cm.Manager) error { return m.Answer(now, c.id, a) })
}

// answered is the event of an answer. The DLID carries a soft device's UDP
// port.
func answered(e *cm.Event) driver.CMEvent {
	if e.Status != wire.SIDRValid {
		return driver.CMEvent{Event: abi.UCMEventUnreachable, Status: int32(e.Status), Private: e.Private}
	}
	peer := e.Attr.Peer
	return driver.CMEvent{
		Event: abi.UCMEventEstablished, Private: e.Private, Peer: driver.CMPeerParam{QPN: uint32(e.Attr.RemoteQPN)}, QKey: e.QKey,
		AV: abi.QPDest{DGID: gidOf(peer.Addr()).As16(), DLID: portLID(peer.Port()), IsGlobal: 1},
	}
}
