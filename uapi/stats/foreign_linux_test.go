package stats

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/privatefile"
	"github.com/rdmashim/rdmashim/tests/must"
)

const nobody = 65534

// asNobody runs f as another user, on a thread of which nothing is left.
func asNobody(t *testing.T, f func() error) error {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can become another user: run the tests as root")
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		if _, _, errno := syscall.RawSyscall(syscall.SYS_SETRESUID, ^uintptr(0), nobody, ^uintptr(0)); errno != 0 {
			done <- errno
			return
		}
		done <- f()
	}()
	return <-done
}

// Where file modes do not keep other users away, their credentials do: another
// user's request gets no answer.
func TestForeignClient(t *testing.T) {
	dir := private(t)
	s := serve(t, one)
	ask := func() (string, error) {
		c, err := net.Dial("unix", s.path)
		if err != nil {
			return "", err
		}
		defer c.Close()
		text, _ := io.ReadAll(c)
		return string(text), nil
	}
	require.ErrorIs(t, asNobody(t, func() error { _, err := ask(); return err }), syscall.EACCES)

	for _, path := range []string{filepath.Dir(dir), dir, s.path} {
		require.NoError(t, os.Chmod(path, 0o777))
	}
	var heard string
	require.NoError(t, asNobody(t, func() (err error) { heard, err = ask(); return err }))
	require.Empty(t, heard)
	heard = must.Get(ask())(t)
	require.Contains(t, heard, "soft0")
}

// A socket that another user put there is not believed.
func TestForeignServer(t *testing.T) {
	dir := private(t)
	require.NoError(t, privatefile.MakeDir(dir))
	path := filepath.Join(dir, fmt.Sprintf("%d-1.sock", os.Getpid()))
	require.NoError(t, os.Chmod(filepath.Dir(dir), 0o777))
	require.NoError(t, os.Chmod(dir, 0o777))
	var l net.Listener
	require.NoError(t, asNobody(t, func() (err error) { l, err = net.Listen("unix", path); return err }))
	defer l.Close()
	_, err := readProcess(t.Context(), path)
	require.ErrorIs(t, err, syscall.EPERM)
	require.ErrorContains(t, err, "user 65534")

	list, errs := ReadAll(t.Context())
	require.Empty(t, list, "a directory that others can write to is passed over")
	require.Empty(t, errs)
	require.NoError(t, os.Chmod(dir, 0o700))
	list, errs = ReadAll(t.Context())
	require.Empty(t, list)
	require.Len(t, errs, 1)
}
