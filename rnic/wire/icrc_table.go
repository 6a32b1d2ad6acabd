package wire

import "hash/crc32"

// byteTable holds the contribution of each value of a byte to the CRC register
// when a fixed number of bytes has followed it.
type byteTable = [256]uint32

// The numbers in the variables below are bytes from the field to the end of the
// UDP header.
var (
	// shift[n] is the table for n bytes behind.
	shift = [8]byteTable{
		contribution(0), contribution(1), contribution(2), contribution(3),
		contribution(4), contribution(5), contribution(6), contribution(7),
	}
	ip4Length = [2]byteTable{contribution(25), contribution(24)}
	ip4ID     = [2]byteTable{contribution(idDistance + 1), contribution(idDistance)}
	ip6Length = [2]byteTable{contribution(43), contribution(42)}
)

// idDistance is the number of bytes between the IPv4 identification and the
// BTH.
const idDistance = 22

func contribution(distance int) (t byteTable) {
	for v := range t {
		r := crc32.IEEETable[v]
		for range distance {
			r = r>>8 ^ crc32.IEEETable[r&0xff]
		}
		t[v] = r
	}
	return t
}

// Polynomials over GF(2) of degree below 32 are kept reflected, as the CRC
// register is: bit 31 is the coefficient of x^0.
const (
	polyOne     uint32 = 1 << 31
	polyInverse uint32 = crc32.IEEE<<1&(1<<32-1) | 1 // x^-1: (P + 1) / x
)

// mul multiplies two polynomials modulo that of the CRC.
func mul(a, b uint32) uint32 {
	var p uint32
	for range 32 {
		p ^= b & -(a >> 31)
		a <<= 1
		b = b>>1 ^ crc32.IEEE&-(b&1)
	}
	return p
}

// back[0][n] is x^-8n and back[1][n] is x^-8·256n: multiplied with one of each
// the register goes back over up to 65535 zero bytes.
var back = func() (t [2]byteTable) {
	step := polyInverse
	for range 3 {
		step = mul(step, step)
	}
	for i := range t {
		t[i][0] = polyOne
		for n := 1; n < 256; n++ {
			t[i][n] = mul(t[i][n-1], step)
		}
		step = mul(t[i][255], step)
	}
	return t
}()

// SolveID finds the IPv4 identification that makes up the difference between a
// received ICRC and that computed for the identification 0. length is the
// number of bytes from the BTH to the last before the ICRC. ok is false if no
// identification does: the packet is corrupt.
//
// The CRC is linear, so the difference is the identification as a polynomial,
// times x to the number of bits that follow it. Divided by that it must leave
// sixteen bits.
func SolveID(diff uint32, length int) (id uint16, ok bool) {
	if length < 0 || length > 0xffff-idDistance-2 {
		return 0, false
	}
	n := length + idDistance + 2 // behind the register's low half, where the two bytes entered
	r := mul(mul(diff, back[0][n&0xff]), back[1][n>>8])
	return uint16(r<<8&0xff00 | r>>8&0xff), r>>16 == 0
}
