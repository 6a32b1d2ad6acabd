package wire

import (
	"encoding/binary"
	"fmt"
	"syscall"
)

// Breach is a breach of the protocol by the peer, which ends the session: a
// chunk that is no messages, or messages that may not come now. It Is EPROTO.
type Breach struct{ What string }

// Breached returns a *Breach.
func Breached(format string, args ...any) error { return &Breach{fmt.Sprintf(format, args...)} }

// Error says what the peer did.
func (e *Breach) Error() string { return "rpc session: the peer sent " + e.What }

// Unwrap is EPROTO.
func (e *Breach) Unwrap() error { return syscall.EPROTO }

// Parse reads the first message of b, and returns the bytes behind it. The
// message's slices point into b, without capacity beyond their ends. The error
// is a *Breach; the message is then undefined.
func (m *Message) Parse(b []byte) (rest []byte, err error) {
	if len(b) < HeaderLen {
		return nil, Breached("%d bytes; a message has at least %d", len(b), HeaderLen)
	}
	*m = Message{
		Type: Type(b[0]), Flags: Flags(b[1]),
		Slot:     binary.BigEndian.Uint16(b[2:]),
		Sequence: binary.BigEndian.Uint32(b[4:]),
		Stream:   binary.BigEndian.Uint32(b[8:]),
		Method:   binary.BigEndian.Uint16(b[12:]),
		Timeout:  binary.BigEndian.Uint32(b[16:]),
	}
	metadata, body := int(binary.BigEndian.Uint16(b[14:])), uint64(binary.BigEndian.Uint32(b[20:]))
	l := m.Type.layout()
	if l == nil {
		return nil, Breached("a message of unknown %v", m.Type)
	}
	r := reader{rest: b[HeaderLen:]}
	if m.Flags&Define != 0 {
		m.Name = r.counted()
	}
	m.Metadata = r.take(metadata)
	if m.Flags&Error != 0 {
		m.Code = r.u32()
		m.Text = r.counted()
		m.Details = r.counted()
	}
	if r.short || body > uint64(len(r.rest)) {
		return nil, Breached("a %v message whose parts are longer than its %d bytes", m.Type, len(b))
	}
	bytes := r.take(int(body))
	switch {
	case m.Flags&Offered != 0:
		if body != OfferLen {
			return nil, Breached("an offer of %d bytes; it has %d", body, OfferLen)
		}
		m.Offer = Offer{Addr: binary.BigEndian.Uint64(bytes), RKey: binary.BigEndian.Uint32(bytes[8:]), Length: binary.BigEndian.Uint32(bytes[12:])}
	case l.body == windowBody:
		if body != WindowLen {
			return nil, Breached("a window of %d bytes; it has %d", body, WindowLen)
		}
		m.Bytes, m.Messages = binary.BigEndian.Uint32(bytes), binary.BigEndian.Uint32(bytes[4:])
	default:
		m.Body = bytes
	}
	if len(m.Name) > MaxName || m.Offer.Length > MaxBody {
		return nil, Breached("a name of %d bytes or an offer of %d; they have at most %d and %d", len(m.Name), m.Offer.Length, MaxName, MaxBody)
	}
	if fault := m.fault(l); fault != "" {
		return nil, Breached("a %v message %s", m.Type, fault)
	}
	return r.rest, nil
}

// reader takes parts off the front of a message. After a part that is cut short
// all others are empty.
type reader struct {
	rest  []byte
	short bool
}

func (r *reader) take(n int) []byte {
	if r.short || n > len(r.rest) {
		r.short = true
		return nil
	}
	part := r.rest[:n:n]
	r.rest = r.rest[n:]
	return part
}

func (r *reader) counted() []byte {
	if n := r.take(2); n != nil {
		return r.take(int(binary.BigEndian.Uint16(n)))
	}
	return nil
}

func (r *reader) u32() uint32 {
	if b := r.take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}
