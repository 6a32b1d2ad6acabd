//go:build !linux || udpportable

package udp

import (
	"errors"
	"net"
	"net/netip"
	"sync"

	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// This file serves systems without sendmmsg; the tag udpportable lets it be tested
// on Linux.

// sender sends a datagram at a time.
type sender struct {
	s     *socket
	flows flows
	tail  trailer
	buf   []byte
}

func (t *sender) init(s *socket) { t.s = s }

func (t *sender) send(batch []link.Packet) error {
	for i := range batch {
		if err := t.sendOne(&batch[i]); err != nil {
			return err
		}
	}
	return nil
}

func (t *sender) sendOne(p *link.Packet) error {
	if len(p.Head) < wire.BTHLen {
		t.s.count.malformed.Add(1)
		return nil
	}
	flow, ok := t.flows.findTo(t.s.local, p.Peer)
	if !ok {
		t.s.count.unreachable.Add(1)
		return nil
	}
	t.buf = assemble(t.buf, p, t.tail.finish(p, flow))
	t.s.show(p.Peer, t.buf, nil, nil)
	to := netip.AddrPortFrom(p.Peer.Addr().Unmap(), p.Peer.Port())
	if to.Addr().IsLinkLocalUnicast() && to.Addr().Is6() {
		to = netip.AddrPortFrom(to.Addr().WithZone(t.s.local.Addr().Zone()), to.Port())
	}
	_, err := t.s.conn.WriteToUDPAddrPort(t.buf, to)
	if errors.Is(err, net.ErrClosed) {
		return err
	}
	if err != nil {
		t.s.drop(err)
	}
	return nil
}

// receiver receives a datagram at a time, into slots, by a goroutine of its
// own: a read that does not block is not to be had here.
type receiver struct {
	s     *socket
	flows flows
	slots [batchSize]received
	given int // slots that the last recv handed out; of who receives

	quit  chan struct{} // closed by close
	free  chan struct{} // a token for each slot that pump may fill
	ready chan struct{} // a token when something was filled since the last wait

	mu         sync.Mutex
	head, fill int   // guarded by mu: slots[head … fill) are filled, counted without end
	err        error // guarded by mu: the socket was closed
}

// received is a datagram.
type received struct {
	buf  [slotSize + 1]byte // one byte more, to see that a datagram was cut
	n    int
	from netip.AddrPort
}

func (r *receiver) init(s *socket) {
	r.s = s
	r.quit = make(chan struct{})
	r.free = make(chan struct{}, batchSize)
	r.ready = make(chan struct{}, 1)
	for range batchSize {
		r.free <- struct{}{}
	}
	go r.pump()
}

// pump reads datagrams until the socket is closed.
func (r *receiver) pump() {
	for i := 0; ; i++ {
		select {
		case <-r.quit:
			return
		case <-r.free:
		}
		if err := r.read(&r.slots[i%batchSize]); err != nil {
			return
		}
		r.mu.Lock()
		r.fill++
		r.mu.Unlock()
		select {
		case r.ready <- struct{}{}:
		default:
		}
	}
}

// close ends the pump and the wait. The socket is closed.
func (r *receiver) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.err = net.ErrClosed
		close(r.quit)
	}
}

func (r *receiver) read(d *received) error {
	for {
		n, from, err := r.s.conn.ReadFromUDPAddrPort(d.buf[:])
		if err == nil {
			d.n, d.from = n, netip.AddrPortFrom(from.Addr().Unmap().WithZone(""), from.Port())
			return nil
		}
		if errors.Is(err, net.ErrClosed) {
			return err
		}
		r.s.drop(err)
	}
}

func (r *receiver) recv(want int) (int, error) {
	for range r.given {
		r.free <- struct{}{}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.head += r.given
	r.given = min(want, r.fill-r.head)
	if r.err != nil {
		r.given = 0
	}
	return r.given, r.err
}

func (r *receiver) wait() error {
	r.mu.Lock()
	there, err := r.fill-r.head > r.given, r.err
	r.mu.Unlock()
	if there || err != nil {
		return err
	}
	select {
	case <-r.ready:
		return nil
	case <-r.quit:
		return net.ErrClosed
	}
}

func (r *receiver) datagram(i int) (data []byte, from netip.AddrPort, whole bool) {
	d := &r.slots[(r.head+i)%batchSize]
	return d.buf[:min(d.n, slotSize)], d.from, d.n <= slotSize
}
