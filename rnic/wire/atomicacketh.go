package wire

import "encoding/binary"

// AtomicAckETHLen is the length of an [AtomicAckETH].
const AtomicAckETHLen = 8

// AtomicAckETH is the atomic acknowledge extended header (IBA 9.5.3).
type AtomicAckETH struct {
	Orig uint64 // the value at the address before
}

// Length returns [AtomicAckETHLen].
func (*AtomicAckETH) Length() int { return AtomicAckETHLen }

// Parse reads the first AtomicAckETHLen bytes of b. The error is ErrShort or
// nil.
func (h *AtomicAckETH) Parse(b []byte) error {
	if len(b) < AtomicAckETHLen {
		return ErrShort
	}
	h.Orig = binary.BigEndian.Uint64(b)
	return nil
}

// Append appends the header's AtomicAckETHLen bytes to b.
func (h *AtomicAckETH) Append(b []byte) []byte {
	return binary.BigEndian.AppendUint64(b, h.Orig)
}
