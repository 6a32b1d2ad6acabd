package core

import "encoding/binary"

// ControlLen is the length of a control message, in bytes.
const ControlLen = 32

// ControlType is the type of a control message.
type ControlType uint8

const (
	// CREDIT tells how far the sender has consumed its ring, as all others do.
	CREDIT ControlType = 1
	// FIN ends the sender's data; its argument is the number of payload bytes
	// that the sender has sent, without skips and rounding.
	FIN ControlType = 2
	// RESET ends the connection both ways; its argument is a ResetCode.
	RESET ControlType = 3
)

// ResetCode is the argument of a RESET. A receiver takes all alike, unknown
// ones as well.
type ResetCode uint64

const (
	ClosedUnread     ResetCode = 0 // closed with data that was not read
	ClosedNoLinger   ResetCode = 1 // closed without waiting for what was sent
	ProtocolViolated ResetCode = 2
	InternalError    ResetCode = 3
)

// Control is a control message.
type Control struct {
	Type     ControlType
	Consumed uint64 // position up to which the sender has consumed its own ring
	Argument uint64
}

// Append appends the message's ControlLen bytes to b, big-endian: u8 type,
// u8 0, u16 length, u32 0, u64 consumed, u64 argument, u64 0.
func (m *Control) Append(b []byte) []byte {
	b = append(b, byte(m.Type), 0, 0, ControlLen, 0, 0, 0, 0)
	b = binary.BigEndian.AppendUint64(b, m.Consumed)
	b = binary.BigEndian.AppendUint64(b, m.Argument)
	return binary.BigEndian.AppendUint64(b, 0)
}

// Parse reads a message, whose length must be ControlLen. The error is a
// *ProtocolError.
func (m *Control) Parse(b []byte) error {
	if len(b) != ControlLen || binary.BigEndian.Uint16(b[2:]) != ControlLen {
		return breach("a control message of %d bytes; it has %d", len(b), ControlLen)
	}
	m.Type = ControlType(b[0])
	if m.Type < CREDIT || m.Type > RESET {
		return breach("a control message of unknown type %d", b[0])
	}
	m.Consumed = binary.BigEndian.Uint64(b[8:])
	m.Argument = binary.BigEndian.Uint64(b[16:])
	return nil
}
