package cm

import (
	"fmt"
	"net/netip"
	"syscall"

	"github.com/rdmashim/rdmashim/rnic/wire"
)

// maxRedirects is how many redirections one request follows. The device that
// owns UDP port 4791 sends one; a second is for its owner's change meanwhile.
const maxRedirects = 2

// Redirect refuses the connection requests for a service with the UDP port at
// which another device of this address has it (IBA 12.6.7.2, reason 24), and
// answers its SIDR_REQs so; soft devices ask there. It is a listener as
// [Manager.Listen] makes one, for every address, and ends with Unlisten.
func (m *Manager) Redirect(service wire.ServiceID, port uint16) (ListenerID, error) {
	if port == 0 || port == m.cfg.UDPPort {
		return 0, fmt.Errorf("cm: redirect service %v to UDP port %d: %w", service, port, syscall.EINVAL)
	}
	id, err := m.Listen(service, netip.Addr{}, 1)
	if err == nil {
		m.listeners[id].redirect = port
	}
	return id, err
}

// elsewhere is the information of a REJ or SIDR_REP that redirects to another
// UDP port, which is in the place of a LID, of the address that the request
// named.
func elsewhere(gid wire.GID, port uint16) []byte {
	info := wire.ClassPortInfo{BaseVersion: 1, ClassVersion: 2, RedirectGID: gid, RedirectLID: lidOf(port),
		RedirectPKey: wire.DefaultPKey, RedirectQPN: wire.GSIQPN, RedirectQKey: wire.GSIQKey}
	return info.Append(nil)
}

// follow repeats the request to the UDP port that a redirection names. It
// reports whether the redirection is dealt with: a redirection to another host,
// one too many, or one from another port than the request went to, is a
// refusal.
func (m *Manager) follow(c *conn, now Time, msg *message, b []byte, size uint8) bool {
	var info wire.ClassPortInfo
	if int(size) < wire.ClassPortInfoLen || info.Parse(b) != nil {
		return false
	}
	peer, port := c.attr.Peer, portOf(info.RedirectLID)
	switch {
	case wire.Bare(info.RedirectGID.Addr()) != wire.Bare(peer.Addr()) || info.RedirectQPN != wire.GSIQPN:
		return false
	case c.hops > 0 && port == peer.Port():
		m.counters.Duplicates++ // of the one that was followed
		return true
	case msg.from.Port() != peer.Port() || port == peer.Port() || c.hops == maxRedirects:
		return false
	}
	c.hops++
	c.attr.Peer = netip.AddrPortFrom(peer.Addr(), port)
	if c.sidr {
		c.sending.To = c.attr.Peer // the message does not name the port
	} else {
		var q wire.REQ
		_ = q.Parse(c.sending.MAD[wire.MADHeaderLen:])
		q.Primary.RemoteLID = lidOf(port)
		c.state, c.sending = ReqSent, datagram(c.attr.Peer, c.tid, wire.AttrREQ, &q)
	}
	m.counters.Redirects++
	m.send(c, now)
	return true
}
