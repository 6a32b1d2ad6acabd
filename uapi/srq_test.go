package uapi_test

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/uapitest"
)

// TestManyShareReceives: hundreds of connections send at once to a server that
// has memory for 16 messages, and every message comes whole, once, and in the
// order of its connection.
func TestManyShareReceives(t *testing.T) {
	const clients, messages, buffers, size = 300, 8, 16, 64
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		client, server := uapitest.Pair(t, "loss=1%&seed=5")
		l, err := server.ListenWith(":0", uapi.ListenConfig{Pending: clients})
		require.NoError(t, err)
		at, err := server.QueryDevice()
		require.NoError(t, err)
		addr := netip.AddrPortFrom(at.Address.Addr(), l.Addr().Port()).String()
		memory := make([]byte, buffers*size)
		mr, err := server.RegMR(memory, uapi.AccessLocalWrite)
		require.NoError(t, err)
		srq, err := server.CreateSRQ(uapi.SRQConfig{Depth: buffers})
		require.NoError(t, err)
		cq, err := server.CreateCQ(buffers + 2*clients)
		require.NoError(t, err)
		for i := range uint64(buffers) {
			_, err := server.PostSRQ(srq, []uapi.WR{receive(mr, i, size)})
			require.NoError(t, err)
		}

		var all sync.WaitGroup
		for n := range uint32(clients) {
			all.Go(func() {
				qp, err := client.Dial(ctx, addr, uapi.DialConfig{QPConfig: uapi.QPConfig{SendDepth: 1}})
				if err != nil {
					t.Error(err)
					return
				}
				defer client.DestroyQP(qp)
				out := make([]byte, size)
				mr, err := client.RegMR(out, 0)
				if err != nil {
					t.Error(err)
					return
				}
				defer client.DeregMR(mr)
				for i := range uint32(messages) {
					binary.BigEndian.PutUint32(out, n)
					binary.BigEndian.PutUint32(out[size-4:], i)
					id, err := client.PostSend(qp, mr, size)
					if err == nil {
						_, err = client.WaitWR(ctx, qp, id)
					}
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		serving := make(chan struct{})
		var accepted sync.WaitGroup
		go func() {
			defer close(serving)
			for {
				r, err := l.Accept(ctx)
				if err != nil {
					return
				}
				accepted.Go(func() {
					qp, err := r.CreateQP(uapi.QPConfig{SendDepth: 1, SRQ: srq, RecvCQ: cq})
					if err == nil {
						_, err = r.Accept(ctx, nil)
					}
					if err != nil {
						t.Error(err)
						return
					}
					<-server.Done(qp)
					if err := server.DestroyQP(qp); err != nil {
						t.Error(err)
					}
				})
			}
		}()

		next := make([]uint32, clients)
		wcs := make([]uapi.WC, 8)
		for got := 0; got < clients*messages; {
			n, err := server.Wait(ctx, cq, wcs)
			require.NoError(t, err)
			for _, wc := range wcs[:n] {
				require.NoError(t, wc.Err())
				require.Equal(t, uapi.WCOpRecv, wc.Opcode)
				m := memory[uint64(wc.WRID)*size:][:size]
				from, i := binary.BigEndian.Uint32(m), binary.BigEndian.Uint32(m[size-4:])
				require.Equal(t, next[from], i, "of client %d", from)
				next[from]++
				_, err := server.PostSRQ(srq, []uapi.WR{receive(mr, uint64(wc.WRID), size)})
				require.NoError(t, err)
				got++
			}
		}
		all.Wait()
		require.NoError(t, l.Close())
		<-serving
		accepted.Wait()
		n, err := server.Poll(cq, wcs)
		require.NoError(t, err)
		require.Zero(t, n)
		require.NoError(t, server.DestroySRQ(srq))
		require.NoError(t, server.DestroyCQ(cq))
		require.NoError(t, server.DeregMR(mr))
	})
}

// receive is one into the i-th buffer.
func receive(mr uapi.MR, i, size uint64) uapi.WR {
	return uapi.WR{ID: uapi.WRID(i), Op: uapi.OpRecv, SGE: []uapi.SGE{{MR: mr, Offset: i * size, Length: size}}}
}

// TestSharedQueueOfClosedContext: calls end as those of other objects do.
func TestSharedQueueOfClosedContext(t *testing.T) {
	t.Parallel()
	a, _ := uapitest.Pair(t, "")
	srq, err := a.CreateSRQ(uapi.SRQConfig{Depth: 2})
	require.NoError(t, err)
	require.Regexp(t, `^srq \d+ \(2 receives\) from .*srq_test.go:\d+$`, a.OpenHandles()[0])
	require.NoError(t, a.Close())
	_, err = a.CreateSRQ(uapi.SRQConfig{Depth: 2})
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
	srq, err := b.CreateSRQ(uapi.SRQConfig{Depth: 64})
	require.NoError(t, err)
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
