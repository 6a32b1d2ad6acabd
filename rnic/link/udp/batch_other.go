//go:build !linux || udpportable

package udp

import (
	"errors"
	"net"
	"net/netip"

	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// This file serves systems without sendmmsg; the tag udpportable lets it be
// tested on Linux.

const useGRO = false

// sender sends a datagram at a time.
type sender struct {
	s     *socket
	peers peers
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
		t.s.count.Malformed.Add(1)
		return nil
	}
	peer := t.peers.to(t.s.local, p.Peer)
	if peer == nil {
		t.s.refused.Unreachable.Add(1)
		return nil
	}
	var whole []byte
	whole, t.buf = finish(t.buf[:0], p, peer.flow, 0)
	if t.s.tap != nil {
		t.s.tap.Datagram(link.Outbound, t.s.local, p.Peer, 0, whole, nil, nil)
	}
	to := netip.AddrPortFrom(p.Peer.Addr().Unmap(), p.Peer.Port())
	if to.Addr().IsLinkLocalUnicast() && to.Addr().Is6() {
		to = netip.AddrPortFrom(to.Addr().WithZone(t.s.local.Addr().Zone()), to.Port())
	}
	_, err := t.s.conn.WriteToUDPAddrPort(whole, to)
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
	peers peers
	buf   [slotSize + 1]byte // one byte more, to see that a datagram was cut
	n     int
	from  netip.AddrPort
	full  bool // buf holds a datagram that next has not returned
	err   error
	try   func(fd uintptr)
}

func (r *receiver) init(s *socket) {
	r.s = s
	r.try = r.read
}

// fill reads a datagram, if one is there.
func (r *receiver) fill() (bool, error) {
	r.err = nil
	if err := r.s.raw.Control(r.try); err != nil {
		return false, err
	}
	return r.full, r.err
}

func (r *receiver) read(fd uintptr) {
	for {
		var err error
		r.n, r.from, err = receive(fd, r.buf[:])
		switch {
		case err == nil:
			r.full = true
			return
		case isEmpty(err):
			return
		case isOfSending(err):
			r.s.drop(err)
		default:
			r.err = err
			return
		}
	}
}

func (r *receiver) next() (d datagram, ok bool) {
	if !r.full {
		return d, false
	}
	r.full = false
	return datagram{data: r.buf[:min(r.n, slotSize)], from: r.from, whole: r.n <= slotSize}, true
}

func (r *receiver) learn(uint16) {}

// overflows: other systems do not tell.
func overflows(uintptr) (n, waiting uint32, ok bool) { return 0, 0, false }
