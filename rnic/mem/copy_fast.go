//go:build !race

package mem

import "github.com/rdmashim/rdmashim/rnic/crc"

// summed is the least that is summed while it is copied: the sum of less, which
// is joined to that of the headers later, saves nothing.
const summed = 1024

func copyBytes(dst, src []byte) { copy(dst, src) }

// copySum is copyBytes, and sums where that costs hardly more.
func copySum(dst, src []byte) crc.Sum {
	if crc.Fast && len(src) >= summed {
		return crc.Copy(dst, src)
	}
	copy(dst, src)
	return crc.Sum{}
}

func raceDisable() {}
func raceEnable()  {}
