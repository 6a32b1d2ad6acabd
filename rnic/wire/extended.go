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

// ImmDtLen is the length of an [ImmDt].
const ImmDtLen = 4

// ImmDt is the immediate data (IBA 9.3.6): four bytes that the receiver finds
// in its completion. Data is their value read as big-endian, so verbs'
// imm_data, which is in network order, holds the big-endian bytes of Data.
type ImmDt struct {
	Data uint32
}

// Length returns [ImmDtLen].
func (*ImmDt) Length() int { return ImmDtLen }

// Parse reads the first ImmDtLen bytes of b. The error is ErrShort or nil.
func (h *ImmDt) Parse(b []byte) error {
	if len(b) < ImmDtLen {
		return ErrShort
	}
	h.Data = binary.BigEndian.Uint32(b)
	return nil
}

// Append appends the header's ImmDtLen bytes to b.
func (h *ImmDt) Append(b []byte) []byte { return binary.BigEndian.AppendUint32(b, h.Data) }

// IETHLen is the length of an [IETH].
const IETHLen = 4

// IETH is the invalidate extended header (IBA 9.3.7).
type IETH struct {
	RKey uint32 // the key that the receiver shall invalidate
}

// Length returns [IETHLen].
func (*IETH) Length() int { return IETHLen }

// Parse reads the first IETHLen bytes of b. The error is ErrShort or nil.
func (h *IETH) Parse(b []byte) error {
	if len(b) < IETHLen {
		return ErrShort
	}
	h.RKey = binary.BigEndian.Uint32(b)
	return nil
}

// Append appends the header's IETHLen bytes to b.
func (h *IETH) Append(b []byte) []byte { return binary.BigEndian.AppendUint32(b, h.RKey) }

// FETHLen is the length of a [FETH].
const FETHLen = 4

// FETH is the FLUSH extended header (IBA A19.4.1): how deep earlier writes
// shall be flushed (A19.4.1.1), and how much of the region (A19.4.1.2).
type FETH struct {
	Placement uint8 // four bits: FlushGlobal, FlushPersistent
	Selection uint8 // two bits: FlushRange or FlushRegion
}

// Values of the fields of a [FETH].
const (
	FlushGlobal     uint8 = 1 // visible to every observer
	FlushPersistent uint8 = 2 // in memory that survives loss of power
	FlushRange      uint8 = 0 // the range of the RETH
	FlushRegion     uint8 = 1 // the whole memory region
)

// Length returns [FETHLen].
func (*FETH) Length() int { return FETHLen }

// Parse reads the first FETHLen bytes of b. The error is ErrShort or nil.
func (h *FETH) Parse(b []byte) error {
	if len(b) < FETHLen {
		return ErrShort
	}
	v := binary.BigEndian.Uint32(b)
	h.Placement = uint8(v & 0xf)
	h.Selection = uint8(v >> 4 & 3)
	return nil
}

// Append appends the header's FETHLen bytes to b.
func (h *FETH) Append(b []byte) []byte {
	return binary.BigEndian.AppendUint32(b, uint32(h.Selection&3)<<4|uint32(h.Placement&0xf))
}
