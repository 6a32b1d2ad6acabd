package link

import "net/netip"

// Tap is shown every datagram of a link as it is on the wire, ICRC included: a
// sent one just before it leaves, below all faults, a received one before it is
// judged. It is called by the goroutines of Send and Recv at the same time,
// must not block, and must not keep the bytes.
type Tap interface {
	// Datagram shows one UDP datagram whose payload is head, payload and tail
	// one after the other; the last two may be empty. id is its IPv4
	// identification, 0 where that is unknown; Don't Fragment is set.
	Datagram(way Way, src, dst netip.AddrPort, id uint16, head, payload, tail []byte)
}

// Way is the direction of a datagram, seen from the link.
type Way uint8

const (
	Inbound  Way = 1
	Outbound Way = 2
)
