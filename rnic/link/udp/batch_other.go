//go:build !linux || udpportable

package udp

import (
	"errors"
	"net"
	"net/netip"

	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// This file serves systems without sendmmsg; the tag udpportable lets it be tested
// on Linux.

// sender sends a datagram at a time.
type sender struct {
	s     *socket
	flows flows
	tail  trailer
	buf   []byte
}

func (t *sender) init(s *socket) { t.s = s }

func (t *sender) send(batch []link.Packet) error {
	for i := range batch {
		if err := t.sendOne(&batch[i]); err != nil {
			return err
		}
	}
	return nil
}

func (t *sender) sendOne(p *link.Packet) error {
	if len(p.Head) < wire.BTHLen {
		t.s.count.malformed.Add(1)
		return nil
	}
	flow, ok := t.flows.findTo(t.s.local, p.Peer)
	if !ok {
		t.s.count.unreachable.Add(1)
		return nil
	}
	t.buf = assemble(t.buf, p, t.tail.finish(p, flow))
	t.s.show(p.Peer, t.buf, nil, nil)
	to := netip.AddrPortFrom(p.Peer.Addr().Unmap(), p.Peer.Port())
	if to.Addr().IsLinkLocalUnicast() && to.Addr().Is6() {
		to = netip.AddrPortFrom(to.Addr().WithZone(t.s.local.Addr().Zone()), to.Port())
	}
	_, err := t.s.conn.WriteToUDPAddrPort(t.buf, to)
	if errors.Is(err, net.ErrClosed) {
		return err
	}
	if err != nil {
		t.s.drop(err)
	}
	return nil
}

// receiver receives a datagram at a time.
type receiver struct {
	s     *socket
	flows flows
	buf   [slotSize + 1]byte // one byte more, to see that a datagram was cut
	n     int
	from  netip.AddrPort
}

func (r *receiver) init(s *socket) { r.s = s }

func (r *receiver) recv(int) (int, error) {
	for {
		var err error
		r.n, r.from, err = r.s.conn.ReadFromUDPAddrPort(r.buf[:])
		if err == nil {
			r.from = netip.AddrPortFrom(r.from.Addr().Unmap().WithZone(""), r.from.Port())
			return 1, nil
		}
		if errors.Is(err, net.ErrClosed) {
			return 0, err
		}
		r.s.drop(err)
	}
}

func (r *receiver) datagram(int) (data []byte, from netip.AddrPort, whole bool) {
	return r.buf[:min(r.n, slotSize)], r.from, r.n <= slotSize
}
