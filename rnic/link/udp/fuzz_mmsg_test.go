//go:build linux && !udpportable

package udp

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tests/must"
)

// FuzzBatches takes the kernel's place between a sender and a receiver. The
// input is a program: it says which packets a batch has, which sends the kernel
// refuses and how, the datagrams' fates, how they are merged into messages (as
// GRO does it, or at any length), where messages are cut off, and how many
// packets the receiver has room for.
//
// The sender hands over all its packets, once, in order, in messages that a
// kernel takes. The receiver hands out all untouched datagrams, once, in order.
// Of the other datagrams it hands out those whose ICRC is right, and counts the
// rest.
func FuzzBatches(f *testing.F) {
	four := newStage("10.0.0.1:4791", "10.0.0.2:4791", "[fd00::2]:4791")
	six := newStage("[fd00::1]:4791", "[fd00::2]:4791", "10.0.0.2:4791")
	f.Add([]byte{40, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1})
	f.Add([]byte{1, 12, 0, 90, 0, 90, 0, 90, 0, 90, 0, 20})
	f.Add([]byte{0, 200, 9, 9, 9, 9, 9, 9, 9, 9, 0, 1, 2, 3, 250, 100, 250, 241, 4, 242, 9, 243, 7, 244, 1, 2, 3, 4})
	f.Add([]byte{0, 3, 0, 0, 0xfe, 0xfe, 0xfe})           // refused three times because of an earlier packet
	f.Add([]byte{0, 3, 1, 0, 0, 0xfb, 0, 0, 0, 0})        // a GSO send that the interface's queue drops
	f.Add([]byte{0, 12, 3, 0, 0xe0, 1, 2, 0, 0xe1, 0, 9}) // packets that lie one behind the other, two changed
	f.Add(bytes.Repeat([]byte{0xf1, 3, 0x90, 0, 0x55}, 60))
	f.Fuzz(func(t *testing.T, in []byte) {
		s := four
		if len(in) > 0 && in[0]&1 != 0 {
			s = six
		}
		s.reset(t, in)
		for s.draw(); len(s.in) > 0; {
			s.send()
			s.meddle()
			s.receive()
		}
	})
}

// stage is a sender and a receiver on sockets that have no descriptor, and the
// kernel that a program makes for them.
type stage struct {
	a, b  *socket
	alien netip.AddrPort // of the other family

	t  *testing.T
	in []byte // the rest of the program

	packets  int           // made so far
	arena    []byte        // in which packets lie one behind the other
	leaving  []link.Packet // the packets that the sender is to hand over
	flown    []flown       // the packets that it did
	refused  uint64        // packets that the kernel did not take
	pending  int           // errors in a row about a message sent before
	messages []incoming    // the messages for the receiver to read
	pieces   []piece       // the pieces that they are to become
}

// flown is a datagram on its way, a packet's place in its message included.
type flown struct {
	data []byte
	id   uint16
	good bool // as the sender made it
}

// incoming is a message for recvmmsg to bring.
type incoming struct {
	data    []byte
	from    netip.AddrPort
	segment int32 // UDP_GRO's; 0: none
	cutOff  bool
}

// piece is a datagram that a message is to be cut into.
type piece struct {
	data     []byte
	from     netip.AddrPort
	good     bool // it must be handed out
	hopeless bool // it must not
}

func newStage(a, b, alien string) *stage {
	return &stage{a: offline(a), b: offline(b), alien: netip.MustParseAddrPort(alien)}
}

// offline is a socket with both offloads and no descriptor.
func offline(at string) *socket {
	s := &socket{raw: nowhere{}, local: netip.MustParseAddrPort(at), offload: offload{gso: true, gro: true}, caps: link.Caps{Longest: slotSize}}
	s.tx.init(s)
	s.rx.init(s)
	return s
}

// nowhere is a conduit that calls at once.
type nowhere struct{}

func (nowhere) Control(f func(fd uintptr)) error { f(0); return nil }
func (nowhere) Write(f func(fd uintptr) bool) error {
	for !f(0) { // its buffer was full, and has room again
	}
	return nil
}
func (nowhere) Wait() error               { return nil }
func (nowhere) Interrupt()                {}
func (nowhere) Sleep(time.Duration) error { return nil }
func (nowhere) Doze(time.Duration)        {}
func (nowhere) Close() error              { return nil }

