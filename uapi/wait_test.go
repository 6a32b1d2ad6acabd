package uapi_test

import (
	"context"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/uapitest"
)

// cqOf is the completion queue of a queue pair that has one of its own.
func cqOf(t *testing.T, e *uapitest.End) uapi.CQ {
	t.Helper()
	return must.Get(e.QueryQP(e.QP))(t).RecvCQ
}

// A completion that is there comes before a wake, which is the next wait's.
func TestWakeCQ(t *testing.T) {
	t.Parallel()
	eachDevice(t, func(t *testing.T, a, b *uapi.Device) {
		self, _ := uapitest.Connect(t, b, b)
		cq, wc := cqOf(t, self), make([]uapi.WC, 4)
		self.Must(self.PostWrite(self.QP, self.MR, 0, self.Peer.Addr, self.Peer.RKey, 8))
		self.Must(self.PostWrite(self.QP, self.MR, 0, self.Peer.Addr, self.Peer.RKey, 8))
		self.Next(1)
		require.NoError(t, self.WakeCQ(cq))
		list := []int{}
		for range 2 {
			list = append(list, must.Get(self.WaitQueue(within(t), cq, wc))(t))
		}
		require.ElementsMatch(t, []int{0, 1}, list)
	})
}

// A waiter sees each change that is made before a WakeCQ, while messages come
// and go: also one that does the device's work, and one that is on its way to
// sleep.
func TestNoWakeIsLost(t *testing.T) {
	t.Parallel()
	eachDevice(t, func(t *testing.T, a, b *uapi.Device) {
		const messages, changes = 400, 400
		x, y := uapitest.Connect(t, a, b)
		cq, ctx := cqOf(t, y), within(t)
		for range uapitest.Depth {
			y.Must(y.PostRecv(y.QP, y.MR, 0, 8))
		}
		var state atomic.Int64
		seen := make(chan int64, 1)
		finished := make(chan struct{})
		go func() {
			defer close(finished)
			wc := make([]uapi.WC, 4)
			came, last := 0, int64(0)
			for came < messages || last < changes {
				n, err := y.WaitQueue(ctx, cq, wc)
				if err != nil {
					t.Error(err)
					return
				}
				came += n
				for range n {
					if _, err := y.PostRecv(y.QP, y.MR, 0, 8); err != nil {
						t.Error(err)
					}
				}
				if now := state.Load(); now != last {
					last = now
					seen <- now
				}
			}
		}()
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			for range messages {
				if _, err := x.PostSend(x.QP, x.MR, 8); err != nil {
					t.Error(err)
					return
				}
				var wc [1]uapi.WC
				if _, err := x.WaitCQ(ctx, x.QP, wc[:]); err != nil {
					t.Error(err)
					return
				}
			}
		}()
		for i := range int64(changes) {
			state.Store(i + 1)
			require.NoError(t, y.WakeCQ(cq))
			select {
			case got := <-seen:
				require.Equal(t, i+1, got)
			case <-ctx.Done():
				t.Fatalf("change %d was not seen", i)
			}
		}
		<-sent
		<-finished
	})
}

// WaitAny is woken by each of its queues, and ends as Wait does.
func TestWaitAny(t *testing.T) {
	t.Parallel()
	eachDevice(t, func(t *testing.T, a, b *uapi.Device) {
		ctx := within(t)
		var cqs []uapi.CQ
		for range 3 {
			x, _ := uapitest.Connect(t, b, a)
			cqs = append(cqs, cqOf(t, x))
		}
		wc := make([]uapi.WC, 8)
		for _, cq := range cqs {
			require.NoError(t, b.WakeCQ(cq))
			n := must.Get(b.WaitAny(ctx, cqs, wc))(t)
			require.Zero(t, n)
		}
		ended, cancel := context.WithCancel(ctx)
		cancel()
		for name, c := range map[string]struct {
			ctx  context.Context
			cqs  []uapi.CQ
			wc   []uapi.WC
			want error
		}{
			"canceled": {ended, cqs, wc, context.Canceled}, "no queue": {ctx, nil, wc, syscall.EINVAL},
			"no handle": {ctx, []uapi.CQ{cqs[0], 0}, wc, syscall.EBADF}, "no room": {ctx, cqs, nil, syscall.EINVAL},
		} {
			n, err := b.WaitAny(c.ctx, c.cqs, c.wc)
			require.Equal(t, -1, n, name)
			require.ErrorIs(t, err, c.want, name)
		}
	})
}

