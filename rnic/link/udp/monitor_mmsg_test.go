//go:build linux && !udpportable

package udp

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/tests/must"
)

// A goroutine that a packet woke, of many, computes for long, on the only
// processor. What comes for another goroutine finds that one preempted all the
// same: the Go runtime's monitor does not sleep on. It would for a minute in
// this process, which has no timer of its own.
func TestMonitor(t *testing.T) {
	const child = "RDMASHIM_TEST_MONITOR"
	if os.Getenv(child) != "" {
		computes(t)
		return
	}
	c := exec.CommandContext(t.Context(), must.Get(os.Executable())(t), "-test.run=^TestMonitor$", "-test.timeout=0")
	c.Env = append(os.Environ(), child+"=1", "GOMAXPROCS=1")
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out := must.Get(c.StdoutPipe())(t)
	require.NoError(t, c.Start())
	var at [2]string
	must.Get(fmt.Fscanln(out, &at[0], &at[1]))(t)
	send := func(to string) {
		s := must.Get(net.Dial("udp", to))(t)
		defer s.Close()
		must.Get(s.Write([]byte("no packet")))(t)
	}
	var before string
	require.Eventually(t, func() bool { // also of the monitor, which sleeps 10 ms at most before
		now := threads(t, c.Process.Pid, "status", "ctxt_switches")
		rests := now == before
		before = now
		return rests
	}, time.Minute, 50*time.Millisecond)
	var said string
	ended := make(chan error)
	go func() {
		_, _ = fmt.Fscanln(out, &said)
		ended <- c.Wait()
	}()
	for computing := 0; ; { // it rests between packets, in the beginning
		send(at[0])
		if computing++; threads(t, c.Process.Pid, "stat", ") R ") == "" {
			computing = 0
		}
		if computing == 20 {
			send(at[1])
		}
		select {
		case err := <-ended:
			require.NoError(t, err, stderr.String())
			require.Equal(t, "served", said)
			return
		case <-time.After(time.Millisecond):
		}
	}
}

// computes is the process that computes.
func computes(t *testing.T) {
	l := listen(t, loopback4)
	c := must.Get(net.ListenPacket("udp", "127.0.0.1:0"))(t)
	defer c.Close()
	var served atomic.Bool
	go func() {
		_, _, _ = c.ReadFrom(make([]byte, 64))
		served.Store(true)
	}()
	fmt.Println(l.Caps().Local, c.LocalAddr())
	for range 100 {
		require.NoError(t, l.Wait())
		must.Get(l.Recv(make([]link.Packet, 1)))(t)
	}
	for start := time.Now(); !served.Load(); { // a garbage collection would wake the monitor
		if time.Since(start) > 30*time.Second {
			t.Fatal("the other goroutine waits for the processor")
		}
	}
	fmt.Println("served")
}

// threads returns the lines of a file of each thread of a process that begin
// with, or contain, word.
func threads(t *testing.T, pid int, file, word string) string {
	var all strings.Builder
	for _, path := range must.Get(filepath.Glob(fmt.Sprintf("/proc/%d/task/*/%s", pid, file)))(t) {
		text, _ := os.ReadFile(path) // of a thread that ends there is nothing to say
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, word) {
				all.WriteString(line)
			}
		}
	}
	return all.String()
}