// reset makes the stage as new; its memory stays, for speed.
func (s *stage) reset(t *testing.T, in []byte) {
	s.t, s.in, s.packets, s.pending = t, in, 0, 0
	s.a.count, s.b.count = counters{}, counters{}
	s.a.tx.peers, s.a.tx.limit = peers{}, maxSegments
	r := &s.b.rx
	r.peers, r.dry, r.open, r.got, r.cur = peers{}, false, false, r.most, r.most
	s.a.tx.call, r.try = s.sendmmsg, s.recvmmsg
}

// draw takes a byte of the program, 0 at its end.
func (s *stage) draw() int {
	if len(s.in) == 0 {
		return 0
	}
	b := s.in[0]
	s.in = s.in[1:]
	return int(b)
}

// lengths of payloads.
var lengths = [8]int{0, 1, 4, 100, 256, 1021, 1024, 4096}

// send makes a batch and sends it.
func (s *stage) send() {
	var batch []link.Packet
	s.leaving, s.flown = s.leaving[:0], nil
	c := s.draw()
	size, framed := lengths[c%8], c&8 != 0
	for n := s.draw()%96 + 1; len(batch) < n; {
		p := link.Packet{Peer: s.b.local, Head: make([]byte, wire.BTHLen, 64), Payload: make([]byte, size)}
		switch c := s.draw(); {
		case c < 0xc0:
		case c < 0xd0:
			p.Payload = p.Payload[:size*(c&15)/16]
		case c < 0xd8:
			size = lengths[c&7]
			p.Payload = make([]byte, size)
		case c < 0xe0:
			p.Alone = true
		case c < 0xe8:
			p.Flip = uint32(s.draw())<<8 | uint32(s.draw()) + 1
		case c < 0xf0:
			p.Head = p.Head[:wire.BTHLen+4*(c&7)]
		case c < 0xf8:
			p.Peer = s.alien
		default:
			p.Head = p.Head[:c&7]
		}
		binary.BigEndian.PutUint32(p.Head[8:12], uint32(s.packets))
		s.packets++
		for i := range p.Payload {
			p.Payload[i] = byte(s.packets + i)
		}
		if framed {
			s.frame(&p)
		}
		batch = append(batch, p)
		if len(p.Head) >= wire.BTHLen && p.Peer == s.b.local {
			s.leaving = append(s.leaving, p)
		}
	}
	lost := s.lost()
	s.refused = 0
	require.NoError(s.t, s.a.Send(batch))
	require.Empty(s.t, s.leaving, "packets that were never handed over")
	for i := range batch {
		if p := &batch[i]; len(p.Head) < wire.BTHLen || p.Peer != s.b.local {
			s.refused++
		}
	}
	require.Equal(s.t, s.refused, s.lost()-lost, "what did not leave is counted")
}

// frame lays a packet behind the one before it, with room for its trailer.
func (s *stage) frame(p *link.Packet) {
	head, n := len(p.Head), len(p.Head)+len(p.Payload)
	if at := len(s.arena); at+n+maxFrameTail > cap(s.arena) {
		s.arena = make([]byte, 0, 1<<18)
	}
	at := len(s.arena)
	s.arena = append(append(s.arena, p.Head...), p.Payload...)
	s.arena = append(s.arena, make([]byte, int(wire.PadLen(len(p.Payload)))+wire.ICRCLen)...)
	p.Frame = s.arena[at:]
	p.Head, p.Payload = p.Frame[:head:head], p.Frame[head:n:n]
}

// maxFrameTail is the most room for pad and ICRC.
const maxFrameTail = 3 + wire.ICRCLen

// lost is how many packets the sender says did not leave.
func (s *stage) lost() uint64 {
	return counter(s.t, s.a, "drop_malformed") + counter(s.t, s.a, "drop_send")
}

// flow is that of the sender's packets.
func (s *stage) flow() wire.Flow {
	return must.Get(wire.NewFlow(s.a.local, s.b.local, true))(s.t)
}

