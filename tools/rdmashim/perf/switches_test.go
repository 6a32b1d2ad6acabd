package perf

import (
	"math"
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// Goroutines that wait are counted, and not system calls. One during which
// another thread gets the processor may be: of some rounds the best one counts.
func TestSwitches(t *testing.T) {
	const n, rounds = 200, 100
	f, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer f.Close()
	b := make([]byte, 1)
	calls := math.Inf(1)
	for range rounds {
		was := switches()
		for range n {
			_, _ = f.Read(b)
		}
		calls = min(calls, switches()-was)
	}
	ping, pong := make(chan int), make(chan int)
	go func() {
		for range ping {
			pong <- 1
		}
	}()
	was := switches()
	for range rounds * n {
		ping <- 1
		<-pong
	}
	waits := switches() - was
	close(ping)
	require.Less(t, calls, n/10., "%v", runtime.Version())
	require.Greater(t, waits, rounds*n/2., "%v", runtime.Version())
	t.Log(calls, waits)
}
