package wire

import "encoding/binary"

// RETHLen is the length of a [RETH].
const RETHLen = 16

// RETH is the RDMA extended header (IBA 9.3.3): where the responder shall write
// or read.
type RETH struct {
	VA     uint64 // virtual address in the responder's region
	RKey   uint32
	DMALen uint32 // bytes of the whole message, not of the packet
}

func (h *RETH) parse(b []byte) []byte {
	h.VA = binary.BigEndian.Uint64(b)
	h.RKey = binary.BigEndian.Uint32(b[8:])
	h.DMALen = binary.BigEndian.Uint32(b[12:])
	return b[RETHLen:]
}

func (h *RETH) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, h.VA)
	b = binary.BigEndian.AppendUint32(b, h.RKey)
	return binary.BigEndian.AppendUint32(b, h.DMALen)
}
