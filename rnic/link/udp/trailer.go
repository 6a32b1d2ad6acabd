package udp

import (
	"encoding/binary"

	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// trailer is what the link adds to a packet: up to three bytes of pad, and the
// ICRC.
type trailer [3 + wire.ICRCLen]byte

// finish computes the trailer of p, which is sent with IPv4 identification 0.
func (t *trailer) finish(p *link.Packet, flow wire.Flow) []byte {
	n := int(wire.PadLen(len(p.Payload)))
	*t = trailer{}
	binary.LittleEndian.PutUint32(t[n:], flow.ICRC(0, p.Head, p.Payload, t[:n]))
	return t[:n+wire.ICRCLen]
}

// assemble copies a whole packet into buf and inverts the bit that p.Flip names.
func assemble(buf []byte, p *link.Packet, tail []byte) []byte {
	buf = append(append(append(buf[:0], p.Head...), p.Payload...), tail...)
	if p.Flip != 0 {
		bit := uint64(p.Flip-1) % uint64(8*len(buf))
		buf[bit/8] ^= 1 << (bit % 8)
	}
	return buf
}
