//go:build race

package shm

// copyBytes copies src into a ring, unseen by the race detector: a packet that
// is sent again for nothing may lend memory that its owner has back already.
// The peer does not look at it.
//
//go:norace
func copyBytes(dst, src []byte) {
	for i := range src {
		dst[i] = src[i]
	}
}
