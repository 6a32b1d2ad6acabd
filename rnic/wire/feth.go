package wire

import "encoding/binary"

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
