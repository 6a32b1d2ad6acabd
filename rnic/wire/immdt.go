package wire

import "encoding/binary"

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
