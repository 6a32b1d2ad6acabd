package uapi_test

import (
	"errors"
	"net"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/uapitest"
)

// TestSharedQueueOfClosedDevice: calls end as those of other objects do.
func TestSharedQueueOfClosedDevice(t *testing.T) {
	t.Parallel()
	a, _ := uapitest.Pair(t, "")
	srq := must.Get(a.CreateSRQ(uapi.SRQConfig{Depth: 2}))(t)
	require.Regexp(t, `^srq \d+ \(2 receives\) from .*srq_test.go:\d+$`, a.OpenHandles()[0])
	require.NoError(t, a.Close())
	_, err := a.CreateSRQ(uapi.SRQConfig{Depth: 2})
	require.ErrorIs(t, err, net.ErrClosed)
	_, err = a.PostSRQRecv(srq, 0, 0, 0)
	require.ErrorIs(t, err, net.ErrClosed)
	_, err = a.QuerySRQ(srq)
	require.ErrorIs(t, err, net.ErrClosed)
	require.ErrorIs(t, errors.Join(a.DestroySRQ(srq), a.SetSRQLimit(srq, 1)), net.ErrClosed)
}

// TestSharedReceivesAtOnce: posts, polls and a destroy from several goroutines.
func TestSharedReceivesAtOnce(t *testing.T) {
	t.Parallel()
	a, b := uapitest.Pair(t, "")
	srq := must.Get(b.CreateSRQ(uapi.SRQConfig{Depth: 64}))(t)
	_, y := uapitest.ConnectWith(t, a, b, uapi.QPConfig{SendDepth: 1}, 64)
	var all sync.WaitGroup
	var mu sync.Mutex
	ids := map[uapi.WRID]bool{}
	for range 4 {
		all.Go(func() {
			for range 16 {
				id, err := b.PostSRQRecv(srq, y.MR, 0, 8)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				ids[id] = true
				mu.Unlock()
			}
		})
	}
	all.Wait()
	require.Len(t, ids, 64)
	for range 2 {
		all.Go(func() {
			for {
				if _, err := b.PostSRQRecv(srq, y.MR, 0, 8); errors.Is(err, syscall.EBADF) {
					return
				}
			}
		})
	}
	require.NoError(t, b.DestroySRQ(srq))
	all.Wait()
}
