package udp

import (
	"errors"
	"net"
	"net/netip"
	"sync/atomic"
	"syscall"

	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

const (
	// batchSize is how many datagrams one system call moves.
	batchSize = 64
	// slotSize holds the largest packet: 4096 bytes of payload and at most
	// 72 of headers, pad and ICRC. A longer datagram is none of RoCEv2's.
	slotSize = 4096 + 128
)

// socket is a link on a UDP socket. Its sender and its receiver, each used by
// one goroutine at a time, share nothing but the descriptor and the counters.
type socket struct {
	conn  *net.UDPConn
	raw   syscall.RawConn
	local netip.AddrPort // the zone, if any, included
	caps  link.Caps
	tap   link.Tap // or nil
	tx    sender
	rx    receiver
	count counters
}

// counters of what did not get through, and of ICRCs that needed solving.
type counters struct {
	icrc, malformed, solved                                atomic.Uint64
	tooLong, unreachable, refused, noBuffer, denied, other atomic.Uint64
}

func newLink(conn *net.UDPConn, got granted) (*socket, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	local := conn.LocalAddr().(*net.UDPAddr).AddrPort()
	local = netip.AddrPortFrom(local.Addr().Unmap(), local.Port())
	name, index, mtu := holder(local.Addr())
	s := &socket{conn: conn, raw: raw, local: local, caps: link.Caps{
		Local:      local,
		MTU:        payloadMTU(mtu, local.Addr().Is4()),
		BatchSize:  batchSize,
		NetDev:     name,
		IfIndex:    index,
		SendBuffer: got.send,
		RecvBuffer: got.recv,
	}}
	s.tx.init(s)
	s.rx.init(s)
	return s, nil
}

func (s *socket) Caps() link.Caps { return s.caps }

// SetTap implements link.Tappable.
func (s *socket) SetTap(t link.Tap) { s.tap = t }

// Close closes the socket; a Send or Wait that blocks ends with net.ErrClosed.
func (s *socket) Close() error {
	err := s.conn.Close()
	s.rx.close()
	if err != nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// Send gathers each packet with its pad and ICRC and sends them in order.
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

// show lets the tap, if there is one, see a datagram that leaves.
func (s *socket) show(to netip.AddrPort, head, payload, tail []byte) {
	if s.tap != nil {
		s.tap.Datagram(link.Outbound, s.local, to, 0, head, payload, tail)
	}
}

// Recv hands out the datagrams that are there and whose ICRC is right.
func (s *socket) Recv(batch []link.Packet) (int, error) {
	if len(batch) == 0 {
		return 0, nil
	}
	for {
		n, err := s.rx.recv(min(len(batch), batchSize))
		if n == 0 || err != nil {
			return 0, err
		}
		good := 0
		for i := range n {
			if s.check(i, &batch[good]) {
				good++
			}
		}
		if good > 0 {
			return good, nil
		}
	}
}

// Wait implements link.Link.
func (s *socket) Wait() error { return s.rx.wait() }

// check verifies a received datagram and describes it in pkt.
func (s *socket) check(slot int, pkt *link.Packet) bool {
	data, from, whole := s.rx.datagram(slot)
	if !whole || len(data) < wire.BTHLen+wire.ICRCLen {
		s.count.malformed.Add(1)
		return false
	}
	flow, ok := s.rx.flows.find(from, s.local)
	if !ok {
		s.count.malformed.Add(1)
		return false
	}
	id, ok := flow.Verify(data)
	if s.tap != nil {
		s.tap.Datagram(link.Inbound, from, s.local, id, data, nil, nil)
	}
	if !ok {
		s.count.icrc.Add(1)
		return false
	}
	if id != 0 {
		s.count.solved.Add(1)
	}
	*pkt = link.Packet{Peer: from, Head: data[: len(data)-wire.ICRCLen : len(data)-wire.ICRCLen]}
	return true
}

// drop counts a packet that the system refused to send.
func (s *socket) drop(err error) {
	c := &s.count.other
	switch {
	case errors.Is(err, syscall.EMSGSIZE):
		c = &s.count.tooLong
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETDOWN),
		errors.Is(err, syscall.EINVAL), errors.Is(err, syscall.EADDRNOTAVAIL), errors.Is(err, syscall.EAFNOSUPPORT):
		// EINVAL: Linux's answer to a destination that the bound source
		// address cannot reach, such as 10.0.0.1 from 127.0.0.1.
		c = &s.count.unreachable
	case errors.Is(err, syscall.ECONNREFUSED):
		c = &s.count.refused
	case errors.Is(err, syscall.ENOBUFS), errors.Is(err, syscall.ENOMEM):
		c = &s.count.noBuffer
	case errors.Is(err, syscall.EPERM), errors.Is(err, syscall.EACCES):
		c = &s.count.denied
	}
	c.Add(1)
}

// Counters implements link.Link.
func (s *socket) Counters(dst []link.Counter) []link.Counter {
	c := &s.count
	parts := []link.Counter{
		{Name: "drop_send_msgsize", Value: c.tooLong.Load()},
		{Name: "drop_send_unreach", Value: c.unreachable.Load()},
		{Name: "drop_send_refused", Value: c.refused.Load()},
		{Name: "drop_send_nobufs", Value: c.noBuffer.Load()},
		{Name: "drop_send_denied", Value: c.denied.Load()},
		{Name: "drop_send_other", Value: c.other.Load()},
	}
	var sum uint64
	for _, p := range parts {
		sum += p.Value
	}
	dst = append(dst,
		link.Counter{Name: "drop_icrc", Value: c.icrc.Load()},
		link.Counter{Name: "drop_malformed", Value: c.malformed.Load()},
		link.Counter{Name: "icrc_solved", Value: c.solved.Load()},
		link.Counter{Name: "drop_send", Value: sum},
	)
	return append(dst, parts...)
}
