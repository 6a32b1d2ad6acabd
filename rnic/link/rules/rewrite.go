package rules

import (
	"encoding/binary"

	"github.com/rdmashim/rdmashim/rnic/wire"
)

// Refuse returns the headers of an acknowledgement with a syndrome in place of
// an answer, whose headers are in head.
func Refuse(head []byte, s wire.Syndrome) []byte {
	var p wire.Packet
	_ = p.BTH.Parse(head) // a rule has read it
	if p.Opcode.Carries(wire.HasAETH) {
		p.AETH.MSN = wire.MSN(binary.BigEndian.Uint32(head[wire.BTHLen:]) & (1<<24 - 1))
	}
	p.Opcode, p.Pad, p.AckReq, p.AETH.Syndrome = wire.RCAck, 0, false, s
	return p.AppendHeaders(nil)
}

// Mark returns a copy of headers with FECN.
func Mark(head []byte) []byte {
	marked := append([]byte(nil), head...)
	marked[4] |= 0x80
	return marked
}
