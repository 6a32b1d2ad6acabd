package wire

import "encoding/binary"

// MaxVarint is the largest number that a varint holds, 2^62-1.
const MaxVarint = 1<<62 - 1

// ParseVarint reads the varint at the start of b and returns its value and its
// length, 1, 2, 4 or 8 bytes. The length is 0 if b ends before the varint does.
func ParseVarint(b []byte) (v uint64, n int) {
	if len(b) == 0 {
		return 0, 0
	}
	n = 1 << (b[0] >> 6)
	if len(b) < n {
		return 0, 0
	}
	switch n {
	case 1:
		return uint64(b[0]), 1
	case 2:
		return uint64(binary.BigEndian.Uint16(b)) & (1<<14 - 1), 2
	case 4:
		return uint64(binary.BigEndian.Uint32(b)) & (1<<30 - 1), 4
	}
	return binary.BigEndian.Uint64(b) & MaxVarint, 8
}

// AppendVarint appends v in its shortest form to b.
func AppendVarint(b []byte, v uint64) []byte {
	switch VarintLen(v) {
	case 1:
		return append(b, byte(v))
	case 2:
		return binary.BigEndian.AppendUint16(b, uint16(v)|1<<14)
	case 4:
		return binary.BigEndian.AppendUint32(b, uint32(v)|2<<30)
	}
	return binary.BigEndian.AppendUint64(b, v|3<<62)
}

// VarintLen returns the bytes of v's shortest form: 1, 2, 4 or 8.
func VarintLen(v uint64) int {
	switch {
	case v < 1<<6:
		return 1
	case v < 1<<14:
		return 2
	case v < 1<<30:
		return 4
	}
	return 8
}
