package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/tests/amount"
	"github.com/rdmashim/rdmashim/tests/must"
)

// leaveWithin is the documented bound in which a process ends after the other
// one has gone.
const leaveWithin = 5 * time.Second

// TestKill kills either process of the demo at random moments, some times: the
// other one ends with status 1 within the bound and says what was lost, the
// client by RETRY_EXC_ERR; no process stays and the addresses are free at once.
func TestKill(t *testing.T) {
	// Orphans become this process's children, so that their status is seen.
	require.NoError(t, unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	path := writeFile(t, 64<<20)
	// A run to the end tells how long the moments may wait.
	start := time.Now()
	requireProof(t, runDemo(t, "--delay", "2ms", path), path)
	whole := time.Since(start)

	times := amount.Of(10, 20)
	if testing.Short() {
		times = 4
	}
	var retryExceeded, killed atomic.Int32
	t.Run("moments", func(t *testing.T) {
		for i := range times {
			moment := time.Duration(rand.New(rand.NewPCG(seed, uint64(i))).Float64() * 0.9 * float64(whole))
			victim := []string{"server", "client"}[i%2]
			t.Run(fmt.Sprintf("%d_%s", i, victim), func(t *testing.T) {
				t.Parallel()
				said, inTime := "", false
				for tries := 0; !inTime; tries++ { // a moment after the end is none
					require.Less(t, tries, 8, "the demo is over before it can be killed after %v", moment)
					said, inTime = killOnce(t, path, fmt.Sprintf("127.0.7.%d", i+1), victim, moment)
					moment /= 2
				}
				killed.Add(1)
				if victim == "server" && strings.Contains(said, "RETRY_EXC_ERR") {
					retryExceeded.Add(1)
				}
			})
		}
	})
	if !t.Failed() {
		require.EqualValues(t, times, killed.Load())
		// Most moments lie after the connection; of four kills, all may lie
		// before.
		require.GreaterOrEqual(t, int(retryExceeded.Load()), times/5-1, "a client whose server dies learns it from RDMA unless they were not connected yet")
	}
}

// killOnce starts a demo, kills one side at the moment, and returns what the
// other side said. It returns false when the demo was over before.
func killOnce(t *testing.T, path, addr, victim string, moment time.Duration) (said string, inTime bool) {
	t.Helper()
	stderr := must.Get(os.Create(filepath.Join(t.TempDir(), "stderr")))(t)
	defer stderr.Close()
	cmd := tool(t, "demo", "--json", "--delay", "2ms", "--device", "soft:"+addr, path)
	cmd.Stderr = stderr
	require.NoError(t, cmd.Start())
	client := cmd.Process.Pid
	var server int
	require.Eventually(t, func() bool {
		server = serverOf(client)
		return server != 0
	}, time.Minute, time.Millisecond, "the demo starts a server process")
	<-time.After(moment)

	dead, other := server, client
	if victim == "client" {
		dead, other = client, server
	}
	_ = syscall.Kill(dead, syscall.SIGKILL) // ESRCH: it was over before
	at := time.Now()
	// The victim's parent, which may be another process, has to reap it.
	code, reaped := reap(t, cmd, other, client)
	took := time.Since(at)
	if victim == "client" {
		_, _ = reap(t, cmd, client, client)
	}
	if !reaped || code == 0 {
		// A server that has had its client's goodbye has done its work.
		return "", false
	}
	text := must.Get(os.ReadFile(stderr.Name()))(t)
	said = string(text)
	require.Equal(t, 1, code, "the surviving process's exit status; it said %q", said)
	bound := 4 * leaveWithin // at the pace of the race detector, on a busy machine
	require.Less(t, took, bound, "it said %q", said)
	require.Regexp(t, "lost|went away|before it listened|nobody was served", said)
	if victim == "server" && strings.Contains(said, "stopped") {
		// Through shared memory a queue pair may have ended before it had a
		// work request, which then is flushed.
		require.Regexp(t, "RETRY_EXC_ERR|work request 0, .*: WR_FLUSH_ERR", said)
	}

	// Nothing is left: no process, and the address is free at once.
	for _, pid := range []int{server, client} {
		if pid == other || pid == client {
			require.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH)
		}
	}
	conn := must.Get(net.ListenPacket("udp", addr+":4791"))(t)
	require.NoError(t, conn.Close())
	return said, true
}

// reap waits for a process, which is the command itself or its orphan, and
// returns its exit status. It returns false for an orphan that the command had
// reaped before it ended.
func reap(t *testing.T, cmd *exec.Cmd, pid, client int) (code int, reaped bool) {
	t.Helper()
	if pid == client {
		_ = cmd.Wait()
		return cmd.ProcessState.ExitCode(), true
	}
	var status syscall.WaitStatus
	require.Eventually(t, func() bool {
		got, err := syscall.Wait4(pid, &status, syscall.WNOHANG, nil)
		reaped = err == nil && got == pid
		// While the command lives the server is its child, not ours.
		gone := errors.Is(err, syscall.ECHILD) && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
		return reaped || gone
	}, time.Minute, 5*time.Millisecond, "process %d ends and is reaped", pid)
	return status.ExitStatus(), reaped
}

// serverOf is the server process that the demo pid started, 0 if there is none
// yet: other children are the Go runtime's, for a moment.
func serverOf(pid int) int {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, l := range lists {
		text, _ := os.ReadFile(l)
		for _, child := range strings.Fields(string(text)) {
			command, _ := os.ReadFile("/proc/" + child + "/cmdline")
			if n, err := strconv.Atoi(child); err == nil && strings.Contains(string(command), "\x00server\x00") {
				return n
			}
		}
	}
	return 0
}
