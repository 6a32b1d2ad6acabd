package wire

import "encoding/binary"

// AETHLen is the length of an [AETH].
const AETHLen = 4

// AETH is the acknowledge extended header (IBA 9.3.5).
type AETH struct {
	Syndrome Syndrome
	MSN      MSN // messages completed by the responder
}

// Length returns [AETHLen].
func (*AETH) Length() int { return AETHLen }

// Parse reads the first AETHLen bytes of b. The error is ErrShort or nil.
func (h *AETH) Parse(b []byte) error {
	if len(b) < AETHLen {
		return ErrShort
	}
	v := binary.BigEndian.Uint32(b)
	h.Syndrome = Syndrome(v >> 24)
	h.MSN = MSN(v & mask24)
	return nil
}

// Append appends the header's AETHLen bytes to b.
func (h *AETH) Append(b []byte) []byte {
	return binary.BigEndian.AppendUint32(b, uint32(h.Syndrome)<<24|uint32(h.MSN&mask24))
}
