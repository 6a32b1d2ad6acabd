//go:build linux && !udpportable

package udp

import (
	"encoding/binary"
	"net/netip"
	"strconv"
	"unsafe"

	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/rnic/wire"

	"golang.org/x/sys/unix"
)

// sender sends up to batchSize packets with one sendmmsg. Its message headers,
// scatter lists and addresses are laid out once; golang.org/x/net's batches
// would allocate an address per message.
type sender struct {
	s     *socket
	flows flows
	zone  uint32 // scope of link-local peers

	hdr  [batchSize]unix.Mmsghdr
	iov  [batchSize][3]unix.Iovec // head, payload, trailer
	addr [batchSize]unix.RawSockaddrInet6
	tail [batchSize]trailer
	flip [batchSize][]byte // whole packets in which a bit is inverted

	next, end int // messages that are to be sent
	try       func(fd uintptr) bool
	err       error
}

func (t *sender) init(s *socket) {
	t.s = s
	t.try = t.sendmmsg
	t.zone = scope(s.caps.IfIndex, s.local.Addr())
}

// send finishes and sends at most batchSize packets.
func (t *sender) send(batch []link.Packet) error {
	t.next, t.end, t.err = 0, 0, nil
	for i := range batch {
		t.add(&batch[i])
	}
	if t.end == 0 {
		return nil
	}
	if err := t.s.raw.Write(t.try); err != nil {
		return err
	}
	return t.err
}

// add finishes one packet into the next message.
func (t *sender) add(p *link.Packet) {
	if len(p.Head) < wire.BTHLen {
		t.s.count.malformed.Add(1)
		return
	}
	flow, ok := t.flows.findTo(t.s.local, p.Peer)
	if !ok {
		t.s.count.unreachable.Add(1)
		return
	}
	i := t.end
	t.end++
	tail := t.tail[i].finish(p, flow)
	iov := &t.iov[i]
	n := 0
	if p.Flip != 0 {
		t.flip[i] = assemble(t.flip[i], p, tail)
		n += set(&iov[n], t.flip[i])
		t.s.show(p.Peer, t.flip[i], nil, nil)
	} else {
		t.s.show(p.Peer, p.Head, p.Payload, tail)
		n += set(&iov[n], p.Head)
		n += set(&iov[n], p.Payload)
		n += set(&iov[n], tail)
	}
	h := &t.hdr[i].Hdr
	h.Iov = &iov[0]
	h.SetIovlen(n)
	h.Name = (*byte)(unsafe.Pointer(&t.addr[i]))
	h.Namelen = putAddr(&t.addr[i], p.Peer, t.zone)
}

// set points v at b, and returns 1, or 0 if b is empty.
func set(v *unix.Iovec, b []byte) int {
	if len(b) == 0 {
		return 0
	}
	v.Base = &b[0]
	v.SetLen(len(b))
	return 1
}

// sendmmsg sends what is left. It returns false when the socket's buffer is
// full: the netpoller calls it again.
func (t *sender) sendmmsg(fd uintptr) bool {
	for t.next < t.end {
		n, _, errno := unix.Syscall6(unix.SYS_SENDMMSG, fd, uintptr(unsafe.Pointer(&t.hdr[t.next])), uintptr(t.end-t.next), 0, 0, 0)
		switch errno {
		case 0:
			t.next += int(n)
		case unix.EAGAIN:
			return false
		case unix.EINTR:
		case unix.EBADF, unix.ENOTSOCK:
			t.err = errno
			return true
		default: // about the first message: the others may have better luck
			t.s.drop(errno)
			t.next++
		}
	}
	return true
}

// receiver receives up to batchSize datagrams with one recvmmsg.
type receiver struct {
	s     *socket
	flows flows

	hdr  [batchSize]unix.Mmsghdr
	iov  [batchSize]unix.Iovec
	addr [batchSize]unix.RawSockaddrInet6
	buf  []byte

	want, got int
	try       func(fd uintptr)
	err       error

	waits int
	ready func(fd uintptr) bool
}

func (r *receiver) init(s *socket) {
	r.s = s
	r.try = r.recvmmsg
	r.ready = r.mayRead
	r.buf = make([]byte, batchSize*slotSize)
	for i := range r.hdr {
		set(&r.iov[i], r.slot(i))
		h := &r.hdr[i].Hdr
		h.Iov = &r.iov[i]
		h.SetIovlen(1)
		h.Name = (*byte)(unsafe.Pointer(&r.addr[i]))
	}
}

