package uapi_test

import (
	"context"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/uapitest"
)

// bounded is a context that ends only a test that hangs.
func bounded(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// cqOf is the completion queue of a queue pair that has one of its own.
func cqOf(t *testing.T, e *uapitest.End) uapi.CQ {
	t.Helper()
	info, err := e.QueryQP(e.QP)
	require.NoError(t, err)
	return info.RecvCQ
}

func TestWakeCQ(t *testing.T) {
	t.Parallel()
	eachDevice(t, func(t *testing.T, a, b *uapi.Context) {
		x, y := uapitest.Connect(t, a, b)
		cq, ctx := cqOf(t, y), bounded(t)
		wc := make([]uapi.WC, 4)
		for range 2 { // also while no goroutine waits
			require.NoError(t, y.WakeCQ(cq))
			n, err := y.WaitCQ(ctx, y.QP, wc)
			require.NoError(t, err)
			require.Zero(t, n)
		}
		type answer struct {
			n   int
			err error
		}
		got := make(chan answer)
		go func() {
			n, err := y.Wait(ctx, cq, wc)
			got <- answer{n, err}
		}()
		require.NoError(t, y.WakeCQ(cq))
		require.Equal(t, answer{}, <-got)

		// A completion that is there comes first; the wake is the next wait's.
		self, _ := uapitest.Connect(t, b, b)
		cq = cqOf(t, self)
		self.Must(self.PostWrite(self.QP, self.MR, 0, self.Peer.Addr, self.Peer.RKey, 8))
		self.Must(self.PostWrite(self.QP, self.MR, 0, self.Peer.Addr, self.Peer.RKey, 8))
		self.Next(1)
		require.NoError(t, self.WakeCQ(cq))
		list := []int{}
		for range 2 {
			n, err := self.Wait(ctx, cq, wc)
			require.NoError(t, err)
			list = append(list, n)
		}
		require.ElementsMatch(t, []int{0, 1}, list)

		require.ErrorIs(t, y.WakeCQ(0), syscall.EBADF)
		require.ErrorIs(t, x.WakeCQ(cq), syscall.EBADF, "of the other context")
	})
}

// A waiter sees each change that is made before a WakeCQ, while messages come
// and go: also one that does the device's work, and one that is on its way to
// sleep.
func TestNoWakeIsLost(t *testing.T) {
	t.Parallel()
	eachDevice(t, func(t *testing.T, a, b *uapi.Context) {
		const messages, changes = 400, 400
		x, y := uapitest.Connect(t, a, b)
		cq, ctx := cqOf(t, y), bounded(t)
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
				n, err := y.Wait(ctx, cq, wc)
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

func TestWaitAny(t *testing.T) {
	t.Parallel()
	eachDevice(t, func(t *testing.T, a, b *uapi.Context) {
		ctx := bounded(t)
		const pairs = 3
		var xs, ys [pairs]*uapitest.End
		var cqs []uapi.CQ
		for i := range pairs {
			xs[i], ys[i] = uapitest.Connect(t, a, b)
			cqs = append(cqs, cqOf(t, ys[i]))
			ys[i].Must(ys[i].PostRecv(ys[i].QP, ys[i].MR, 0, 8))
		}
		wc := make([]uapi.WC, 8)
		for i := range pairs {
			go func() {
				if _, err := xs[i].PostSend(xs[i].QP, xs[i].MR, 8); err != nil {
					t.Error(err)
				}
			}()
			n, err := b.WaitAny(ctx, cqs, wc)
			require.NoError(t, err)
			require.Equal(t, 1, n)
			require.Equal(t, ys[i].QP, wc[0].QP)
			require.NoError(t, xs[i].Next(1)[0].Err())
		}
		for _, cq := range cqs {
			require.NoError(t, b.WakeCQ(cq))
			n, err := b.WaitAny(ctx, cqs, wc)
			require.NoError(t, err)
			require.Zero(t, n)
		}

		ended, cancel := context.WithCancel(ctx)
		cancel()
		n, err := b.WaitAny(ended, cqs, wc)
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, -1, n)
		for name, list := range map[string][]uapi.CQ{"empty": nil, "no handle": {cqs[0], 0}, "the other context's": {cqOf(t, xs[0])}} {
			n, err = b.WaitAny(ctx, list, wc)
			require.Equal(t, -1, n, name)
			if list == nil {
				require.ErrorIs(t, err, syscall.EINVAL)
			} else {
				require.ErrorIs(t, err, syscall.EBADF, name)
			}
		}
		_, err = b.WaitAny(ctx, cqs, nil)
		require.ErrorIs(t, err, syscall.EINVAL)
	})
}

// DestroyCQ wakes a WaitAny; the error names the queue.
func TestWaitAnyOfADestroyedQueue(t *testing.T) {
	t.Parallel()
	a, _ := uapitest.Pair(t, "")
	var cqs [2]uapi.CQ
	for i := range cqs {
		var err error
		cqs[i], err = a.CreateCQ(4)
		require.NoError(t, err)
	}
	ctx := bounded(t)
	got := make(chan error)
	go func() {
		_, err := a.WaitAny(ctx, cqs[:], make([]uapi.WC, 1))
		got <- err
	}()
	require.NoError(t, a.DestroyCQ(cqs[1]))
	err := <-got
	require.ErrorIs(t, err, syscall.EBADF)
	require.NoError(t, a.DestroyCQ(cqs[0]))
}
