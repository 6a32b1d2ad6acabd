package wire

import "fmt"

// FrameType is the number that a frame begins with.
type FrameType uint64

// The frames that QMux permits (RFC 9000 section 19, RFC 9221, the draft on
// reliable resets, and the QMux draft for the last four).
const (
	TypePadding            FrameType = 0x00
	TypeResetStream        FrameType = 0x04
	TypeStopSending        FrameType = 0x05
	TypeStream             FrameType = 0x08 // to 0x0f, see StreamType
	TypeMaxData            FrameType = 0x10
	TypeMaxStreamData      FrameType = 0x11
	TypeMaxStreamsBidi     FrameType = 0x12
	TypeMaxStreamsUni      FrameType = 0x13
	TypeDataBlocked        FrameType = 0x14
	TypeStreamDataBlocked  FrameType = 0x15
	TypeStreamsBlockedBidi FrameType = 0x16
	TypeStreamsBlockedUni  FrameType = 0x17
	TypeConnectionClose    FrameType = 0x1c // the transport's
	TypeApplicationClose   FrameType = 0x1d // CONNECTION_CLOSE of the application
	TypeResetStreamAt      FrameType = 0x24
	TypeDatagram           FrameType = 0x30 // to the record's end
	TypeDatagramLen        FrameType = 0x31
	TypePing               FrameType = 0x348c67529ef8c7bd // QX_PING, a request
	TypePong               FrameType = 0x348c67529ef8c7be // QX_PING, the response

	// TypeParameters is QX_TRANSPORT_PARAMETERS, "\xffQS0\r\n\r\n" on the wire.
	TypeParameters FrameType = 0x3f5153300d0a0d0a
	// TypeParameters3 is the same of Draft3, "\xffQMX\r\n\r\n" on the wire.
	TypeParameters3 FrameType = 0x3f514d580d0a0d0a
)

// The bits of a STREAM's type (RFC 9000 section 19.8).
const (
	streamFin    = 0x01
	streamLength = 0x02
	streamOffset = 0x04
)

// StreamType returns the type of a STREAM with these fields. Without offset the
// data is the first of its stream; without length it ends with the record; fin
// says that it is the last.
func StreamType(offset, length, fin bool) FrameType {
	t := TypeStream
	if offset {
		t |= streamOffset
	}
	if length {
		t |= streamLength
	}
	if fin {
		t |= streamFin
	}
	return t
}

// IsStream reports whether t is a STREAM's.
func (t FrameType) IsStream() bool { return t&^7 == TypeStream }

// Fin reports whether a STREAM of this type is its stream's last.
func (t FrameType) Fin() bool { return t.IsStream() && t&streamFin != 0 }

// FillsRecord reports whether t is a STREAM's whose data ends with its record.
func (t FrameType) FillsRecord() bool { return t.IsStream() && t&streamLength == 0 }

// IsParameters reports whether t is QX_TRANSPORT_PARAMETERS in any draft.
func (t FrameType) IsParameters() bool { return t == TypeParameters || t == TypeParameters3 }

// String returns the type's name in its specification, or its number.
func (t FrameType) String() string {
	if l := t.layout(); l != nil {
		return l.name
	}
	return fmt.Sprintf("frame 0x%x", uint64(t))
}
