package link

import (
	"net/netip"
	"syscall"
)

// Undelivered is a packet that has not reached its peer, as the network
// (ICMP) or this host's system says.
type Undelivered struct {
	Peer netip.AddrPort // where it was sent
	// Why is ECONNREFUSED when no socket has the peer's UDP port, EHOSTUNREACH
	// or ENETUNREACH when no way leads to it, EPERM when this host's system
	// does not let the packet leave.
	Why syscall.Errno
	// Head is the packet's beginning, from the BTH on, as much of it as was
	// returned. ICMP is not authenticated: without the secrets that a packet
	// carries, anybody may have made it up.
	Head []byte
}

// Reporter is a Link that learns of packets that were not delivered.
type Reporter interface {
	Link
	// SetUndelivered sets the function that is told of them. It precedes the
	// first Send and Recv, whose goroutines call the function: it must neither
	// block nor keep Head. A packet may be lost without a report.
	SetUndelivered(func(Undelivered))
}

// SetUndelivered sets l's function, if l is a Reporter.
func SetUndelivered(l Link, f func(Undelivered)) {
	if r, ok := l.(Reporter); ok {
		r.SetUndelivered(f)
	}
}
