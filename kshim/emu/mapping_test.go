package emu

import (
	"bytes"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/tests/amount"
	"github.com/rdmashim/rdmashim/tests/must"
)

// TestRingMemory: another ring gets a ring's memory behind its object and its
// mapping, and not behind one of them.
func TestRingMemory(t *testing.T) {
	c := newClient(t, true)
	create := func() (handle uint32, ring []byte) {
		r := reply[abi.CreateCQResp](c, abi.CmdCreateCQ, &abi.CreateCQ{Response: c.addr, CQE: 1023, CompChannel: -1}, 24)
		var x abi.RXECreateCQResp
		require.NoError(t, x.Parse(c.page[8:24]))
		return r.CQHandle, must.Get(c.f.Mmap(x.MI.Offset, int(x.MI.Size)))(t)
	}
	destroy := func(handle uint32) {
		must.Get(c.do(abi.CmdDestroyCQ, &abi.DestroyCQ{Response: c.addr, CQHandle: handle}, 8))(t)
	}
	unmap := func(ring []byte) { require.NoError(t, c.f.Munmap(ring)) }

	for _, behind := range []string{"its object", "its mapping"} {
		handle, ring := create()
		for i := range ring {
			ring[i] = 7
		}
		if behind == "its object" {
			destroy(handle)
		} else {
			unmap(ring)
		}
		for range 4 {
			_, other := create()
			require.Equal(t, byte(0), other[len(other)-1])
			require.NotSame(t, &ring[0], &other[0])
		}
		require.Equal(t, bytes.Repeat([]byte{7}, len(ring)), ring, behind)
	}

	amount.Unraced(t) // the race detector lets pools lose what they have
	const rounds = 200
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	size := 0
	for n := range rounds {
		handle, ring := create()
		size = len(ring)
		require.Zero(t, bytes.Count(ring[abi.QueueBufData:], []byte{1}), n)
		ring[size-1] = 1
		if n%2 == 0 {
			destroy(handle)
			unmap(ring)
		} else {
			unmap(ring)
			destroy(handle)
		}
	}
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(rounds*size/2), "%d rings of %d bytes", rounds, size)
}
