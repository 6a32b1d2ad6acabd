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
