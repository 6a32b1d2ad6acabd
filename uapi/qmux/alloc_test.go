package qmux_test

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/amount"
	"github.com/rdmashim/rdmashim/tests/must"
)

// TestNoAllocations: data costs no allocation for a record, on either side,
// whichever side waits.
func TestNoAllocations(t *testing.T) {
	if amount.Race {
		t.Skip("the race detector allocates; run it without -race")
	}
	client, server := tcp(t)
	a, b := both(t, client, server, nil)
	out := must.Get(a.OpenStreamSync(soon(t)))(t)
	data, buf := make([]byte, 1<<20), make([]byte, 1<<16)
	must.Get(out.Write(data[:1]))(t)
	in := must.Get(b.AcceptStream(soon(t)))(t)
	must.Get(io.ReadFull(in, buf[:1]))(t)
	read := make(chan error, 1)
	order := make(chan struct{})
	defer close(order)
	go func() {
		for range order {
			var err error
			for left := len(data); left > 0 && err == nil; {
				var n int
				n, err = in.Read(buf[:min(left, len(buf))])
				left -= n
			}
			read <- err
		}
	}()
	var failed error
	move := func() {
		order <- struct{}{}
		if _, err := out.Write(data); err != nil {
			failed = err
		}
		if err := <-read; err != nil {
			failed = err
		}
	}
	for range 20 { // until the windows have grown
		move()
	}
	records := float64(len(data)) / (16 << 10)
	require.Less(t, testing.AllocsPerRun(50, move)/records, 0.1)
	require.NoError(t, failed)
}
