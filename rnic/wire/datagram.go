package wire

import (
	"encoding/binary"
	"net/netip"

	"github.com/rdmashim/rdmashim/rnic/crc"
)

// Datagram is one RoCEv2 packet on its way through a link, without its pad and
// ICRC, which belong to the link: the transport part of a UDP datagram.
type Datagram struct {
	// Peer is where the packet goes, or where it came from. Received packets
	// carry the sender's UDP source port. RoCEv2 uses it as entropy, so only
	// the address identifies the sender; a soft device's is the port that it
	// receives at.
	Peer netip.AddrPort

	// Group is the multicast group that a received packet was sent to; zero
	// for one that was sent to the link's own address.
	Group netip.Addr

	// Head holds the BTH and the extended headers. A received packet has
	// everything up to the ICRC in Head (pad included) and no Payload; or its
	// headers alone, if it has one.
	Head []byte

	// Payload is the unpadded payload. The link pads it to a multiple of four
	// bytes with zeros, as the BTH's pad count in Head says.
	Payload []byte

	// Frame, unless it is nil, is where Head and Payload lie one behind the
	// other, with room for pad and ICRC behind them: a link may finish a packet
	// there that it sends once.
	Frame []byte

	// Elsewhere says where Payload lies, if that is in a program's memory.
	Elsewhere

	// Sum is Payload's, if it is known.
	Sum crc.Sum

	// Flip, when not zero, is 1 + the index of a bit of the finished datagram
	// payload (ICRC included; taken modulo its length in bits) that is
	// inverted after the ICRC was computed: how a tap corrupts a packet.
	Flip uint32

	// Alone asks that the packet leaves as a datagram of its own, not in a send
	// that a device cuts up: set when the packet vanished twice in a row with
	// all that was sent beside it, because the cutting may have been the cause.
	Alone bool

	// Marked says of a received packet that it met a queue: its IP header has
	// CE (RFC 3168). Crowded says that the receive buffer was more than half
	// full when it came, of several peers' packets.
	Marked, Crowded bool

	// Near says of a received packet that it came by a near way, whose peers
	// are known.
	Near bool

	// Far keeps the packet from a near way (Near): its queue pair began
	// without, and another way might overtake packets under way.
	Far bool
}

// AppendWhole appends the whole datagram that d becomes when it leaves with the
// IPv4 identification id: with pad and ICRC, and the bit that Flip names
// inverted.
func (d *Datagram) AppendWhole(b []byte, flow Flow, id uint16) []byte {
	at := len(b)
	b = append(append(b, d.Head...), d.Payload...)
	b = append(b, Pad(PadLen(len(d.Payload)))...)
	b = AppendICRC(b, flow.ICRC(id, b[at:]))
	if d.Flip != 0 {
		whole := b[at:]
		bit := uint64(d.Flip-1) % uint64(8*len(whole))
		whole[bit/8] ^= 1 << (bit % 8)
	}
	return b
}

// Follows reports whether a received packet whose headers are a BTH could be
// the next of last's message: it came from there in the same way, is as long,
// and its BTH differs in the PSN alone, which is the one behind, and in AckReq,
// which it lacks.
func (d *Datagram) Follows(last *Datagram) bool {
	const ackReq = 1 << 31
	if len(d.Head) != len(last.Head) || len(d.Head) < BTHLen || d.Payload != nil || last.Payload != nil {
		return false
	}
	n := binary.BigEndian.Uint32(last.Head[8:]) &^ ackReq
	return binary.BigEndian.Uint32(d.Head[8:]) == n&^mask24|(n+1)&mask24 &&
		binary.BigEndian.Uint64(d.Head) == binary.BigEndian.Uint64(last.Head) &&
		d.Peer == last.Peer && d.Group == last.Group &&
		d.Near == last.Near && d.Marked == last.Marked && d.Crowded == last.Crowded
}
