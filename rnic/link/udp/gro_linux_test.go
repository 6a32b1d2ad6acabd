//go:build linux && !udpportable

package udp

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestMergingIsKept: links have one socket that keeps the kernel merging, and
// the next link takes it from the last one. A link that merges counts until it
// is closed, which may be twice, and its garbage is collected. The last one's
// collection closes the socket.
func TestMergingIsKept(t *testing.T) {
	look := func() (users, fd int) {
		merging.mu.Lock()
		defer merging.mu.Unlock()
		return merging.users, merging.fd
	}
	fd := 0
	requireUsers := func(want int) {
		users, now := look()
		require.Equal(t, []int{want, fd}, []int{users, now})
	}
	collected := func(want int) {
		require.Eventually(t, func() bool { runtime.GC(); users, _ := look(); return users <= want }, time.Minute, time.Millisecond)
	}
	collected(0)
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	startMerging()
	_, fd = look()
	require.Positive(t, fd)
	for range 3 {
		l := listenWith(t, loopback4, Options{})
		during := 1
		if l.offload.gro {
			during++
		}
		requireUsers(during)
		require.NoError(t, l.Close())
		require.NoError(t, l.Close())
		requireUsers(during)
		collected(1)
		requireUsers(1)
		stopMerging()
		startMerging()
		requireUsers(2)
		collected(1)
		requireUsers(1)
	}
	stopMerging()
	requireUsers(1)
	collected(0)
	fd = -1
	requireUsers(0)
}
