package wire

import "encoding/binary"

// DETHLen is the length of a [DETH].
const DETHLen = 8

// DETH is the datagram extended header (IBA 9.3.2).
type DETH struct {
	QKey   uint32
	SrcQPN QPN
}

func (h *DETH) parse(b []byte) []byte {
	h.QKey = binary.BigEndian.Uint32(b)
	h.SrcQPN = QPN(binary.BigEndian.Uint32(b[4:]) & mask24)
	return b[DETHLen:]
}

func (h *DETH) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, h.QKey)
	return binary.BigEndian.AppendUint32(b, uint32(h.SrcQPN&mask24))
}

// ImmDtLen is the length of an [ImmDt].
const ImmDtLen = 4

// ImmDt is the immediate data (IBA 9.3.6): four bytes that the receiver finds
// in its completion. Data is their value read as big-endian, so verbs'
// imm_data, which is in network order, holds the big-endian bytes of Data.
type ImmDt struct {
	Data uint32
}

func (h *ImmDt) parse(b []byte) []byte {
	h.Data = binary.BigEndian.Uint32(b)
	return b[ImmDtLen:]
}

func (h *ImmDt) append(b []byte) []byte { return binary.BigEndian.AppendUint32(b, h.Data) }

// IETHLen is the length of an [IETH].
const IETHLen = 4

// IETH is the invalidate extended header (IBA 9.3.7).
type IETH struct {
	RKey uint32 // the key that the receiver shall invalidate
}

func (h *IETH) parse(b []byte) []byte {
	h.RKey = binary.BigEndian.Uint32(b)
	return b[IETHLen:]
}

func (h *IETH) append(b []byte) []byte { return binary.BigEndian.AppendUint32(b, h.RKey) }

// FETHLen is the length of a [FETH].
const FETHLen = 4

// FETH is the FLUSH extended header (IBA A19.4.1): how deep earlier writes
// shall be flushed (A19.4.1.1), and how much of the region (A19.4.1.2).
type FETH struct {
	Placement uint8 // four bits: 1 is visible to every observer, 2 survives loss of power
	Selection uint8 // two bits: 0 is the range of the RETH, 1 the whole memory region
}

func (h *FETH) parse(b []byte) []byte {
	v := binary.BigEndian.Uint32(b)
	h.Placement = uint8(v & 0xf)
	h.Selection = uint8(v >> 4 & 3)
	return b[FETHLen:]
}

func (h *FETH) append(b []byte) []byte {
	return binary.BigEndian.AppendUint32(b, uint32(h.Selection&3)<<4|uint32(h.Placement&0xf))
}
