//go:build linux && !udpportable

package udp

import (
	"encoding/binary"
	"net/netip"
	"sync/atomic"
	"syscall"

	"github.com/rdmashim/rdmashim/rnic/link"

	"golang.org/x/sys/unix"
)

const (
	// errorBatch is how many entries of the error queue one call reads.
	errorBatch = 8
	// errorReads bounds the calls of one drain, so that a sender of ICMP
	// messages does not keep the receiver.
	errorReads = 8
	// quoteLen is how many bytes of a returned packet are read.
	quoteLen = 128
	// pendingTries is how often a call is repeated that failed with an error
	// which may be a pending one: another may become pending meanwhile.
	pendingTries = 2
)

// errorQueue is the socket's error queue (IP_RECVERR, ip(7)): ICMP messages
// about packets that were sent, each with the beginning of its packet. Linux
// takes only messages that quote a datagram of this socket's address and port.
//
// The kernel also lets a later send or receive fail with a message's errno.
// That call moved nothing and is made again. Entries take room of the receive
// buffer, so that they are read as soon as there may be some:
//
//   - a receive fails with such an errno;
//   - a send does, or moves less than it was given (due);
//   - a Wait ended, and there is no datagram.
type errorQueue struct {
	s      *socket
	report func(link.Undelivered) // or nil
	due    atomic.Bool            // the sender has taken an error that may have an entry

	hdr [errorBatch]unix.Mmsghdr
	env [errorBatch]envelope
	iov [errorBatch]unix.Iovec
	buf [errorBatch][quoteLen]byte
}

func (q *errorQueue) init(s *socket) {
	q.s = s
	for i := range q.hdr {
		point(&q.iov[i], q.buf[i][:])
		h := &q.hdr[i].Hdr
		h.Iov = &q.iov[i]
		h.SetIovlen(1)
		q.env[i].attach(h)
	}
	_ = s.raw.Control(func(fd uintptr) { // without it silence is all that is known
		if s.local.Addr().Is4() {
			_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_RECVERR, 1)
		} else {
			_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_RECVERR, 1)
		}
	})
}

// drain reads the queue. The receiver's goroutine calls it.
func (q *errorQueue) drain(fd uintptr) {
	q.due.Store(false)
	for range errorReads {
		for i := range q.hdr {
			h := &q.hdr[i].Hdr
			h.Namelen = unix.SizeofSockaddrInet6
			q.env[i].wantOptions(h)
		}
		n, errno := recvmmsg(fd, q.hdr[:], unix.MSG_ERRQUEUE)
		if errno != 0 {
			return // EAGAIN: it is empty
		}
		for i := range n {
			q.take(&q.hdr[i], &q.env[i], q.buf[i][:])
		}
		if n < errorBatch {
			return
		}
	}
	q.due.Store(true) // there may be more
}

// take counts and reports an entry. Those of the local system are left out: the
// send that made them has failed, too.
func (q *errorQueue) take(m *unix.Mmsghdr, e *envelope, buf []byte) {
	errno, icmp := e.errno(&m.Hdr)
	if !icmp {
		return
	}
	q.s.drop(errno)
	if why := icmpReason(errno); why != 0 && q.report != nil {
		q.report(link.Undelivered{Peer: getAddr(&e.addr), Why: why, Head: buf[:min(int(m.Len), len(buf))]})
	}
}

// extendedError decodes a struct sock_extended_err: the errno, and whether an
// ICMP message brought it.
func extendedError(b []byte) (errno unix.Errno, icmp bool) {
	if len(b) < 16 {
		return 0, false
	}
	origin := b[4]
	return unix.Errno(binary.NativeEndian.Uint32(b)), origin == unix.SO_EE_ORIGIN_ICMP || origin == unix.SO_EE_ORIGIN_ICMP6
}

// isPending holds for the errnos into which Linux turns ICMP messages (icmp.c:
// icmp_err_convert, icmpv6.c: icmpv6_err_convert) and for those of a queued
// local error. A call may fail with one of them because of an earlier packet.
func isPending(errno unix.Errno) bool {
	switch errno {
	case unix.ECONNREFUSED, unix.EHOSTUNREACH, unix.ENETUNREACH, unix.ENETDOWN, unix.EMSGSIZE, unix.EPROTO, unix.ECONNRESET,
		unix.ENOPROTOOPT, unix.EOPNOTSUPP, unix.EHOSTDOWN, unix.ENONET, unix.EACCES:
		return true
	}
	return false
}

// icmpReason is what an ICMP message's errno says of its packet, as a TCP
// connect would end for it; 0 if that is no reason to give a peer up.
func icmpReason(errno unix.Errno) syscall.Errno {
	switch errno {
	case unix.ECONNREFUSED, unix.ENOPROTOOPT: // port, or protocol
		return syscall.ECONNREFUSED
	case unix.ENETUNREACH:
		return syscall.ENETUNREACH
	case unix.EHOSTUNREACH, unix.EHOSTDOWN, unix.ENONET, unix.EACCES: // EACCES: prohibited on the way (ICMPv6)
		return syscall.EHOSTUNREACH
	}
	return 0
}

// sendReason is what the errno of a send says of its packet, or 0.
func sendReason(errno unix.Errno) syscall.Errno {
	switch errno {
	case unix.ENETUNREACH, unix.ENETDOWN, unix.EINVAL: // EINVAL: see socket.drop
		return syscall.ENETUNREACH
	case unix.EHOSTUNREACH:
		return syscall.EHOSTUNREACH
	case unix.EPERM, unix.EACCES: // a packet filter of this host
		return syscall.EPERM
	}
	return 0
}

// refused reports a packet that the system refused to send.
func (q *errorQueue) refused(peer netip.AddrPort, errno unix.Errno, head []byte) {
	if why := sendReason(errno); why != 0 && q.report != nil {
		q.report(link.Undelivered{Peer: peer, Why: why, Head: head})
	}
}