// sendmmsg is the kernel's: it takes some of the messages.
func (s *stage) sendmmsg(_ uintptr, msgs []unix.Mmsghdr) (int, unix.Errno) {
	t := &s.a.tx
	for i := range msgs {
		h, e := &msgs[i].Hdr, &t.env[t.next+i]
		require.Equal(s.t, s.b.local, getAddr(&e.addr))
		var data []byte
		for _, v := range unsafe.Slice(h.Iov, h.Iovlen) {
			data = append(data, unsafe.Slice(v.Base, v.Len)...)
		}
		size := len(data)
		if h.Controllen > 0 {
			size = int(binary.NativeEndian.Uint16(e.control.data[:]))
			require.Greater(s.t, len(data), size)
			require.LessOrEqual(s.t, len(data), t.room)
			require.LessOrEqual(s.t, (len(data)+size-1)/size, maxSegments)
		}
		parts := slices.Collect(slices.Chunk(data, size))
		switch c := s.draw(); {
		case c < 0xf0: // taken
		case c < 0xf4 && i == 0:
			return 0, [...]unix.Errno{unix.EAGAIN, unix.EINTR, unix.EAGAIN, unix.EINTR}[c&3]
		case c < 0xf8:
			if i > 0 {
				return i, 0
			}
		case i == 0:
			errno := [...]unix.Errno{unix.EIO, unix.EINVAL, unix.EMSGSIZE, unix.ENOBUFS, unix.EPERM, unix.EHOSTUNREACH, unix.ECONNREFUSED, unix.ENETDOWN}[c&7]
			switch {
			case isPending(errno) && s.pending < pendingTries:
				s.pending++ // about a message sent before: this one stays
				return 0, errno
			case errno == unix.ENOBUFS || len(parts) == 1:
				s.leaving = s.leaving[len(parts):]
				s.refused += uint64(len(parts))
			}
			s.pending = 0
			return 0, errno
		}
		s.pending = 0
		for id, part := range parts {
			require.NotEmpty(s.t, s.leaving, "more than was in the batch")
			want := &s.leaving[0]
			s.leaving = s.leaving[1:]
			whole := want.AppendWhole(nil, s.flow(), uint16(id))
			require.True(s.t, bytes.Equal(whole, part), "another packet, or another order")
			good, end := want.Flip == 0, len(part)-wire.ICRCLen
			if good {
				right := binary.LittleEndian.Uint32(part[end:])
				require.Equal(s.t, right, s.flow().ICRC(uint16(id), part[:end]))
			}
			s.flown = append(s.flown, flown{part, uint16(id), good})
		}
	}
	return len(msgs), 0
}

// meddle decides what becomes of datagrams, and makes messages of them.
func (s *stage) meddle() {
	var arriving []flown
	for _, d := range s.flown {
		d.data = bytes.Clone(d.data)
		switch c := s.draw(); {
		case c < 0xe0:
		case c < 0xe8:
			continue // lost
		case c < 0xec:
			arriving = append(arriving, d)
		case c < 0xf0:
			d.data, d.good = d.data[:len(d.data)*(c&3)/4], false
		case c < 0xf4:
			d.data[s.draw()%len(d.data)] ^= 1 << (c & 3)
			d.good = false
		case c < 0xf8:
			d.data = append(d.data, make([]byte, s.draw())...)
			d.good = false
		default: // a stranger's
			n := min(s.draw(), len(s.in))
			d.data, s.in, d.good = bytes.Clone(s.in[:n]), s.in[n:], false
		}
		arriving = append(arriving, d)
	}
	s.messages, s.pieces = nil, nil
	for len(arriving) > 0 {
		m := incoming{from: s.a.local}
		c := s.draw()
		n := 1
		for ; n < min(c&63+1, len(arriving)) && len(arriving[n].data) <= len(arriving[0].data) && len(arriving[n-1].data) == len(arriving[0].data); n++ {
		}
		for _, d := range arriving[:n] {
			m.data = append(m.data, d.data...)
		}
		m.segment = int32(len(arriving[0].data))
		touched := false
		switch {
		case c < 0xc0 && n == 1 && c&64 != 0:
			m.segment = 0
		case c < 0xc0:
		case c < 0xd0: // as no kernel merges
			m.segment, touched = int32(s.draw()<<8|s.draw()), true
		case c < 0xd4:
			m.segment, touched = -int32(s.draw()), true
		case c < 0xe0:
			m.cutOff = true
			m.data = m.data[:len(m.data)*(c&15)/16]
		case c < 0xe4:
			m.from, touched = s.alien, true
		case c < 0xe8:
			m.from, touched = netip.AddrPort{}, true
		case c < 0xec:
			m.from, touched = netip.AddrPortFrom(s.a.local.Addr(), uint16(c)), true
		}
		if len(m.data) > s.b.rx.slot {
			m.data, m.cutOff = m.data[:s.b.rx.slot], true
		}
		s.cut(m, arriving[:n], touched)
		s.messages = append(s.messages, m)
		arriving = arriving[n:]
	}
}

