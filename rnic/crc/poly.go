package crc

import "hash/crc32"

// Polynomials of degree below 32.
const (
	One     uint32 = 1 << 31
	Inverse uint32 = crc32.IEEE<<1&(1<<32-1) | 1 // x^-1: (P + 1) / x
)

// Mul multiplies two polynomials modulo that of the CRC.
func Mul(a, b uint32) uint32 {
	var p uint32
	for range 32 {
		p ^= b & -(a >> 31)
		a <<= 1
		b = b>>1 ^ crc32.IEEE&-(b&1)
	}
	return p
}

// ByteTable holds the contribution of each value of a byte to the register when
// a fixed number of bytes has followed it.
type ByteTable = [256]uint32

// Table[n] is the table for n bytes behind.
var Table = [8]ByteTable{
	Contribution(0), Contribution(1), Contribution(2), Contribution(3),
	Contribution(4), Contribution(5), Contribution(6), Contribution(7),
}

// Contribution makes the table for so many bytes behind.
func Contribution(behind int) (t ByteTable) {
	for v := range t {
		r := crc32.IEEETable[v]
		for range behind {
			r = r>>8 ^ crc32.IEEETable[r&0xff]
		}
		t[v] = r
	}
	return t
}

// powers[k] is x^(8·2^k - 32): word multiplies by x^32 besides.
var powers = func() (t [16]uint32) {
	square := One >> 8 // x^8
	back := Inverse
	for range 5 {
		back = Mul(back, back)
	}
	for k := range t {
		t[k] = Mul(square, back)
		square = Mul(square, square)
	}
	return t
}()
