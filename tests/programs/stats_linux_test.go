//go:build amd64 || arm64

package programs

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/uapi/stats"
)

// Other processes read the devices of programs, by either way: the queue pair
// of a program is seen, and whose it is.
func TestStats(t *testing.T) {
	needs(t, "ibv_rc_pingpong")
	run, err := os.MkdirTemp("", "rdma") // a socket's name is short
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(run) })
	t.Setenv("XDG_RUNTIME_DIR", run)
	t.Setenv("TMPDIR", filepath.Join(run, "tmp"))
	require.NoError(t, os.Mkdir(filepath.Join(run, "tmp"), 0o700))
	device, _ := newDevice()
	port := freePort(t)
	server := start(t, device, "ibv_rc_pingpong", "-g", "0", "-p", port)
	server.listens(port) // its queue pair is there
	var list []stats.Device
	for end := time.Now().Add(patience); len(list) == 0 && time.Now().Before(end); {
		list, _ = stats.ReadAll(t.Context()) // again while it is too busy to answer
	}
	require.Len(t, list, 1)
	d := list[0]
	require.Equal(t, "rxe0", d.Name)
	require.Equal(t, device, d.Device)
	require.Contains(t, d.Ports[0].Counters, "sent_pkts")
	require.Len(t, d.QueuePairs, 1)
	require.Equal(t, "INIT", d.QueuePairs[0].State)
	require.NotNil(t, d.QueuePairs[0].Requester)
	if supervisor == "" {
		require.Equal(t, server.Process.Pid, d.PID)
		require.Equal(t, "ibv_rc_pingpong", d.Process)
		require.Zero(t, d.QueuePairs[0].PID)
	} else {
		require.NotEqual(t, d.PID, d.QueuePairs[0].PID)
		require.Equal(t, "ibv_rc_pingpong", d.QueuePairs[0].Process)
	}
	require.NoError(t, server.Process.Signal(syscall.SIGTERM))
	_ = server.Wait()
}
