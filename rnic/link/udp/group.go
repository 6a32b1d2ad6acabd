package udp

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// groupQueue bounds the packets of groups that wait for Recv.
const groupQueue = 1024

// groups are the multicast groups that a link has joined. Each has a socket of
// its own, bound to the group's address, which other devices of the host may
// bind, too, and a goroutine that checks what comes and queues it for Recv.
type groups struct {
	waiting atomic.Int32 // len(queue)
	dropped atomic.Uint64
	readers sync.WaitGroup

	mu     sync.Mutex
	closed bool                        // guarded by mu
	joined map[netip.Addr]*net.UDPConn // guarded by mu
	queue  []link.Packet               // guarded by mu
}

// Join implements link.Link.
func (s *socket) Join(group netip.Addr) error {
	g := &s.groups
	group = wire.Bare(group)
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.closed:
		return net.ErrClosed
	case g.joined[group] != nil:
		return nil
	case !group.IsMulticast() || group.Is4() != s.local.Addr().Is4():
		return fmt.Errorf("udp: join %v on %v: not a group of that IP version: %w", group, s.local, syscall.EINVAL)
	}
	at := netip.AddrPortFrom(group, s.local.Port())
	conn, err := listenGroup(at, s.local, s.caps.IfIndex)
	if err != nil {
		return fmt.Errorf("udp: join %v on %v: %w", group, s.local, err)
	}
	if g.joined == nil {
		g.joined = make(map[netip.Addr]*net.UDPConn)
	}
	g.joined[group] = conn
	g.readers.Go(func() { s.readGroup(conn, at) })
	return nil
}

// Leave implements link.Link.
func (s *socket) Leave(group netip.Addr) {
	g := &s.groups
	g.mu.Lock()
	defer g.mu.Unlock()
	if conn := g.joined[wire.Bare(group)]; conn != nil {
		conn.Close()
		delete(g.joined, wire.Bare(group))
	}
}

// close leaves all groups, and waits for their goroutines.
func (g *groups) close() {
	g.mu.Lock()
	g.closed = true
	for _, conn := range g.joined {
		conn.Close()
	}
	clear(g.joined)
	g.mu.Unlock()
	g.readers.Wait()
}

// readGroup queues what comes to a group until its socket is closed.
func (s *socket) readGroup(conn *net.UDPConn, at netip.AddrPort) {
	var from peers
	buf := make([]byte, slotSize+1)
	for {
		n, src, err := conn.ReadFromUDPAddrPort(buf)
		if err != nil {
			return
		}
		src = netip.AddrPortFrom(wire.Bare(src.Addr()), src.Port())
		if n < wire.BTHLen+wire.ICRCLen || n > slotSize {
			s.count.Malformed.Add(1)
			continue
		}
		peer := from.from(src, at)
		if peer == nil {
			s.count.Malformed.Add(1)
			continue
		}
		id, ok := peer.flow.Verify(buf[:n], 0)
		if s.tap != nil {
			s.tap.Datagram(link.Inbound, src, at, id, buf[:n], nil, nil)
		}
		if !ok || !peer.habit.takes(id) {
			s.count.ICRC.Add(1)
			continue
		}
		s.groups.put(link.Packet{Peer: src, Group: at.Addr(), Head: slices.Clone(buf[:n-wire.ICRCLen])})
		s.raw.Interrupt()
	}
}

func (g *groups) put(p link.Packet) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.queue) >= groupQueue {
		g.dropped.Add(1)
		return
	}
	g.queue = append(g.queue, p)
	g.waiting.Store(int32(len(g.queue)))
}

// take moves packets from the queue to batch.
func (g *groups) take(batch []link.Packet) int {
	if g.waiting.Load() == 0 {
		return 0
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	n := copy(batch, g.queue)
	g.queue = slices.Delete(g.queue, 0, n)
	g.waiting.Store(int32(len(g.queue)))
	return n
}
