//go:build guest && linux

package guesttest

import (
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/kshim/rdmacm"
	"github.com/rdmashim/rdmashim/tests/must"
)

// TestOneThreadsCredentials: commands of a thread that became another user are
// given by the one that opened the file.
func TestOneThreadsCredentials(t *testing.T) {
	a, b := newSide(t), newSide(t)
	v := serve(t, b)
	ctx := limited(t)
	done := make(chan error)
	go func() { // the thread ends with the goroutine, because it stays locked
		runtime.LockOSThread()
		const nobody = 65534
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, nobody, nobody, nobody); errno != 0 {
			done <- errno
			return
		}
		id, qp, err := a.dial(ctx, v.l.Addr())
		if err == nil {
			if err = id.Destroy(); err == nil {
				err = qp.close()
			}
		}
		done <- err
	}()
	require.NoError(t, <-done)
	c := <-v.accepted
	require.NoError(t, c.err)
	<-c.req.Context().Done()
	require.NoError(t, c.close())
}

// inChild makes this binary run one test in a process of its own, because the
// process changes its user.
const inChild = "RDMASHIM_TEST_SETUID"

// TestTheProcessCredentials: a channel that was opened before is of no use any
// more and says so; a channel that is opened afterwards works, although each
// thread has credentials of its own by then.
func TestTheProcessCredentials(t *testing.T) {
	if os.Getenv(inChild) == "" {
		kernel(t)
		cmd := exec.Command("/proc/self/exe", "-test.run=^TestTheProcessCredentials$", "-test.v")
		cmd.Env = append(os.Environ(), inChild+"=1")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return
	}
	k := kernel(t)
	before := must.Get(rdmacm.Open(k))(t)
	defer before.Close()
	id := must.Get(before.NewID())(t)
	require.NoError(t, syscall.Setuid(0)) // to the same
	_, err := before.NewID()
	require.ErrorIs(t, err, syscall.EACCES)
	require.ErrorContains(t, err, "open it anew")
	require.ErrorIs(t, id.Destroy(), syscall.EACCES)

	a, b := newSide(t), newSide(t)
	v := serve(t, b)
	for range 10 {
		id, qp, err := a.dial(limited(t), v.l.Addr())
		require.NoError(t, err)
		c := <-v.accepted
		require.NoError(t, c.err)
		require.NoError(t, id.Destroy())
		<-c.req.Context().Done()
		require.NoError(t, c.close())
		require.NoError(t, qp.close())
	}
}
