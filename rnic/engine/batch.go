package engine

import (
	"net/netip"

	"github.com/rdmashim/rdmashim/rnic/wire"
)

const (
	headRoom    = 128  // the longest headers take 40 bytes, pad and ICRC 7, alignment 63
	payloadRoom = 4096 // the largest path MTU
	longestRoom = headRoom + wire.MaxPrivateMTU
)

// Batch collects packets to send. The caller owns it, hands Packets to a link,
// and then calls Reset. The packets' bytes lie in memory that the batch owns.
//
// Packets lie in arena one behind the other, as they are on the wire, with room
// for pad and ICRC: a link can send a run of them as it lies. A long payload
// begins at a cache line (aligned): the kernel fills other places more slowly,
// by more than an entry for each packet costs. There is always room for one of
// the longest packets, or the batch is full.
type Batch struct {
	Packets []wire.Datagram
	arena   []byte
	used    int // bytes of arena
}

// NewBatch makes a batch with room for n packets of any path MTU, about n times
// 4224 bytes, or fewer with a private one.
func NewBatch(n int) *Batch {
	return &Batch{
		Packets: make([]wire.Datagram, 0, n),
		arena:   make([]byte, (n-1)*(headRoom+payloadRoom)+longestRoom),
	}
}

// Reset empties the batch.
func (b *Batch) Reset() { b.Packets, b.used = b.Packets[:0], 0 }

// Full reports whether there is no room for another packet.
func (b *Batch) Full() bool {
	return len(b.Packets) == cap(b.Packets) || b.used+longestRoom > len(b.arena)
}

// mark is a place in a batch.
type mark struct{ packets, bytes int }

// middle is the place that halves the free room.
func (b *Batch) middle() mark {
	return mark{cap(b.Packets) - (cap(b.Packets)-len(b.Packets))/2, len(b.arena) - (len(b.arena)-b.used)/2}
}

func (b *Batch) end() mark { return mark{cap(b.Packets), len(b.arena)} }

// before reports whether there is room for another packet before m.
func (b *Batch) before(m mark) bool {
	return len(b.Packets) < m.packets && b.used < m.bytes && !b.Full()
}

// payload returns the memory of the next packet's payload, n bytes behind the
// headers of an opcode. The batch is not full.
func (b *Batch) payload(op wire.Opcode, n int) []byte {
	at := b.begin(op.HeaderLen(), n) + op.HeaderLen()
	return b.arena[at : at+n : at+n]
}

// aligned is the least payload in bytes that begins at a cache line.
const aligned = 2048

// begin is where the next packet begins, with headers of so many bytes and a
// payload of n.
func (b *Batch) begin(head, n int) int {
	if n < aligned {
		return b.used
	}
	return (b.used+head+63)&^63 - head
}

// add appends a packet with p's headers and the payload, which came from
// payload. The batch is not full.
func (b *Batch) add(peer netip.AddrPort, p *wire.Packet, payload []byte) {
	p.Pad = wire.PadLen(len(payload))
	at := b.begin(p.Opcode.HeaderLen(), len(payload))
	b.put(peer, at, p.AppendHeaders(b.arena[at:at]), payload)
}

// addNext appends a packet like the last one, with the PSN behind its, and a
// payload as long, which came from payload. The batch is not full.
func (b *Batch) addNext(payload []byte) {
	last := b.last()
	at := b.begin(len(last.Head), len(payload))
	head := append(b.arena[at:at], last.Head...)
	wire.NextPSN(head)
	b.put(last.Peer, at, head, payload)
}

// put is add for headers that lie in the arena, from at on.
func (b *Batch) put(peer netip.AddrPort, at int, head, payload []byte) {
	n := len(head) + len(payload)
	frame := b.arena[at:][:n+int(wire.PadLen(len(payload)))+wire.ICRCLen]
	b.used = at + len(frame)
	b.Packets = append(b.Packets, wire.Datagram{Peer: peer, Head: head[:len(head):len(head)], Payload: payload, Frame: frame})
}

// last is the packet that was added last.
func (b *Batch) last() *wire.Datagram { return &b.Packets[len(b.Packets)-1] }
