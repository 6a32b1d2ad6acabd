package wire

import "encoding/binary"

// Sum adds the 16-bit words of b to s; an odd last byte counts as if a 0
// followed. It is the Internet's checksum (RFC 1071) before Fold.
func Sum(s uint64, b []byte) uint64 {
	for ; len(b) >= 4; b = b[4:] {
		s += uint64(binary.BigEndian.Uint32(b))
	}
	if len(b) >= 2 {
		s += uint64(binary.BigEndian.Uint16(b))
		b = b[2:]
	}
	if len(b) > 0 {
		s += uint64(b[0]) << 8
	}
	return s
}

// Fold brings a sum to 16 bits with end-around carry.
func Fold(s uint64) uint16 {
	for s > 0xffff {
		s = s>>16 + s&0xffff
	}
	return uint16(s)
}
