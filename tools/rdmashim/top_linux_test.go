package main

import (
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// terminal makes a pseudo-terminal of a size (pts(4)): what is written to tty is read from the other end.
func terminal(t *testing.T, width, height uint16) (end, tty *os.File) {
	t.Helper()
	end, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { end.Close() })
	fd := int(end.Fd())
	require.NoError(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	require.NoError(t, err)
	tty, err = os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { tty.Close() })
	require.NoError(t, unix.IoctlSetWinsize(int(tty.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: height, Col: width}))
	return end, tty
}

// On a terminal frames lie one over the other and fit; on a dumb one they follow each other.
func TestTopOnATerminal(t *testing.T) {
	privateSockets(t)
	_, _, write := lossyPair(t)
	write()
	run := func(name string) string {
		end, tty := terminal(t, 50, 7)
		cmd := tool(t, pidArgs("top", "-n", "2", "-i", "0.05")...)
		cmd.Env = append(cmd.Env, "TERM="+name)
		cmd.Stdout = tty
		require.NoError(t, cmd.Start())
		require.NoError(t, tty.Close())
		text, _ := io.ReadAll(end) // EIO when the last writer has closed
		require.NoError(t, cmd.Wait())
		return string(text)
	}
	frames := strings.Split(run("xterm"), "\x1b[H")
	require.Len(t, frames, 4)
	require.Equal(t, "\x1b[2J", frames[0])
	for _, f := range frames[1:] {
		require.Contains(t, f, "2 devices, 2 queue pairs")
		text := strings.ReplaceAll(strings.TrimSuffix(f, "\x1b[J"), "\x1b[K", "")
		lines := strings.Split(strings.TrimSuffix(text, "\r\n"), "\r\n")
		require.Len(t, lines, 6)
		for _, l := range lines {
			require.LessOrEqual(t, utf8.RuneCountInString(l), 50)
			require.NotContains(t, l, "\x1b")
		}
	}
	require.NotContains(t, run("dumb"), "\x1b")
}
