//go:build guest && linux

package guesttest

import (
	"bytes"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCollector: heap memory stays where the device writes while the garbage
// collector runs and gives memory back to the system.
func TestCollector(t *testing.T) {
	p := connect(t, device, 1<<16)
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		for {
			select {
			case <-stop:
				return
			default:
				_ = make([]byte, 1<<20)
				debug.FreeOSMemory()
			}
		}
	}()
	for i := range 60 {
		size := 8 << (i % 14)
		target := make([]byte, size)
		mr, err := p.b.RegMR(target, everything)
		require.NoError(t, err)
		p.at, err = p.b.QueryMR(mr)
		require.NoError(t, err)
		for j := range p.bufA[:size] {
			p.bufA[j] = byte(i + j)
		}
		runtime.Gosched()
		p.write(t, size)
		require.True(t, bytes.Equal(p.bufA[:size], target), size)
		require.NoError(t, p.b.DeregMR(mr))
	}
}
