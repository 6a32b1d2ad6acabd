package perf

import (
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// Goroutines that wait are counted, and not system calls.
func TestSwitches(t *testing.T) {
	const n = 20000
	f, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer f.Close()
	was := switches()
	b := make([]byte, 1)
	for range n {
		_, _ = f.Read(b)
	}
	calls := switches() - was
	ping, pong := make(chan int), make(chan int)
	go func() {
		for range ping {
			pong <- 1
		}
	}()
	was = switches()
	for range n {
		ping <- 1
		<-pong
	}
	waits := switches() - was
	close(ping)
	require.Less(t, calls, n/10., "%v", runtime.Version())
	require.Greater(t, waits, n/2., "%v", runtime.Version())
	t.Log(calls, waits)
}
