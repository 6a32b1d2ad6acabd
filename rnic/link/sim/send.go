package sim

import (
	"net/netip"

	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// Send implements link.Link. Runs of packets to one address are queued at once.
func (p *port) Send(batch []link.Packet) error {
	if p.isClosed() {
		return errClosed("send", p.local)
	}
	for i := 0; i < len(batch); {
		to := batch[i].Peer
		j := i + 1
		for j < len(batch) && batch[j].Peer == to {
			j++
		}
		p.sendTo(to, batch[i:j])
		i = j
	}
	return nil
}

// sendTo sends packets to their common destination, a port or a group.
func (p *port) sendTo(to netip.AddrPort, batch []link.Packet) {
	at := netip.AddrPortFrom(wire.Bare(to.Addr()), to.Port())
	way := p.path(at)
	if p.tap != nil && way.ok {
		p.show(at, batch, way.flow)
	}
	if way.ok && at.Addr().IsMulticast() {
		for _, dst := range p.net.members(at) {
			p.queue(dst, at.Addr(), batch, way.flow)
		}
		return
	}
	dst := p.net.find(at)
	if dst == nil || !way.ok {
		p.count.NoRoute.Add(uint64(len(batch)))
		return
	}
	p.queue(dst, netip.Addr{}, batch, way.flow)
}

// queue writes packets out and queues them at one port.
func (p *port) queue(dst *port, group netip.Addr, batch []link.Packet, flow wire.Flow) {
	p.stage = p.stage[:0]
	for i := range batch {
		if buf := p.finish(&batch[i], dst, flow); buf != nil {
			p.stage = append(p.stage, datagram{from: p.local, group: group, flow: flow, buf: buf})
		}
	}
	if len(p.stage) > 0 {
		dst.inbox.put(p.stage)
		clear(p.stage)
	}
}

// finish writes one packet with pad and ICRC into a buffer of dst; nil if it
// was dropped.
func (p *port) finish(pkt *link.Packet, dst *port, flow wire.Flow) []byte {
	pad := wire.PadLen(len(pkt.Payload))
	n := len(pkt.Head) + len(pkt.Payload) + int(pad) + wire.ICRCLen
	switch {
	case len(pkt.Head) < wire.BTHLen:
		p.count.Malformed.Add(1)
		return nil
	case n > p.net.mtu:
		p.count.TooLong.Add(1)
		return nil
	}
	buf := dst.inbox.reserve(n)
	if buf == nil {
		dst.count.QueueFull.Add(1)
		return nil
	}
	return pkt.AppendWhole(buf[:0], flow, 0)
}

// show lets the tap see packets that leave, before it is known whether a link
// receives them.
func (p *port) show(to netip.AddrPort, batch []link.Packet, flow wire.Flow) {
	for i := range batch {
		if len(batch[i].Head) >= wire.BTHLen {
			p.shown = batch[i].AppendWhole(p.shown[:0], flow, 0)
			p.tap.Datagram(link.Outbound, p.local, to, 0, p.shown, nil, nil)
		}
	}
}

// path returns the ICRC's part of the way to an address.
func (p *port) path(to netip.AddrPort) path {
	way, known := p.paths[to]
	if known {
		return way
	}
	if len(p.paths) >= maxPaths {
		clear(p.paths)
	}
	flow, err := wire.NewFlow(p.local, to, true)
	way = path{flow: flow, ok: err == nil}
	p.paths[to] = way
	return way
}
