package wire

import "encoding/binary"

// DETHLen is the length of a [DETH].
const DETHLen = 8

// DETH is the datagram extended header (IBA 9.3.2).
type DETH struct {
	QKey   uint32
	SrcQPN QPN
}

// Length returns [DETHLen].
func (*DETH) Length() int { return DETHLen }

// Parse reads the first DETHLen bytes of b. The error is ErrShort or nil.
func (h *DETH) Parse(b []byte) error {
	if len(b) < DETHLen {
		return ErrShort
	}
	h.QKey = binary.BigEndian.Uint32(b)
	h.SrcQPN = QPN(binary.BigEndian.Uint32(b[4:]) & mask24)
	return nil
}

// Append appends the header's DETHLen bytes to b.
func (h *DETH) Append(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, h.QKey)
	return binary.BigEndian.AppendUint32(b, uint32(h.SrcQPN&mask24))
}
