package clitest

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Terminal makes a pseudo-terminal of a size (pts(4)): the other end reads the
// bytes written to tty, and takes a deadline.
func Terminal(t *testing.T, width, height uint16) (end, tty *os.File) {
	t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	require.NoError(t, err)
	end = os.NewFile(uintptr(fd), "/dev/ptmx")
	t.Cleanup(func() { end.Close() })
	require.NoError(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	require.NoError(t, err)
	tty, err = os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { tty.Close() })
	require.NoError(t, unix.IoctlSetWinsize(int(tty.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: height, Col: width}))
	return end, tty
}

// Progress runs a prepared tool, whatever its exit status, with its standard
// error on a terminal, and returns what that showed.
func Progress(t *testing.T, cmd *exec.Cmd) (shown, stdout string) {
	t.Helper()
	end, tty := Terminal(t, 120, 20)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, tty
	require.NoError(t, cmd.Start())
	require.NoError(t, tty.Close())
	text, _ := io.ReadAll(end) // EIO when the last writer has closed
	_ = cmd.Wait()
	return string(text), out.String()
}
