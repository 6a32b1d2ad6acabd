//go:build guest && linux

package guesttest

import (
	"context"
	"net/netip"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/rdmacm"
)

// TestDisconnect: from each side, by each means, the other side learns it.
func TestDisconnect(t *testing.T) {
	for name, end := range map[string]func(id *rdmacm.ID, s *side) error{
		"disconnect": func(id *rdmacm.ID, _ *side) error { return id.Disconnect() },
		"destroy":    func(id *rdmacm.ID, _ *side) error { return id.Destroy() },
		"close":      func(_ *rdmacm.ID, s *side) error { return s.ch.Close() },
	} {
		for _, active := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				a, b := newSide(t), newSide(t)
				v := serve(t, b)
				ctx := limited(t)
				id, qp, err := a.dial(ctx, v.l.Addr(), common)
				require.NoError(t, err)
				c := <-v.accepted
				require.NoError(t, c.err)
				from, to, s := id, c.req.ID, a
				if !active {
					from, to, s = c.req.ID, id, b
				}
				require.NoError(t, end(from, s))
				select {
				case <-to.Context().Done():
				case <-ctx.Done():
					t.Fatal("the other side was not told")
				}
				require.ErrorIs(t, context.Cause(to.Context()), syscall.ECONNRESET)
				select {
				case <-from.Context().Done():
				case <-ctx.Done():
					t.Fatal("this side was not told")
				}
				t.Log(context.Cause(from.Context()))
				if name == "disconnect" {
					require.ErrorIs(t, context.Cause(from.Context()), syscall.ENOTCONN)
					require.NoError(t, from.Disconnect(), "again")
				}
				_ = id.Destroy()
				_ = c.req.Destroy()
				require.NoError(t, qp.close())
				require.NoError(t, c.qp.close())
			})
		}
	}
}

// TestListenerCloses with requests that no Accept took, and one more than it
// keeps.
func TestListenerCloses(t *testing.T) {
	a, b := newSide(t), newSide(t)
	l, err := b.ch.Listen(netip.AddrPortFrom(self, 0), 2, rdmacm.Options{})
	require.NoError(t, err)
	ctx := limited(t)
	ends := make(chan error, 3)
	for range 3 {
		go func() {
			_, _, err := a.dial(ctx, l.Addr(), common)
			ends <- err
		}()
	}
	require.ErrorIs(t, <-ends, syscall.ECONNREFUSED, "no room")
	require.NoError(t, l.Close())
	for range 2 {
		require.ErrorIs(t, <-ends, syscall.ECONNREFUSED, "closed")
	}
	require.Empty(t, cmIDs(t))
}

// TestCancelAtEveryStep: wherever a connection is when the caller gives up,
// both sides end, and nothing is left.
func TestCancelAtEveryStep(t *testing.T) {
	a, b := newSide(t), newSide(t)
	v := serve(t, b)
	var made, refused int
	for d := time.Duration(0); made < 3 && d < patience; d += 200*time.Microsecond + d/20 {
		ctx, cancel := context.WithTimeout(t.Context(), d)
		id, qp, err := a.dial(ctx, v.l.Addr(), common)
		cancel()
		if err == nil {
			made++
			require.NoError(t, id.Destroy())
			require.NoError(t, qp.close())
			continue
		}
		require.ErrorIs(t, err, context.DeadlineExceeded)
		refused++
	}
	t.Logf("%d given up, %d made", refused, made)
	require.NotZero(t, refused)
	require.NoError(t, v.close())
	close(v.accepted)
	for c := range v.accepted {
		require.NoError(t, c.close())
	}
	require.Empty(t, cmIDs(t))
}

func TestManyAtOnce(t *testing.T) {
	a, b := newSide(t), newSide(t)
	v := serve(t, b)
	const n = 100
	type end struct {
		id  *rdmacm.ID
		qp  *conn
		err error
	}
	ends := make([]end, n)
	var wg sync.WaitGroup
	for i := range ends {
		wg.Go(func() { ends[i].id, ends[i].qp, ends[i].err = a.dial(limited(t), v.l.Addr(), common) })
	}
	wg.Wait()
	numbers := map[uint32]bool{}
	for _, e := range ends {
		require.NoError(t, e.err)
		numbers[e.qp.Num()] = true
	}
	var served []*served
	for range ends {
		c := <-v.accepted
		require.NoError(t, c.err)
		require.True(t, numbers[c.req.Peer.QPN], "each is told apart by its queue pair")
		delete(numbers, c.req.Peer.QPN)
		served = append(served, c)
	}
	require.Len(t, cmIDs(t), 2*n+1)
	for _, e := range ends {
		wg.Go(func() { require.NoError(t, e.id.Disconnect()) })
	}
	wg.Wait()
	for i, c := range served {
		<-c.req.Context().Done()
		<-ends[i].id.Context().Done()
		require.NoError(t, c.close())
		require.NoError(t, ends[i].id.Destroy())
		require.NoError(t, ends[i].qp.close())
	}
	require.NoError(t, v.close())
	require.Empty(t, cmIDs(t))
}
