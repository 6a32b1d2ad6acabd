package udp

import (
	"encoding/binary"

	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// maxTrailer is the most that the link adds to a packet: pad and ICRC.
const maxTrailer = 3 + wire.ICRCLen

// appendTrailer appends to b what the link adds to p, up to three bytes of pad
// and the ICRC, for a packet that leaves with IPv4 identification id.
func appendTrailer(b []byte, p *link.Packet, flow wire.Flow, id uint16) []byte {
	at := len(b)
	pad := wire.PadLen(len(p.Payload))
	if pad == 0 && p.Sum.Known {
		return wire.AppendICRC(b, flow.ICRCOfSum(id, p.Head, p.Sum, len(p.Payload)))
	}
	for range pad {
		b = append(b, 0)
	}
	return wire.AppendICRC(b, flow.ICRC(id, p.Head, p.Payload, b[at:]))
}

// appendWhole appends the whole datagram that p becomes, the bit that p.Flip
// names inverted.
func appendWhole(b []byte, p *link.Packet, flow wire.Flow, id uint16) []byte {
	at := len(b)
	b = append(append(b, p.Head...), p.Payload...)
	for range wire.PadLen(len(p.Payload)) {
		b = append(b, 0)
	}
	b = wire.AppendICRC(b, flow.ICRC(id, b[at:]))
	if p.Flip != 0 {
		whole := b[at:]
		bit := uint64(p.Flip-1) % uint64(8*len(whole))
		whole[bit/8] ^= 1 << (bit % 8)
	}
	return b
}

// verify returns the IPv4 identification with which a datagram, its ICRC
// included, was sent; ok is false if none makes the ICRC right. guess is tried
// first: the difference to its CRC is that between the identifications, because
// the CRC is linear. Over IPv6, which has none, it is 0.
func verify(flow wire.Flow, v4 bool, b []byte, guess uint16) (id uint16, ok bool) {
	n := len(b) - wire.ICRCLen
	diff := flow.ICRC(guess, b[:n]) ^ binary.LittleEndian.Uint32(b[n:])
	if !v4 {
		return 0, diff == 0
	}
	if diff == 0 {
		return guess, true
	}
	id, ok = wire.SolveID(diff, n)
	return id ^ guess, ok
}
