package wire

import (
	"encoding/binary"
	"fmt"
	"math"
	"syscall"
)

// Lengths, in bytes.
const (
	HeaderLen = 24
	OfferLen  = 16
	WindowLen = 8
	MaxName   = 1024            // of a method's name, at least 1
	MaxBody   = 64<<20 + 64<<10 // of an offered body, at least 1: 64 MiB and the codec's overhead
)

// Message is a message of a session. Fields that its type and flags do not
// have are zero.
type Message struct {
	Type     Type
	Flags    Flags
	Slot     uint16
	Sequence uint32 // of the call, counted from 1 in its slot, modulo 2^32
	Stream   uint32 // number of the stream, from 1; 0: no stream's
	Method   uint16 // number of the method on this connection; 0: none, Name has it
	Timeout  uint32 // of the call, in units of 10 µs; 0: none
	Name     []byte // of the method, with Define
	Metadata []byte // at most 65,535 bytes
	Code     uint32 // of the status, with Error
	Text     []byte // of the status, at most 65,535 bytes of UTF-8
	Details  []byte // of the status, at most 65,535 bytes
	Body     []byte
	Offer    Offer  // with Offered, in place of Body
	Bytes    uint32 // that a STREAM_WINDOW adds to the window
	Messages uint32 // that a STREAM_WINDOW adds to the window
}

// Offer is where a body lies that the receiver READs.
type Offer struct {
	Addr   uint64 // as the sender's device names it
	RKey   uint32
	Length uint32 // bytes, 1 … MaxBody
}

// Timeout returns ns nanoseconds in units of a message's Timeout: rounded up,
// at least 1, at most 2^32-1, which is 11.9 hours.
func Timeout(ns int64) uint32 {
	const unit = 10_000
	return uint32(min((max(ns, 1)-1)/unit+1, math.MaxUint32))
}

// Check reports a message that Append cannot write: an error that Is EMSGSIZE
// if a part is too long, else EINVAL.
func (m *Message) Check() error {
	l := m.Type.layout()
	switch {
	case l == nil:
		return fmt.Errorf("a message of %v; there are 1 … 12 without 9: %w", m.Type, syscall.EINVAL)
	case len(m.Metadata) > math.MaxUint16:
		return tooLong("metadata", len(m.Metadata), math.MaxUint16)
	case len(m.Text) > math.MaxUint16:
		return tooLong("a status text", len(m.Text), math.MaxUint16)
	case len(m.Details) > math.MaxUint16:
		return tooLong("status details", len(m.Details), math.MaxUint16)
	case len(m.Name) > MaxName:
		return tooLong("a method's name", len(m.Name), MaxName)
	case len(m.Body) > MaxBody:
		return tooLong("a body", len(m.Body), MaxBody)
	case m.Offer.Length > MaxBody:
		return tooLong("an offered body", int(m.Offer.Length), MaxBody)
	}
	if fault := m.fault(l); fault != "" {
		return fmt.Errorf("a %v message %s: %w", m.Type, fault, syscall.EINVAL)
	}
	return nil
}

func tooLong(part string, n, most int) error {
	return fmt.Errorf("%s of %d bytes; it has at most %d: %w", part, n, most, syscall.EMSGSIZE)
}

