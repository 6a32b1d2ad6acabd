package wire

import "encoding/binary"

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
