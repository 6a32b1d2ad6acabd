//go:build race

package mem

import (
	"runtime"

	"github.com/rdmashim/rdmashim/rnic/crc"
)

// copyBytes copies len(src) bytes unseen by the race detector. copy itself is
// reported even from a norace function; assignments of arrays are not.
//
//go:norace
func copyBytes(dst, src []byte) {
	for len(src) >= 64 {
		*(*[64]byte)(dst) = *(*[64]byte)(src)
		dst, src = dst[64:], src[64:]
	}
	for i := range src {
		dst[i] = src[i]
	}
}

// copySum is copyBytes: crc.Copy would be seen.
func copySum(dst, src []byte) crc.Sum {
	copyBytes(dst, src)
	return crc.Sum{}
}

// Between these two the race detector takes no notice of sync/atomic, so that a
// peer's access to memory never counts as a race with its owner.
func raceDisable() { runtime.RaceDisable() }
func raceEnable()  { runtime.RaceEnable() }
