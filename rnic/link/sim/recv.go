package sim

import (
	"net/netip"
	"time"

	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// Recv implements link.Link.
func (p *port) Recv(batch []link.Packet) (int, error) {
	p.inbox.giveBack(p.lent)
	p.lent = p.lent[:0]
	if len(batch) == 0 {
		return 0, nil
	}
	for {
		if p.isClosed() {
			return 0, errClosed("receive", p.local)
		}
		p.lent = p.inbox.take(p.lent[:0], len(batch))
		if n := p.check(batch); n > 0 || len(p.lent) == 0 {
			return n, nil
		}
		p.inbox.giveBack(p.lent)
		p.lent = p.lent[:0]
	}
}

// Wait implements link.Link.
func (p *port) Wait() error {
	if p.inbox.waiting() && !p.isClosed() {
		return nil
	}
	select {
	case <-p.closed:
		return errClosed("receive", p.local)
	case <-p.inbox.ready:
		return nil
	}
}

// Sleep implements link.Link: threads do not sleep here.
func (p *port) Sleep(_ time.Duration, waits bool) error {
	if waits {
		return p.Wait()
	}
	return nil
}

// Interrupt implements link.Link.
func (p *port) Interrupt() { p.inbox.wake() }

// check hands out the lent packets whose ICRC is right. The network sends with
// IPv4 identification 0 and so accepts no other.
func (p *port) check(batch []link.Packet) int {
	n := 0
	for i := range p.lent {
		d := &p.lent[i]
		if p.tap != nil {
			p.tap.Datagram(link.Inbound, d.from, d.to(p.local), 0, d.buf, nil, nil)
		}
		if !d.flow.Check(d.buf, 0) {
			p.count.ICRC.Add(1)
			continue
		}
		batch[n] = link.Packet{Peer: d.from, Group: d.group, Head: d.buf[:len(d.buf)-wire.ICRCLen]}
		n++
	}
	return n
}

// to is the datagram's destination at the port local.
func (d *datagram) to(local netip.AddrPort) netip.AddrPort {
	if d.group.IsValid() {
		return netip.AddrPortFrom(d.group, local.Port())
	}
	return local
}
