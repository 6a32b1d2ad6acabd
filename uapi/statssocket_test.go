//go:build linux || darwin

package uapi_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi/stats"
)

// privateSockets gives the test a directory for sockets of its own.
func privateSockets(t *testing.T) string {
	t.Helper()
	run := must.Get(os.MkdirTemp("", "rdma"))(t)
	t.Cleanup(func() { os.RemoveAll(run) })
	t.Setenv("XDG_RUNTIME_DIR", run)
	t.Setenv("TMPDIR", filepath.Join(run, "tmp"))
	return run
}

// readAll is stats.ReadAll, again while this process is too busy to answer in
// time.
func readAll(t *testing.T) (list []stats.Device, errs []error) {
	t.Helper()
	for range 100 {
		list, errs = stats.ReadAll(t.Context())
		var silent *stats.SilentError
		if !errors.As(errors.Join(errs...), &silent) {
			break
		}
	}
	return list, errs
}

// A process has one socket while it has a device that is offered, and it tells
// of those.
func TestOffer(t *testing.T) {
	run := privateSockets(t)
	sockets := func() int {
		return len(must.Get(filepath.Glob(filepath.Join(run, "rdmashim", "*.sock")))(t))
	}
	silent := openDevice(t, "soft?port=0&stats=off")
	openDevice(t, "sim")
	require.Zero(t, sockets())
	a, b := openDevice(t, "soft?port=0"), openDevice(t, "soft?port=0&stats=on")
	sim := openDevice(t, "sim?stats=on")
	require.Equal(t, 1, sockets())
	list, errs := readAll(t)
	require.Empty(t, errs)
	names := map[string]bool{}
	for _, d := range list {
		require.Equal(t, os.Getpid(), d.PID)
		names[d.Device] = true
	}
	require.Equal(t, map[string]bool{deviceOf(t, a): true, deviceOf(t, b): true, deviceOf(t, sim): true}, names)
	own, err := silent.Stats()
	require.NoError(t, err, "the process itself reads it")
	require.NotEmpty(t, own.Ports)

	require.NoError(t, a.Close())
	require.NoError(t, b.Close())
	require.Equal(t, 1, sockets())
	require.NoError(t, sim.Close())
	require.Zero(t, sockets())
	openDevice(t, "soft?port=0")
	require.Equal(t, 1, sockets())
}

// A device works without its socket.
func TestOfferThatCannotBe(t *testing.T) {
	run := privateSockets(t)
	require.NoError(t, os.WriteFile(filepath.Join(run, "rdmashim"), nil, 0o600))
	d := openDevice(t, "soft?port=0")
	must.Get(d.Stats())(t)
	list, errs := readAll(t)
	require.Empty(t, list)
	require.Empty(t, errs)
}
