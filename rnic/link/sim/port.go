package sim

import (
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// port is one Link of a network.
type port struct {
	net   *Network
	local netip.AddrPort
	inbox inbox
	lent  []datagram // given out by the last Recv; of the receiving goroutine
	paths map[netip.AddrPort]path
	stage []datagram // of the sending goroutine, reused
	tap   link.Tap   // or nil
	shown []byte     // of the sending goroutine: a packet for the tap
	count counters

	closing sync.Once
	closed  chan struct{}
}

// path is the sender's record of a destination. Ports come and go, so the port
// is looked up each time; only the ICRC's part is kept.
type path struct {
	flow wire.Flow
	ok   bool // false: the other address family
}

// maxPaths bounds the memory of a port that sends to ever new addresses.
const maxPaths = 4096

// datagram is a UDP datagram on its way. buf is the payload, ICRC included.
type datagram struct {
	from  netip.AddrPort
	group netip.Addr
	flow  wire.Flow
	buf   []byte
}

// counters of a port, with the names of rnic/link/udp where the meaning is the
// same.
type counters struct {
	ICRC      atomic.Uint64 `name:"drop_icrc"`
	Malformed atomic.Uint64 `name:"drop_malformed"`
	QueueFull atomic.Uint64 `name:"drop_queue_full"` // at the port whose queue was full, the others where they happened
	NoRoute   atomic.Uint64 `name:"drop_send_unreach"`
	TooLong   atomic.Uint64 `name:"drop_send_msgsize"`
}

func newPort(n *Network, at netip.AddrPort) *port {
	p := &port{
		net:    n,
		local:  at,
		paths:  make(map[netip.AddrPort]path),
		closed: make(chan struct{}),
	}
	p.inbox.init(n.queue)
	return p
}

// Caps implements link.Link.
func (p *port) Caps() link.Caps {
	return link.Caps{Local: p.local, MTU: p.net.mtu, Longest: p.net.mtu, Inside: true, Lossless: true, BatchSize: batchSize}
}

// SetTap implements link.Link.
func (p *port) SetTap(t link.Tap) { p.tap = t }

// Join implements link.Link.
func (p *port) Join(group netip.Addr) error {
	at := netip.AddrPortFrom(wire.Bare(group), p.local.Port())
	p.net.mu.Lock()
	defer p.net.mu.Unlock()
	if p.net.ports[p.local] != p {
		return errClosed("join", p.local)
	}
	if members := p.net.groups[at]; !slices.Contains(members, p) {
		p.net.groups[at] = append(slices.Clone(members), p)
	}
	return nil
}

// Leave implements link.Link.
func (p *port) Leave(group netip.Addr) {
	p.net.mu.Lock()
	defer p.net.mu.Unlock()
	p.net.leaveLocked(p, netip.AddrPortFrom(wire.Bare(group), p.local.Port()))
}

// PathMTU implements link.Link: all ports reach each other alike.
func (p *port) PathMTU(netip.Addr) (int, error) { return p.net.mtu, nil }

// Reach implements link.Link.
func (p *port) Reach(netip.Addr, time.Duration) error { return nil }

// SetUndelivered implements link.Link: a port learns of no packet's fate.
func (p *port) SetUndelivered(func(link.Undelivered)) {}

// Counters implements link.Link.
func (p *port) Counters(dst []link.Counter) []link.Counter {
	return link.AppendCounters(dst, &p.count)
}

// Close implements link.Link. Packets on their way to the port are lost.
func (p *port) Close() error {
	p.closing.Do(func() {
		p.net.remove(p)
		close(p.closed)
	})
	return nil
}

func (p *port) isClosed() bool {
	select {
	case <-p.closed:
		return true
	default:
		return false
	}
}
