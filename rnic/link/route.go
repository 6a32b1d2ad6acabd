package link

import "net/netip"

// Routed is a Link that knows its routes.
type Routed interface {
	Link
	// PathMTU is Caps.MTU for packets to one peer, as far as this machine
	// knows: the route's MTU may be smaller than the interface's. An error
	// says that there is no route.
	PathMTU(peer netip.Addr) (int, error)
}

// PathMTU is l's for packets to a peer, and Caps.MTU where l knows no routes.
func PathMTU(l Link, peer netip.Addr) (int, error) {
	if r, ok := l.(Routed); ok {
		return r.PathMTU(peer)
	}
	return l.Caps().MTU, nil
}
