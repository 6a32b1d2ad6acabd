package wire

import (
	"fmt"
	"strings"
)

// Frame is one frame of any type. The fields that its type has not are zero.
type Frame struct {
	Type         FrameType
	Stream       StreamID
	Offset       uint64    // STREAM: of the first byte of Data
	Code         uint64    // the application's error code, or a [Code]
	Trigger      FrameType // CONNECTION_CLOSE: the frame that caused it, 0 if unknown
	FinalSize    uint64    // bytes of the stream that was reset
	ReliableSize uint64    // RESET_STREAM_AT: how many of them arrive all the same
	Limit        uint64    // MAX_… and …_BLOCKED: bytes or streams
	Sequence     uint64    // QX_PING
	Data         []byte    // payload, reason or parameters
}

// Parse reads the first frame of a record's bytes b and returns its length.
// Data is a part of b. On an error Type is set as far as it was read, and the
// rest undefined. The error is ErrTruncated, ErrTypeForm, ErrUnknown,
// ErrForbidden, ErrOffset, ErrStreamCount, ErrReliableSize or nil.
func (f *Frame) Parse(b []byte) (int, error) {
	*f = Frame{}
	t, n := ParseVarint(b)
	if n == 0 {
		return 0, ErrTruncated
	}
	f.Type = FrameType(t)
	l := f.Type.layout()
	switch {
	case n != VarintLen(t):
		return 0, ErrTypeForm
	case l == nil:
		return 0, ErrUnknown
	case l.forbidden:
		return 0, ErrForbidden
	}
	for _, at := range l.fields {
		v, k := ParseVarint(b[n:])
		if k == 0 {
			return 0, ErrTruncated
		}
		*f.field(at) = v
		n += k
	}
	size := 0
	switch l.data {
	case toEnd:
		size = len(b) - n
	case counted:
		v, k := ParseVarint(b[n:])
		if k == 0 || v > uint64(len(b)-n-k) {
			return 0, ErrTruncated
		}
		size, n = int(v), n+k
	}
	f.Data = b[n : n+size : n+size]
	if l.check != nil {
		if err := l.check(f); err != nil {
			return 0, err
		}
	}
	return n + size, nil
}

// Append appends the frame to b. A frame whose Data has no length (STREAM
// without one, DATAGRAM) must be the last of its record. A type that QMux does
// not permit appends nothing.
func (f *Frame) Append(b []byte) []byte {
	l := f.Type.layout()
	if l == nil || l.forbidden {
		return b
	}
	b = AppendVarint(b, uint64(f.Type))
	for _, at := range l.fields {
		b = AppendVarint(b, *f.field(at))
	}
	switch l.data {
	case noData:
		return b
	case counted:
		b = AppendVarint(b, uint64(len(f.Data)))
	}
	return append(b, f.Data...)
}

// Length is how many bytes Append appends.
func (f *Frame) Length() int {
	l := f.Type.layout()
	if l == nil || l.forbidden {
		return 0
	}
	n := VarintLen(uint64(f.Type))
	for _, at := range l.fields {
		n += VarintLen(*f.field(at))
	}
	switch l.data {
	case noData:
		return n
	case counted:
		n += VarintLen(uint64(len(f.Data)))
	}
	return n + len(f.Data)
}

// field returns where a varint of the wire goes.
func (f *Frame) field(at field) *uint64 {
	switch at {
	case stream:
		return (*uint64)(&f.Stream)
	case offset:
		return &f.Offset
	case code:
		return &f.Code
	case trigger:
		return (*uint64)(&f.Trigger)
	case finalSize:
		return &f.FinalSize
	case reliableSize:
		return &f.ReliableSize
	case limit:
		return &f.Limit
	}
	return &f.Sequence
}

func (f *Frame) checkOffset() error {
	if f.Offset > MaxVarint-uint64(len(f.Data)) {
		return ErrOffset
	}
	return nil
}

func (f *Frame) checkStreams() error {
	if f.Limit > MaxStreams {
		return ErrStreamCount
	}
	return nil
}

func (f *Frame) checkReliable() error {
	if f.ReliableSize > f.FinalSize {
		return ErrReliableSize
	}
	return nil
}

var fieldNames = [...]string{
	stream: "id", offset: "offset", code: "code", trigger: "frame",
	finalSize: "final", reliableSize: "reliable", limit: "limit", sequence: "sequence",
}

// lengthName is the name of the length of a frame's data.
const lengthName = "len"

// Fields calls yield with the name and the value of each number that the type
// has, in the order of the wire, and last with "len", the length of its data.
func (f *Frame) Fields(yield func(name string, value uint64) bool) {
	l := f.Type.layout()
	if l == nil {
		return
	}
	for _, at := range l.fields {
		if !yield(fieldNames[at], *f.field(at)) {
			return
		}
	}
	if l.data != noData {
		yield(lengthName, uint64(len(f.Data)))
	}
}

// String returns the frame in one line, such as "STREAM id=4 offset=5 len=2
// fin": its fields, the length of its data, and the reason of a close.
func (f *Frame) String() string {
	var s strings.Builder
	s.WriteString(f.Type.String())
	closing := f.Type == TypeConnectionClose || f.Type == TypeApplicationClose
	for name, value := range f.Fields {
		switch {
		case name == fieldNames[trigger]:
			fmt.Fprintf(&s, " %s=%v", name, FrameType(value))
		case name == fieldNames[code] && f.Type == TypeConnectionClose:
			fmt.Fprintf(&s, " %v", Code(value))
		case name == lengthName && closing:
			fmt.Fprintf(&s, " %q", f.Data)
		default:
			fmt.Fprintf(&s, " %s=%d", name, value)
		}
	}
	if f.Type.Fin() {
		s.WriteString(" fin")
	}
	return s.String()
}
