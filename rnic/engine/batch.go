package engine

import (
	"net/netip"

	"github.com/rdmashim/rdmashim/rnic/wire"
)

const (
	headRoom    = 64   // the longest headers, of an atomic, take 40 bytes
	payloadRoom = 4096 // the largest path MTU
)

// Batch collects packets to send. The caller owns it, hands Packets to a link,
// and then calls Reset. The packets' bytes lie in memory that the batch owns.
type Batch struct {
	Packets []wire.Datagram
	arena   []byte
}

// NewBatch makes a batch with room for n packets of any path MTU: about n times
// 4160 bytes.
func NewBatch(n int) *Batch {
	return &Batch{
		Packets: make([]wire.Datagram, 0, n),
		arena:   make([]byte, n*(headRoom+payloadRoom)),
	}
}

// Reset empties the batch.
func (b *Batch) Reset() { b.Packets = b.Packets[:0] }

// Full reports whether there is no room for another packet.
func (b *Batch) Full() bool { return len(b.Packets) == cap(b.Packets) }

// payload returns the memory of the next packet's payload. The batch is not
// full.
func (b *Batch) payload(n int) []byte {
	at := len(b.Packets)*(headRoom+payloadRoom) + headRoom
	return b.arena[at : at+n : at+n]
}

// add appends a packet with p's headers and the payload, which came from
// payload. The batch is not full.
func (b *Batch) add(peer netip.AddrPort, p *wire.Packet, payload []byte) {
	at := len(b.Packets) * (headRoom + payloadRoom)
	p.Pad = wire.PadLen(len(payload))
	head := p.AppendHeaders(b.arena[at : at : at+headRoom])
	b.Packets = append(b.Packets, wire.Datagram{Peer: peer, Head: head, Payload: payload})
}

// last is the packet that was added last.
func (b *Batch) last() *wire.Datagram { return &b.Packets[len(b.Packets)-1] }