// cut notes the pieces of a message.
func (s *stage) cut(m incoming, of []flown, touched bool) {
	size := len(m.data)
	if m.segment > 0 && int(m.segment) < size {
		size = int(m.segment)
	}
	parts := [][]byte{nil} // an empty message is an empty datagram
	if size > 0 {
		parts = slices.Collect(slices.Chunk(m.data, size))
	}
	for i, part := range parts {
		p := piece{data: part, from: m.from, good: !touched && i < len(of) && of[i].good && len(part) == len(of[i].data)}
		if len(part) < wire.BTHLen+wire.ICRCLen || len(part) > slotSize || m.cutOff && i == len(parts)-1 || m.from.Addr().Is4() != s.b.local.Addr().Is4() || !m.from.IsValid() {
			p.good, p.hopeless = false, true
		}
		s.pieces = append(s.pieces, p)
	}
}

// recvmmsg is the kernel's: it brings some of the messages, or an error about
// something sent before.
func (s *stage) recvmmsg(uintptr) {
	r := &s.b.rx
	n := min(len(s.messages), r.most)
	if c := s.draw(); c >= 0xc0 {
		n = min(n, c&7+1)
	}
	for i, m := range s.messages[:n] {
		h, e := &r.hdr[i], &r.env[i]
		require.EqualValues(s.t, unix.SizeofSockaddrInet6, h.Hdr.Namelen)
		h.Len = uint32(copy(r.buf[i*r.slot:][:r.slot], m.data))
		h.Hdr.Flags = 0
		if m.cutOff {
			h.Hdr.Flags = unix.MSG_TRUNC
		}
		e.addr = unix.RawSockaddrInet6{}
		if m.from.IsValid() {
			h.Hdr.Namelen = putAddr(&e.addr, m.from, 0)
		}
		h.Hdr.SetControllen(0)
		if m.segment != 0 {
			e.control.hdr.Level, e.control.hdr.Type = unix.SOL_UDP, unix.UDP_GRO
			e.control.hdr.SetLen(unix.CmsgLen(4))
			binary.NativeEndian.PutUint32(e.control.data[:], uint32(m.segment))
			h.Hdr.SetControllen(unix.CmsgSpace(4))
		}
	}
	r.got = n
	s.messages = s.messages[n:]
}

// receive takes the datagrams that came and compares them with those due.
func (s *stage) receive() {
	c := &s.b.count
	before := c.ICRC.Load() + c.Malformed.Load()
	at, drops := 0, uint64(0)
	batch := make([]link.Packet, 1+s.draw()%64)
	for idle := 0; idle < 2; {
		n := must.Get(s.b.Recv(batch))(s.t)
		if n == 0 && len(s.messages) == 0 {
			idle++
		}
		for _, p := range batch[:n] {
			for ; ; at++ {
				require.Less(s.t, at, len(s.pieces), "handed out, though it never came so, or twice: % x", p.Head)
				want := s.pieces[at]
				if p.Peer == want.from && s.intact(want) && bytes.Equal(p.Head, want.data[:len(want.data)-wire.ICRCLen]) {
					break
				}
				require.False(s.t, want.good, "a whole datagram was not handed out: % x", want.data)
				drops++
			}
			at++
		}
	}
	for ; at < len(s.pieces); at++ {
		require.False(s.t, s.pieces[at].good, "a whole datagram was not handed out: % x", s.pieces[at].data)
		drops++
	}
	require.Equal(s.t, drops, c.ICRC.Load()+c.Malformed.Load()-before, "dropped and counted")
}

// intact reports whether a piece may be handed out: its ICRC is right.
func (s *stage) intact(p piece) bool {
	if p.hopeless {
		return false
	}
	flow := must.Get(wire.NewFlow(p.from, s.b.local, true))(s.t)
	_, ok := flow.Verify(p.data, 0)
	return ok
}
