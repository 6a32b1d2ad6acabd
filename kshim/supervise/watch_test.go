//go:build linux && (amd64 || arm64)

package supervise

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/tests/must"
)

// TestWatcherWithoutDescriptors: a watcher that gets only some of its four
// descriptors is EMFILE, and keeps none of them.
func TestWatcherWithoutDescriptors(t *testing.T) {
	var before unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &before))
	count := func() int { return len(must.Get(os.ReadDir("/proc/self/fd"))(t)) }
	open := count()
	for n := range 4 {
		free := must.Get(unix.FcntlInt(0, unix.F_DUPFD_CLOEXEC, 0))(t)
		require.NoError(t, unix.Close(free))
		lower := unix.Rlimit{Cur: uint64(free + n), Max: before.Max}
		require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &lower))
		w, err := newWatcher()
		require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &before))
		require.ErrorIs(t, err, unix.EMFILE)
		require.Nil(t, w)
		require.Equal(t, open, count())
	}
}
