package nldev

import (
	"encoding/binary"
	"fmt"
	"strings"
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

// Describe shows attributes for a reader: DEV_INDEX=0 DEV_NAME="rxe0".
func Describe(b []byte) string {
	var list []string
	_ = walk(b, func(typ uint16, v []byte) error {
		name, ok := names().attributeNames[typ]
		switch {
		case !ok:
			list = append(list, fmt.Sprintf("attribute %d=%x", typ, v))
		case strings.HasSuffix(name, "_NAME"), strings.HasSuffix(name, "_TYPE"):
			list = append(list, fmt.Sprintf("%s=%q", name, text(v)))
		case len(v) == 4:
			list = append(list, fmt.Sprintf("%s=%d", name, binary.NativeEndian.Uint32(v)))
		case len(v) == 1:
			list = append(list, fmt.Sprintf("%s=%d", name, v[0]))
		default:
			list = append(list, fmt.Sprintf("%s=%x", name, v))
		}
		return nil
	})
	return strings.Join(list, " ")
}
