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
	ICRC      atomic.Uint64 `name:"drop_icrc"`      // received with an ICRC that no identification explains, or none that the peer was seen to use
	Malformed atomic.Uint64 `name:"drop_malformed"` // no RoCEv2 packet
	Solved    atomic.Uint64 `name:"icrc_solved"`    // received with an identification that had to be solved for
	// Overflow counts buffers, of one packet or of several from one send, that
	// the kernel (Linux) dropped because the socket's was full, or the queue of
	// groups: the program is late, or too many send at once.
	Overflow atomic.Uint64 `name:"drop_rcvbuf"`

	GSOSends     atomic.Uint64 `name:"gso_sends"`     // that carried several packets
	GSOPackets   atomic.Uint64 `name:"gso_pkts"`      // in them
	GSORefused   atomic.Uint64 `name:"gso_refused"`   // of the sends, those that the kernel did not take; sent again singly
	GSOReduced   atomic.Uint64 `name:"gso_reduced"`   // how often that turned GSO off, for as long as the link lives
	GSOSuspended atomic.Uint64 `name:"gso_suspended"` // how often losses took GSO from a peer for a while
	GROReads     atomic.Uint64 `name:"gro_reads"`     // messages that were received with several packets
	GROPackets   atomic.Uint64 `name:"gro_pkts"`      // in them
}

// refusals are packets that the system refused to send, by errno; drop_send is
// their sum.
type refusals struct {
	TooLong     atomic.Uint64 `name:"drop_send_msgsize"` // longer than the route to the peer carries
	Unreachable atomic.Uint64 `name:"drop_send_unreach"`
	Refused     atomic.Uint64 `name:"drop_send_refused"` // came back: nothing has the peer's UDP port
	NoBuffer    atomic.Uint64 `name:"drop_send_nobufs"`  // the interface's queue had no room
	Denied      atomic.Uint64 `name:"drop_send_denied"`
	Other       atomic.Uint64 `name:"drop_send_other"`
}

// drop counts a packet that the system refused to send.
func (s *socket) drop(err error) {
	c := &s.refused.Other
	switch {
	case errors.Is(err, syscall.EMSGSIZE):
		c = &s.refused.TooLong
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETDOWN),
		errors.Is(err, syscall.EINVAL), errors.Is(err, syscall.EADDRNOTAVAIL), errors.Is(err, syscall.EAFNOSUPPORT):
		// EINVAL: Linux's answer to a destination that the bound source
		// address cannot reach, such as 10.0.0.1 from 127.0.0.1.
		c = &s.refused.Unreachable
	case errors.Is(err, syscall.ECONNREFUSED):
		c = &s.refused.Refused
	case errors.Is(err, syscall.ENOBUFS), errors.Is(err, syscall.ENOMEM):
		c = &s.refused.NoBuffer
	case errors.Is(err, syscall.EPERM), errors.Is(err, syscall.EACCES):
		c = &s.refused.Denied
	}
	c.Add(1)
}

// Counters implements link.Link.
func (s *socket) Counters(dst []link.Counter) []link.Counter {
	_ = s.raw.Control(func(fd uintptr) { // the last count, once it is closed
		n, _, _ := overflows(fd)
		s.count.Overflow.Store(uint64(n) + s.groups.dropped.Load())
	})
	dst = link.AppendCounters(dst, &s.count)
	sum := link.Counter{Name: "drop_send"}
	begin := len(dst)
	dst = link.AppendCounters(dst, &s.refused)
	for _, c := range dst[begin:] {
		sum.Value += c.Value
	}
	return append(dst, sum)
}
