//go:build !amd64

package crc

// Fast says that Update and Copy fold, so that Copy costs hardly more than a
// copy.
const Fast = false

func fold(*byte, int, uint32) (lo, hi uint64)    { panic("crc: nothing folds here") }
func foldCopy(_, _ *byte, _ int) (lo, hi uint64) { panic("crc: nothing folds here") }

// clmul multiplies two polynomials without reducing the product.
func clmul(a, b uint32) (p uint64) {
	for i := range 32 {
		p ^= uint64(b) << i & -uint64(a>>i&1)
	}
	return p
}
