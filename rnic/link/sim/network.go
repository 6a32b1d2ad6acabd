package sim

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"

	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// batchSize is how many packets one Recv hands out at most.
const batchSize = 64

// Options describe a network. The zero value gives the defaults.
type Options struct {
	// MTU is the largest UDP payload in bytes that passes, ICRC included. 0 has
	// room for a path MTU of 4096: headers of at most 56 bytes (BTH, RETH,
	// immediate …), payload, pad and ICRC.
	MTU int
	// Queue is how many bytes of UDP payload a port holds until they are
	// received; a packet that does not fit is dropped and counted. 0: 4 MiB.
	Queue int
}

// Network is a set of ports, each with an address of its own, that reach each
// other. It needs no closing: when its ports are closed nothing is left.
type Network struct {
	mtu   int
	queue int

	mu     sync.RWMutex
	ports  map[netip.AddrPort]*port   // guarded by mu
	groups map[netip.AddrPort][]*port // guarded by mu: those that have joined, copied on a change
	next   netip.Addr                 // guarded by mu: where the search for a free address begins
}

// NewNetwork makes a network without ports.
func NewNetwork(o Options) *Network {
	return &Network{
		mtu:    cmp.Or(o.MTU, 4096+64),
		queue:  cmp.Or(o.Queue, 4<<20),
		ports:  make(map[netip.AddrPort]*port),
		groups: make(map[netip.AddrPort][]*port),
		next:   firstAddr,
	}
}

// firstAddr is the first address for a link that asks for any. The range
// 198.18.0.0/15 is for benchmarks (RFC 2544) and never routed.
var firstAddr = netip.MustParseAddr("198.18.0.1")

// Attach adds a port at addr. An addr without address (the zero netip.Addr, or
// an unspecified one) takes a free address of the network; port 0 is RoCEv2's
// 4791. An address and port that is taken is an error that Is EADDRINUSE.
func (n *Network) Attach(addr netip.AddrPort) (link.Link, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	at := addr
	if at.Port() == 0 {
		at = netip.AddrPortFrom(at.Addr(), wire.Port)
	}
	at = netip.AddrPortFrom(wire.Bare(at.Addr()), at.Port())
	if !at.IsValid() || at.Addr().IsUnspecified() {
		at = n.freeLocked(at.Port())
	}
	if n.ports[at] != nil {
		return nil, fmt.Errorf("sim: attach %s: another port of this network has this address; "+
			"close it or attach elsewhere: %w", at, syscall.EADDRINUSE)
	}
	p := newPort(n, at)
	n.ports[at] = p
	return p, nil
}

// freeLocked finds an address at which no port is attached.
func (n *Network) freeLocked(udpPort uint16) netip.AddrPort {
	for {
		at := netip.AddrPortFrom(n.next, udpPort)
		n.next = n.next.Next()
		if n.ports[at] == nil {
			return at
		}
	}
}

// find returns the port at an address, nil if there is none.
func (n *Network) find(at netip.AddrPort) *port {
	n.mu.RLock()
	p := n.ports[at]
	n.mu.RUnlock()
	return p
}

// members returns the ports that have joined a group.
func (n *Network) members(group netip.AddrPort) []*port {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.groups[group]
}

func (n *Network) remove(p *port) {
	n.mu.Lock()
	if n.ports[p.local] == p {
		delete(n.ports, p.local)
	}
	for group := range n.groups {
		n.leaveLocked(p, group)
	}
	n.mu.Unlock()
}

func (n *Network) leaveLocked(p *port, group netip.AddrPort) {
	rest := slices.DeleteFunc(slices.Clone(n.groups[group]), func(m *port) bool { return m == p })
	if n.groups[group] = rest; len(rest) == 0 {
		delete(n.groups, group)
	}
}

// errClosed is the error of a closed port.
func errClosed(op string, at netip.AddrPort) error {
	return fmt.Errorf("sim: %s on %s: %w", op, at, net.ErrClosed)
}
