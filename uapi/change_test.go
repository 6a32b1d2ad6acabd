package uapi_test

import (
	"context"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/uapitest"
)

func TestReRegMR(t *testing.T) {
	t.Parallel()
	a, b := uapitest.Pair(t, "")
	qa, qb := mustQP(t, a, uapi.QPConfig{SendDepth: 8}), mustQP(t, b, uapi.QPConfig{SendDepth: 8})
	connectPair(t, a, qa, b, qb)
	src, _ := mustMR(t, a, []byte("0123456789abcdef"), uapi.AccessLocalWrite)
	old := make([]byte, 32)
	mr, info := mustMR(t, b, old, uapi.AccessLocalWrite)
	const remote = uapi.AccessLocalWrite | uapi.AccessRemoteWrite

	require.NoError(t, b.ReRegMR(mr, nil, remote))
	now := must.Get(b.QueryMR(mr))(t)
	info.Access = remote
	require.Equal(t, info, now)
	write := func(info uapi.MRInfo, at uint64) uapi.Status {
		t.Helper()
		must.Get(a.PostWrite(qa, src, 0, info.Addr+at, info.RKey, 16))(t)
		wc := make([]uapi.WC, 1)
		must.Get(a.WaitCQ(context.Background(), qa, wc))(t)
		return wc[0].Status
	}
	require.Equal(t, uapi.WCSuccess, write(now, 0))
	require.Equal(t, "0123456789abcdef", string(old[:16]))

	mem := must.Get(uapi.Alloc(4096))(t)
	require.NoError(t, b.ReRegMR(mr, mem[:2048], remote))
	require.ErrorIs(t, uapi.Free(mem), syscall.EBUSY, "it is registered")
	now = must.Get(b.QueryMR(mr))(t)
	require.EqualValues(t, 2048, now.Length)
	clear(old)
	require.Equal(t, uapi.WCSuccess, write(now, 2032))
	require.Equal(t, "0123456789abcdef", string(mem[2032:2048]))
	require.Equal(t, make([]byte, 32), old, "nothing reaches the old memory")

	require.NoError(t, b.ReRegMR(mr, make([]byte, 16), uapi.AccessLocalWrite))
	require.NoError(t, uapi.Free(mem), "it is registered no more")
	now = must.Get(b.QueryMR(mr))(t)
	require.Equal(t, uapi.WCRemAccessErr, write(now, 0), "no remote writing any more")
}

// TestReRegMRAmongDereg: one of the two wins, and the memory is let go once.
func TestReRegMRAmongDereg(t *testing.T) {
	t.Parallel()
	a, _ := uapitest.Pair(t, "")
	for range 50 {
		first := must.Get(uapi.Alloc(4096))(t)
		second := must.Get(uapi.Alloc(4096))(t)
		mr := must.Get(a.RegMR(first, uapi.AccessLocalWrite))(t)
		var both sync.WaitGroup
		both.Go(func() {
			if err := a.ReRegMR(mr, second, uapi.AccessLocalWrite); err != nil {
				require.ErrorIs(t, err, syscall.EBADF)
			}
		})
		both.Go(func() { require.NoError(t, a.DeregMR(mr)) })
		both.Wait()
		require.NoError(t, uapi.Free(first))
		require.NoError(t, uapi.Free(second))
	}
}
