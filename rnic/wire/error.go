package wire

// Error says why a packet cannot be used. The values are small and dense, so
// that a receiver can count its drops in an array: [NumErrors] is its length.
// An Error is comparable; errors.Is finds it in a chain.
type Error uint8

const (
	// ErrShort: the packet ends before the headers that its opcode carries do.
	ErrShort Error = iota + 1
	// ErrVersion: the transport header version is not 0 (IBA 9.2).
	ErrVersion
	// ErrOpcode: the opcode is reserved or of a service not spoken here (RD,
	// XRC).
	ErrOpcode
	// ErrPad: the pad count exceeds the payload, or headers, payload and pad
	// together are not a multiple of four bytes (IBA 9.2).
	ErrPad
	// ErrICRC: the invariant CRC does not belong to the packet (IBA 7.8.1).
	ErrICRC

	// NumErrors is one more than the largest Error.
	NumErrors = int(iota) + 1
)

var errorText = [NumErrors]string{
	ErrShort:   "packet shorter than its headers",
	ErrVersion: "transport header version is not 0",
	ErrOpcode:  "opcode is reserved or not supported",
	ErrPad:     "pad count does not fit the length",
	ErrICRC:    "invariant CRC is wrong",
}

// Error implements the error interface.
func (e Error) Error() string { return "wire: " + name(errorText[:], e, "unknown error") }
