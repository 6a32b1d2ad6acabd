package nldev

import (
	"encoding/binary"
	"fmt"
)

// Nested are the attributes inside another.
type Nested []byte

const (
	nested   = 1 << 15 // NLA_F_NESTED
	typeMask = 0x3fff  // NLA_TYPE_MASK: without NESTED and NET_BYTEORDER
	header   = 4
)

// Encode makes attributes of names, each with its value behind it: a number, a
// string, bytes or Nested.
//
// An attribute (include/uapi/linux/netlink.h): length u16 (header included),
// type u16, payload, pad to four bytes; all in the machine's byte order.
func Encode(namesAndValues ...any) (b []byte) {
	for i := 0; i < len(namesAndValues); i += 2 {
		typ := attribute(namesAndValues[i].(string))
		var payload []byte
		switch v := namesAndValues[i+1].(type) {
		case uint8:
			payload = []byte{v}
		case uint32:
			payload = binary.NativeEndian.AppendUint32(nil, v)
		case uint64:
			payload = binary.NativeEndian.AppendUint64(nil, v)
		case string:
			payload = append([]byte(v), 0)
		case []byte:
			payload = v
		case Nested:
			payload, typ = v, typ|nested
		default:
			panic(fmt.Sprintf("nldev: a %T is no attribute's value", v))
		}
		b = binary.NativeEndian.AppendUint16(b, uint16(header+len(payload)))
		b = binary.NativeEndian.AppendUint16(b, typ)
		b = append(b, payload...)
		for len(b)%4 != 0 {
			b = append(b, 0)
		}
	}
	return b
}
