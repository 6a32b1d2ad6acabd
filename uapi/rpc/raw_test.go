package rpc

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/mem"
)

// TestRaw: the codec takes buffers, and nothing else. tests/grpc has streams of
// it.
func TestRaw(t *testing.T) {
	sent := mem.BufferSlice{mem.SliceBuffer("bytes")}
	b, err := Raw{}.Marshal(&sent)
	require.NoError(t, err)
	require.Equal(t, sent, b)
	var got mem.BufferSlice
	require.NoError(t, Raw{}.Unmarshal(b, &got))
	require.Equal(t, "bytes", string(got.Materialize()))
	_, err = Raw{}.Marshal(&testgrpc.Empty{})
	require.ErrorContains(t, err, "*grpc_testing.Empty is not *mem.BufferSlice")
	require.ErrorContains(t, Raw{}.Unmarshal(b, &testgrpc.Empty{}), "*grpc_testing.Empty is not *mem.BufferSlice")
}

// TestBuffers: a pool lends a session's memory, other memory beyond its bound,
// and is grpc's where there is no session.
func TestBuffers(t *testing.T) {
	require.Equal(t, mem.DefaultBufferPool(), Buffers(context.Background()))
	c := ours(t, ServerConfig{}, ClientConfig{})
	pool := c.Buffers()
	var all []*[]byte
	for range 70 { // 64 are lent
		all = append(all, pool.Get(1<<20))
		require.Len(t, *all[len(all)-1], 1<<20)
	}
	m := c.Session().Memory()
	require.Nil(t, m.Lend(1<<20))
	for _, b := range all {
		pool.Put(b)
	}
	lent := m.Lend(1 << 20)
	require.NotNil(t, lent)
	m.Release(lent)
}