// fault says which part of the message its type or its flags do not allow; ""
// is none.
func (m *Message) fault(l *layout) string {
	switch {
	case m.Flags&^l.flags != 0:
		return fmt.Sprintf("with flags %#02x; it has %#02x at most", uint8(m.Flags), uint8(l.flags))
	case m.Flags&Session != 0 && m.Flags&Error == 0:
		return "with a session's status and no status"
	case m.Flags&Bare != 0 && (m.Flags&Offered != 0 || len(m.Body) > 0):
		return "with a body, and the flag that there is none"
	case !l.call && (m.Method != 0 || m.Timeout != 0):
		return "with a method or a timeout"
	case l.call && m.Method == 0 && m.Flags&Define == 0:
		return "without a method"
	case (m.Flags&Define != 0) != (len(m.Name) > 0):
		return "whose method's name is empty or not flagged"
	case !l.stream && m.Stream != 0:
		return "with a stream's number"
	case !l.metadata && len(m.Metadata) > 0:
		return "with metadata"
	case m.Flags&Error == 0 && (m.Code != 0 || len(m.Text) > 0 || len(m.Details) > 0):
		return "with a status that is not flagged"
	case l.body != bytesBody && len(m.Body) > 0:
		return "with a body"
	case m.Flags&Offered != 0 && (len(m.Body) > 0 || m.Offer.Length == 0):
		return "with an offer beside a body, or of nothing"
	case m.Flags&Offered == 0 && m.Offer != (Offer{}):
		return "with an offer that is not flagged"
	case l.body != windowBody && (m.Bytes != 0 || m.Messages != 0):
		return "with a window"
	case m.Type == GoAway && (m.Slot != 0 || m.Sequence != 0):
		return "with a slot"
	}
	return ""
}

// Length is how many bytes Append appends.
func (m *Message) Length() int { return m.head() + m.body() }

func (m *Message) head() int {
	n := HeaderLen + len(m.Metadata)
	if m.Flags&Define != 0 {
		n += 2 + len(m.Name)
	}
	if m.Flags&Error != 0 {
		n += 4 + 2 + len(m.Text) + 2 + len(m.Details)
	}
	return n
}

func (m *Message) body() int {
	switch {
	case m.Flags&Offered != 0:
		return OfferLen
	case m.Type == StreamWindow:
		return WindowLen
	}
	return len(m.Body)
}

// Append appends the message to b. Its Check is nil.
func (m *Message) Append(b []byte) []byte {
	b = m.appendHead(b, m.body())
	switch {
	case m.Flags&Offered != 0:
		b = binary.BigEndian.AppendUint64(b, m.Offer.Addr)
		b = binary.BigEndian.AppendUint32(b, m.Offer.RKey)
		return binary.BigEndian.AppendUint32(b, m.Offer.Length)
	case m.Type == StreamWindow:
		b = binary.BigEndian.AppendUint32(b, m.Bytes)
		return binary.BigEndian.AppendUint32(b, m.Messages)
	}
	return append(b, m.Body...)
}

// appendHead appends all that comes before a body of so many bytes. Numbers are
// big-endian:
//
//	 0 u8 type        1 u8 flags       2 u16 slot     4 u32 sequence
//	 8 u32 stream    12 u16 method    14 u16 length of the metadata
//	16 u32 timeout   20 u32 length of the body
//	24 u16 length and name (Define) | metadata
//	   | u32 code, u16 length and text, u16 length and details (Error)
//	   | body; or u64 address, u32 rkey, u32 length (Offered);
//	     or u32 bytes, u32 messages (STREAM_WINDOW)
func (m *Message) appendHead(b []byte, body int) []byte {
	b = append(b, byte(m.Type), byte(m.Flags))
	b = binary.BigEndian.AppendUint16(b, m.Slot)
	b = binary.BigEndian.AppendUint32(b, m.Sequence)
	b = binary.BigEndian.AppendUint32(b, m.Stream)
	b = binary.BigEndian.AppendUint16(b, m.Method)
	b = binary.BigEndian.AppendUint16(b, uint16(len(m.Metadata)))
	b = binary.BigEndian.AppendUint32(b, m.Timeout)
	b = binary.BigEndian.AppendUint32(b, uint32(body))
	if m.Flags&Define != 0 {
		b = counted(b, m.Name)
	}
	b = append(b, m.Metadata...)
	if m.Flags&Error != 0 {
		b = binary.BigEndian.AppendUint32(b, m.Code)
		b = counted(b, m.Text)
		b = counted(b, m.Details)
	}
	return b
}

func counted(b, part []byte) []byte {
	b = binary.BigEndian.AppendUint16(b, uint16(len(part)))
	return append(b, part...)
}
