package udp

import (
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/rdmashim/rdmashim/rnic/link"
)

const (
	// batchSize is how many packets one Send and one Recv move: a megabyte of
	// the largest.
	batchSize = 256
	// slotSize holds the largest packet with a path MTU of the specification's:
	// 4096 bytes of payload and at most 72 of headers, pad and ICRC. A longer
	// one is received with GRO only, whose slots hold any.
	slotSize = 4096 + 128
)

// socket is a link on a UDP socket. Its sender and its receiver, each used by
// one goroutine at a time, share nothing but the descriptor and the counters.
type socket struct {
	conn    *net.UDPConn // closed where raw is another descriptor
	raw     conduit
	local   netip.AddrPort // the zone, if any, included
	caps    link.Caps
	offload offload
	merges  atomic.Bool // since startMerging
	tap     link.Tap    // or nil
	tx      sender
	rx      receiver
	groups  groups
	ways    ways
	errors  errorQueue
	count   counters
	refused refusals
	waits   atomic.Uint64 // how often Wait returned
}

func newLink(conn *net.UDPConn, got granted) (*socket, error) {
	local := conn.LocalAddr().(*net.UDPAddr).AddrPort()
	local = netip.AddrPortFrom(local.Addr().Unmap(), local.Port())
	name, index, mtu := holder(local.Addr())
	raw, err := detach(conn)
	if err != nil {
		return nil, err
	}
	s := &socket{conn: conn, raw: raw, local: local, offload: got.offload, caps: link.Caps{
		Local:      local,
		MTU:        payloadMTU(mtu, local.Addr().Is4()),
		Longest:    slotSize,
		BatchSize:  batchSize,
		NetDev:     name,
		IfIndex:    index,
		RecvBuffer: got.recv,
		Window:     got.window(),
	}}
	if local.Addr().Is6() {
		_ = raw.Control(func(fd uintptr) { setGroupInterface(fd, index) })
	}
	if got.offload.gro {
		startMerging()
		s.merges.Store(true)
		s.caps.Longest = payloadMTU(1<<16-1, local.Addr().Is4())
	}
	s.tx.init(s)
	s.rx.init(s)
	s.errors.init(s)
	return s, nil
}

func (s *socket) Caps() link.Caps { return s.caps }

// SetTap implements link.Link.
func (s *socket) SetTap(t link.Tap) { s.tap = t }

// SetUndelivered implements link.Link. Only Linux reports anything.
func (s *socket) SetUndelivered(f func(link.Undelivered)) { s.errors.report = f }

// PathMTU implements link.Link.
func (s *socket) PathMTU(peer netip.Addr) (int, error) {
	peer = peer.Unmap()
	mtu, err := s.ways.mtu(peer, time.Now(), func() (int, error) {
		return routeMTU(s.local.Addr(), peer, s.caps.IfIndex)
	})
	if err != nil {
		return 0, err
	}
	return min(payloadMTU(mtu, s.local.Addr().Is4()), s.caps.MTU), nil
}

// Close closes the socket; a Send or Wait that blocks ends with net.ErrClosed.
func (s *socket) Close() error {
	s.groups.close()
	err := s.raw.Close()
	if s.merges.Swap(false) {
		stopMerging()
	}
	return err
}

// Send finishes each packet with its pad and ICRC and sends them in order.
func (s *socket) Send(batch []link.Packet) error {
	for len(batch) > 0 {
		n := min(len(batch), batchSize)
		if err := s.tx.send(batch[:n]); err != nil {
			return err
		}
		batch = batch[n:]
	}
	return nil
}
