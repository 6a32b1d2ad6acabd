//go:build linux && !udpportable

package udp

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMergingIsKept: links have one socket that keeps the kernel merging, and
// the next link takes it from the last one. A link that merges counts until it
// is closed, which may be twice. That the socket goes at last is leak.Main's.
func TestMergingIsKept(t *testing.T) {
	state := func() (int, *os.File) {
		merging.mu.Lock()
		defer merging.mu.Unlock()
		return merging.users, merging.file
	}
	users, _ := state()
	kept := 0
	var before *os.File
	for range 20 {
		startMerging()
		n, file := state()
		require.Equal(t, users+1, n)
		require.NotNil(t, file)
		if file == before { // sync.Pool may have dropped it
			kept++
		}
		before = file
		l := listenWith(t, loopback4, Options{})
		if l.offload.gro {
			n++
		}
		during, same := state()
		require.Equal(t, n, during)
		require.Same(t, file, same)
		require.NoError(t, l.Close())
		require.NoError(t, l.Close())
		stopMerging()
		n, _ = state()
		require.Equal(t, users, n)
	}
	require.Positive(t, kept)
}
