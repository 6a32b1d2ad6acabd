package link

import (
	"fmt"
	"net/netip"
	"syscall"
)

// Grouper is a Link that receives what is sent to IP multicast groups, at the
// UDP port of its own. Such a packet says its Group. A packet whose Peer is a
// group reaches every link that has joined it there, the sender's too.
type Grouper interface {
	Link
	// Join begins to receive what is sent to a group. Joining twice is once.
	Join(group netip.Addr) error
	// Leave ends it. Packets that came before may still be handed out.
	Leave(group netip.Addr)
}

// Join joins a group, EOPNOTSUPP where l knows none.
func Join(l Link, group netip.Addr) error {
	if g, ok := l.(Grouper); ok {
		return g.Join(group)
	}
	return fmt.Errorf("link: %v has no multicast groups: %w", l.Caps().Local, syscall.EOPNOTSUPP)
}

// Leave leaves a group.
func Leave(l Link, group netip.Addr) {
	if g, ok := l.(Grouper); ok {
		g.Leave(group)
	}
}
