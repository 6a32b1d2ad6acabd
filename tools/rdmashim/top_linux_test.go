package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/tools/internal/cli/clitest"
	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/stats"
)

// On a terminal frames lie one over the other and fit; on a dumb one they
// follow each other.
func TestTopOnATerminal(t *testing.T) {
	privateSockets(t)
	_, _, write := lossyPair(t)
	write()
	run := func(name string) (shown string) {
		var err error
		for range 20 { // again while this process is too busy to answer in time
			if shown, err = runOnTerminal(t, name); err == nil && !strings.Contains(shown, "does not answer") {
				break
			}
		}
		require.NoError(t, err)
		return shown
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
	require.NotContains(t, run(""), "\x1b")
}

// runOnTerminal runs top for two intervals on a terminal of 50 columns and 7
// lines, and returns what it wrote.
func runOnTerminal(t *testing.T, name string) (string, error) {
	t.Helper()
	end, tty := clitest.Terminal(t, 50, 7)
	cmd := tool(t, pidArgs("top", "-n", "2", "-i", "0.05")...)
	cmd.Env = append(cmd.Env, "TERM="+name)
	cmd.Stdout = tty
	require.NoError(t, cmd.Start())
	require.NoError(t, tty.Close())
	text, _ := io.ReadAll(end) // EIO when the last writer has closed
	return string(text), cmd.Wait()
}

// A stopped program is named, holds up the reading of the others for a moment,
// and of one other not at all.
func TestStatsOfAStoppedProcess(t *testing.T) {
	privateSockets(t)
	own := must.Get(uapi.Open("soft?port=0", uapi.OpenConfig{}))(t)
	defer own.Close()
	other := tool(t, "sample", "write-read", "server", "--device", "soft?port=0", "--port", "0")
	out := must.Get(other.StdoutPipe())(t)
	require.NoError(t, other.Start())
	pid := other.Process.Pid
	defer other.Wait()
	defer other.Process.Kill() // which ends stopped processes, too
	_, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err, "it listens")
	require.NoError(t, other.Process.Signal(syscall.SIGSTOP))
	var status unix.WaitStatus
	must.Get(unix.Wait4(pid, &status, unix.WUNTRACED, nil))(t)
	require.True(t, status.Stopped())

	silent := fmt.Sprintf(`process %d \(.+\) does not answer within 200ms: it is stopped; kill -CONT %d lets it go on`, pid, pid)
	of := func(o outcome) (pids []int) {
		t.Helper()
		for _, d := range clitest.Decode[[]stats.Device](t, o.Well(t)) {
			if d.PID != 0 {
				pids = append(pids, d.PID)
			}
		}
		return pids
	}
	o := runReader(t, "stats", "-j")
	require.Equal(t, []int{os.Getpid()}, of(o))
	require.Regexp(t, "^rdmashim: "+silent+"\n$", o.Stderr)

	o = runReader(t, pidArgs("stats", "-j")...)
	require.Equal(t, []int{os.Getpid()}, of(o))
	require.Empty(t, o.Stderr, "the stopped one is not asked")

	o = runReader(t, "stats", "-p", strconv.Itoa(pid))
	require.Equal(t, 1, o.Code)
	require.Empty(t, o.Stdout)
	require.Regexp(t, "^rdmashim: "+silent+"\n$", o.Stderr)

	o = runReader(t, "top", "-j", "-n", "1", "-i", "50ms").Well(t)
	require.Regexp(t, "^rdmashim: "+silent+"\n$", o.Stderr)
	var frame struct {
		Devices []stats.Device
		Silent  []stats.SilentError
	}
	require.NoError(t, json.Unmarshal([]byte(o.Stdout), &frame))
	require.Len(t, frame.Silent, 1)
	require.Equal(t, pid, frame.Silent[0].PID)
	require.True(t, frame.Silent[0].Stopped)
	require.NotEmpty(t, frame.Silent[0].Process)
	documentedJSON(t)["top"].holdsText(t, "top", o.Stdout)

	require.NoError(t, other.Process.Signal(syscall.SIGCONT))
	require.Contains(t, of(runReader(t, "stats", "-j")), pid)
}
