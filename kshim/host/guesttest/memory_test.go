//go:build guest && linux

package guesttest

import (
	"bytes"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestStackMemory: a local array that is registered has left the stack, so that
// peers' writes arrive in it, however the stack moves.
func TestStackMemory(t *testing.T) {
	p := connect(t, device, 4096)
	for i := range p.bufA {
		p.bufA[i] = byte(i) | 1
	}
	done := make(chan []byte)
	go func() { // a goroutine of its own begins with a small stack
		var local [4096]byte
		mr, err := p.b.RegMR(local[:], everything)
		if err != nil {
			t.Error(err)
		}
		p.at, err = p.b.QueryMR(mr)
		if err != nil {
			t.Error(err)
		}
		deep(2000)
		p.write(t, len(local))
		if err := p.b.DeregMR(mr); err != nil {
			t.Error(err)
		}
		done <- bytes.Clone(local[:])
	}()
	require.Equal(t, p.bufA, <-done)
}

// deep makes the stack grow, and so move.
func deep(n int) int {
	var fill [256]byte
	fill[n%256] = byte(n)
	if n == 0 {
		return 0
	}
	return deep(n-1) + int(fill[(n+1)%256])
}

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
