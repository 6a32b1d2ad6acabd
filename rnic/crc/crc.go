package crc

import "hash/crc32"

// Sizes in bytes.
const (
	block = 256       // bytes that a turn of the fold takes
	least = 2 * block // shorter ones are left to hash/crc32
)

// Update returns the CRC of bytes with the CRC crc that are followed by p; crc
// is 0 at the beginning.
func Update(crc uint32, p []byte) uint32 {
	if Fast && len(p) >= least {
		n := len(p) &^ (block - 1)
		crc, p = ^finish(fold(&p[0], n, ^crc)), p[n:]
	}
	if len(p) == 0 {
		return crc
	}
	return crc32.Update(crc, crc32.IEEETable, p)
}

// Sum is the CRC of bytes alone, if it is known.
type Sum struct {
	Register uint32 // after the bytes, when it was 0 before
	Known    bool
}

// Copy copies src to dst, which is as long at least, and sums the bytes: it
// reads every byte once, so that the sum is that of the copy even if another
// goroutine writes to src.
func Copy(dst, src []byte) Sum {
	var r uint32
	dst = dst[:len(src)]
	if Fast && len(src) >= least {
		n := len(src) &^ (block - 1)
		r, dst, src = finish(foldCopy(&dst[0], &src[0], n)), dst[n:], src[n:]
	}
	if len(src) > 0 {
		copy(dst, src)
		r = ^crc32.Update(^r, crc32.IEEETable, dst)
	}
	return Sum{r, true}
}

// Join returns the CRC of bytes with the CRC crc that are followed by n bytes,
// less than 64 KiB, with the sum s, which is known.
func Join(crc uint32, s Sum, n int) uint32 {
	r := ^crc
	for k, bits := 0, n; bits != 0; k, bits = k+1, bits>>1 {
		if bits&1 != 0 {
			r = word(clmul(r, powers[k]) << 1)
		}
	}
	return ^(r ^ s.Register)
}

// finish is the register over the 16 bytes that a fold leaves.
func finish(lo, hi uint64) uint32 { return word(uint64(word(lo)) ^ hi) }

// word is the register over eight bytes, the first in the lowest place, when it
// was 0 before: w·x^32.
func word(w uint64) uint32 {
	return Table[7][w&0xff] ^ Table[6][w>>8&0xff] ^ Table[5][w>>16&0xff] ^ Table[4][w>>24&0xff] ^
		Table[3][w>>32&0xff] ^ Table[2][w>>40&0xff] ^ Table[1][w>>48&0xff] ^ Table[0][w>>56]
}
