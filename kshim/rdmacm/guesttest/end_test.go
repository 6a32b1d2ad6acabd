//go:build guest && linux

package guesttest

import (
	"context"
	"net/netip"
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
				id, qp, err := a.dial(ctx, v.l.Addr())
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
			_, _, err := a.dial(ctx, l.Addr())
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
		id, qp, err := a.dial(ctx, v.l.Addr())
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
