package link

import (
	"net/netip"
	"time"
)

// Routed is a Link that knows its routes.
type Routed interface {
	Link
	// PathMTU is Caps.MTU for packets to one peer, as far as this machine
	// knows: the route's MTU may be smaller than the interface's. An error
	// says that there is no route.
	PathMTU(peer netip.Addr) (int, error)
	// Reach returns nil if packets can leave for a peer, as far as this machine
	// knows. The errors are those of the kernel's devices
	// (drivers/infiniband/core/addr.c): ENETUNREACH or EHOSTUNREACH without a
	// route by the interface that has the link's address, ENODEV if that is
	// down, ETIMEDOUT if the next hop does not answer within patience; with 0
	// it is not asked. Reach does not block for longer.
	Reach(peer netip.Addr, patience time.Duration) error
}

// PathMTU is l's for packets to a peer, and Caps.MTU where l knows no routes.
func PathMTU(l Link, peer netip.Addr) (int, error) {
	if r, ok := l.(Routed); ok {
		return r.PathMTU(peer)
	}
	return l.Caps().MTU, nil
}

// Reach is l's for packets to a peer, and nil where l knows no routes.
func Reach(l Link, peer netip.Addr, patience time.Duration) error {
	if r, ok := l.(Routed); ok {
		return r.Reach(peer, patience)
	}
	return nil
}