func (r *receiver) slot(i int) []byte { return r.buf[i*slotSize:][:slotSize:slotSize] }

// recv returns how many datagrams it took, at most want. It asks by Control,
// because Read is what a Wait may hold at the same time.
func (r *receiver) recv(want int) (int, error) {
	r.want, r.got, r.err = want, 0, nil
	if err := r.s.raw.Control(r.try); err != nil {
		return 0, err
	}
	return r.got, r.err
}

// wait blocks in the netpoller until the socket may have something.
func (r *receiver) wait() error {
	r.waits = 0
	return r.s.raw.Read(r.ready)
}

func (*receiver) close() {} // the netpoller has ended the wait

// mayRead looks at the socket itself the first time, when the netpoller is set
// up to report what comes after, and believes the netpoller the second time.
func (r *receiver) mayRead(fd uintptr) bool {
	if r.waits++; r.waits > 1 {
		return true
	}
	p := [1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(p[:], 0)
	return n != 0 || err != nil
}

func (r *receiver) recvmmsg(fd uintptr) {
	for i := range r.want {
		r.hdr[i].Hdr.Namelen = unix.SizeofSockaddrInet6
	}
	for {
		n, _, errno := unix.Syscall6(unix.SYS_RECVMMSG, fd, uintptr(unsafe.Pointer(&r.hdr[0])), uintptr(r.want), 0, 0, 0)
		switch errno {
		case 0:
			r.got = int(n)
			return
		case unix.EAGAIN:
			return
		case unix.EINTR:
		case unix.ECONNREFUSED, unix.EHOSTUNREACH, unix.ENETUNREACH, unix.ENETDOWN, unix.EMSGSIZE, unix.EPROTO, unix.ECONNRESET:
			// About a packet sent earlier; asking has cleared it.
			r.s.drop(errno)
		default:
			r.err = errno
			return
		}
	}
}

// datagram returns a received datagram and its sender. whole is false when it
// was cut to fit the slot.
func (r *receiver) datagram(i int) (data []byte, from netip.AddrPort, whole bool) {
	h := &r.hdr[i]
	return r.slot(i)[:h.Len], getAddr(&r.addr[i]), h.Hdr.Flags&unix.MSG_TRUNC == 0
}

// putAddr encodes a peer and returns the length of the socket address.
func putAddr(sa *unix.RawSockaddrInet6, peer netip.AddrPort, zone uint32) uint32 {
	a := peer.Addr().Unmap()
	if a.Is4() {
		sa4 := (*unix.RawSockaddrInet4)(unsafe.Pointer(sa))
		*sa4 = unix.RawSockaddrInet4{Family: unix.AF_INET, Port: swap(peer.Port()), Addr: a.As4()}
		return unix.SizeofSockaddrInet4
	}
	*sa = unix.RawSockaddrInet6{Family: unix.AF_INET6, Port: swap(peer.Port()), Addr: a.As16()}
	if a.IsLinkLocalUnicast() {
		sa.Scope_id = zone
	}
	return unix.SizeofSockaddrInet6
}

// getAddr decodes a sender. The zone of a link-local address is left out: a
// link lives on one interface, and GIDs have none.
func getAddr(sa *unix.RawSockaddrInet6) netip.AddrPort {
	switch sa.Family {
	case unix.AF_INET:
		sa4 := (*unix.RawSockaddrInet4)(unsafe.Pointer(sa))
		return netip.AddrPortFrom(netip.AddrFrom4(sa4.Addr), swap(sa4.Port))
	case unix.AF_INET6:
		return netip.AddrPortFrom(netip.AddrFrom16(sa.Addr), swap(sa.Port))
	}
	return netip.AddrPort{}
}

// swap turns a port from the byte order of this machine to that of the network,
// or back.
func swap(port uint16) uint16 {
	var b [2]byte
	binary.NativeEndian.PutUint16(b[:], port)
	return binary.BigEndian.Uint16(b[:])
}

// scope is the interface that a link-local peer is on: the link's own.
func scope(index int, local netip.Addr) uint32 {
	if n, err := strconv.ParseUint(local.Zone(), 10, 32); err == nil {
		return uint32(n)
	}
	return uint32(index)
}