// A loop over completions: each comes once, a failed request's too, and none is
// lost by leaving the loop.
func TestCompletions(t *testing.T) {
	t.Parallel()
	eachDevice(t, func(t *testing.T, a, b *uapi.Device) {
		x, _ := uapitest.Connect(t, b, a)
		cq, ctx := cqOf(t, x), within(t)
		next := func(ctx context.Context) (got uapi.WC, err error) {
			times := 0
			for got, err = range x.Completions(ctx, cq) {
				if times++; err == nil {
					break
				}
			}
			require.Equal(t, 1, times, "an error is given once")
			return got, err
		}
		eight, stranger := piece(x.MR, 0, 8), x.Peer
		stranger.RKey++
		for range 3 {
			x.Must(x.Write(x.QP, eight, x.Peer))
		}
		x.Must(x.Write(x.QP, eight, stranger))
		x.Must(x.Write(x.QP, eight, x.Peer))
		require.Equal(t, uapi.WRID(0), must.Get(next(ctx))(t).WRID)
		require.Equal(t, uapi.WRID(1), x.Next(1)[0].WRID, "the loop took no more than it gave")

		ended, cancel := context.WithCancel(ctx)
		cancel()
		wc, err := next(ended)
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, uapi.WCGeneralErr, wc.Status)

		var statuses []uapi.Status
		for wc, err := range x.Completions(ctx, cq) {
			require.NoError(t, err)
			require.Equal(t, uapi.WRID(2+len(statuses)), wc.WRID)
			if statuses = append(statuses, wc.Status); len(statuses) == 3 {
				break
			}
		}
		require.Equal(t, []uapi.Status{uapi.WCSuccess, uapi.WCRemAccessErr, uapi.WCWRFlushErr}, statuses)

		require.NoError(t, x.WakeCQ(cq))
		_, err = next(ctx)
		require.ErrorIs(t, err, syscall.EINTR)

		end := make(chan error, 1)
		go func() {
			for _, err := range x.Completions(ctx, cq) {
				end <- err
			}
		}()
		require.NoError(t, x.DestroyQP(x.QP))
		require.Error(t, <-end)
		_, err = next(ctx)
		require.ErrorIs(t, err, syscall.EBADF)
	})
}

// Loops that share a queue get each completion once.
func TestLoopsShareACompletionQueue(t *testing.T) {
	t.Parallel()
	eachDevice(t, func(t *testing.T, a, b *uapi.Device) {
		const loops, each = 4, 200
		x, _ := uapitest.Connect(t, a, b)
		ctx, cancel := context.WithCancel(within(t))
		defer cancel()
		ids := make(chan uapi.WRID, loops*each)
		var running sync.WaitGroup
		cq := cqOf(t, x)
		for range loops {
			running.Go(func() {
				for wc, err := range x.Completions(ctx, cq) {
					if err != nil {
						return
					}
					ids <- wc.WRID
				}
			})
		}
		seen := make(map[uapi.WRID]bool)
		for posted := 0; len(seen) < loops*each; {
			if posted < loops*each && posted-len(seen) < uapitest.Depth {
				x.Must(x.Write(x.QP, piece(x.MR, 0, 8), x.Peer))
				posted++
				continue
			}
			select {
			case id := <-ids:
				seen[id] = true
			case <-ctx.Done():
				t.Fatalf("%d of %d completions came", len(seen), loops*each)
			}
		}
		cancel()
		running.Wait()
	})
}
