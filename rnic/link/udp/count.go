package udp

import (
	"errors"
	"sync/atomic"
	"syscall"

	"github.com/rdmashim/rdmashim/rnic/link"
)

// counters of packets that did not get through, of ICRCs that needed solving,
// and of how packets share system calls.
type counters struct {
	icrc, malformed, solved, overflow                      atomic.Uint64
	tooLong, unreachable, refused, noBuffer, denied, other atomic.Uint64

	gsoSends, gsoPackets, gsoRefused, gsoReduced, gsoSuspended atomic.Uint64
	groReads, groPackets                                       atomic.Uint64
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
//
//	drop_send_msgsize  packets longer than the route to the peer carries
//	drop_send_refused  packets that came back: nothing has the peer's UDP port
//	drop_send_nobufs   packets that the interface's queue had no room for
//	drop_send_…        others that the system refused, by errno; drop_send is their sum
//	drop_rcvbuf        (Linux) buffers, of one packet or of several from one send, that
//	                   the kernel dropped because the socket's was full: the
//	                   program is late, or too many send at once
//	drop_icrc          received with an ICRC that no identification explains, or
//	                   none that the peer was seen to use
//	drop_malformed     no RoCEv2 packet
//	icrc_solved        received with an identification that had to be solved for
//	gso_sends, _pkts   sends that carried several packets, and those
//	gso_refused        of them, those that the kernel did not take; sent again singly
//	gso_reduced        how often that turned GSO off, for as long as the link lives
//	gso_suspended      how often losses took GSO from a peer for a while
//	gro_reads, _pkts   messages that were received with several packets, and those
func (s *socket) Counters(dst []link.Counter) []link.Counter {
	c := &s.count
	if tellsOverflows {
		_ = s.raw.Control(func(fd uintptr) { // the last count, once it is closed
			if n, _, ok := overflows(fd); ok {
				c.overflow.Store(uint64(n))
			}
		})
		dst = append(dst, link.Counter{Name: "drop_rcvbuf", Value: c.overflow.Load()})
	}
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
	dst = append(dst, parts...)
	return append(dst,
		link.Counter{Name: "gso_sends", Value: c.gsoSends.Load()},
		link.Counter{Name: "gso_pkts", Value: c.gsoPackets.Load()},
		link.Counter{Name: "gso_refused", Value: c.gsoRefused.Load()},
		link.Counter{Name: "gso_reduced", Value: c.gsoReduced.Load()},
		link.Counter{Name: "gso_suspended", Value: c.gsoSuspended.Load()},
		link.Counter{Name: "gro_reads", Value: c.groReads.Load()},
		link.Counter{Name: "gro_pkts", Value: c.groPackets.Load()},
	)
}
