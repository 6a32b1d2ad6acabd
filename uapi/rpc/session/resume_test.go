package session_test

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi/rpc/session"
	"github.com/rdmashim/rdmashim/uapi/uapitest"
)

// TestCutsCountExactly cuts the connection at random moments: each call is
// executed once all the same, and has its own answer.
func TestCutsCountExactly(t *testing.T) {
	seeds := uint64(20)
	if testing.Short() {
		seeds = 5
	}
	for seed := range seeds {
		var sum atomic.Uint64
		add := func(ctx context.Context, _ *session.Request) session.Reply {
			if rand.IntN(4) == 0 {
				time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond)
			}
			return session.Reply{Body: session.Bytes(binary.BigEndian.AppendUint64(nil, sum.Add(1)))}
		}
		pair(t, "loss=2%&reorder=10%&dup=2%&seed=7", add, func(t *testing.T, c *session.Client, s *session.Server) {
			const callers, each = 30, 20
			all := addEach(t, c, callers, each)
			require.NotZero(t, cutUntil(s, all, seed, 30*time.Millisecond))
			require.EqualValues(t, callers*each, sum.Load())
			require.EqualValues(t, callers*each, s.Stats().Executed)
			require.Zero(t, c.Stats().Unknown)
			require.EqualValues(t, s.Stats().Resumed+1, c.Stats().Connections)
			require.NotZero(t, c.Stats().Repeats)
			require.Equal(t, 1, s.Stats().Sessions)
		})
	}
}

// TestCutWhileTheHandlerRuns: the repeat attaches, and the answer comes on the
// later connection.
func TestCutWhileTheHandlerRuns(t *testing.T) {
	var ran atomic.Int32
	pair(t, "", func(ctx context.Context, r *session.Request) session.Reply {
		ran.Add(1)
		if r.Method == "slow" {
			<-time.After(time.Second)
		}
		return session.Reply{Body: session.Bytes("done")}
	}, func(t *testing.T, c *session.Client, s *session.Server) {
		done := make(chan error, 1)
		var got string
		go func() {
			done <- c.Call(t.Context(), &session.Call{Method: "slow", Reply: func(a *session.Answer) error { got = string(a.Body); return nil }})
		}()
		synctest.Wait()
		cut(s)
		require.NoError(t, <-done)
		require.Equal(t, "done", got)
		require.EqualValues(t, 1, ran.Load())
		require.EqualValues(t, 1, s.Stats().Attaches)
		require.EqualValues(t, 2, c.Stats().Connections)
	})
}

// TestGivenUpWhileCut: a caller leaves while there is no connection; the slot
// comes back by VOID, and the session goes on.
func TestGivenUpWhileCut(t *testing.T) {
	var ran atomic.Int32
	pair(t, "", func(ctx context.Context, r *session.Request) session.Reply {
		ran.Add(1)
		<-ctx.Done()
		<-time.After(time.Second)
		return session.Reply{}
	}, func(t *testing.T, c *session.Client, s *session.Server) {
		for range 3 {
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- c.Call(ctx, &session.Call{Method: "wait"}) }()
			synctest.Wait()
			cut(s)
			cancel()
			require.ErrorIs(t, <-done, context.Canceled)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, c.Call(ctx, &session.Call{Method: "wait"}), context.DeadlineExceeded)
		require.LessOrEqual(t, ran.Load(), int32(4))
	})
}

// TestServerGone: a posted call's fate is unknown when the server that comes
// back does not know the session; a call that was not posted goes on there.
func TestServerGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		device, l := uapitest.Listen(t, "")
		live := func(h handler) (*session.Server, <-chan error) {
			return serve(t, l, session.ServerConfig{Unary: h, Lifetime: 5 * time.Second})
		}
		started := make(chan struct{})
		first, served := live(func(ctx context.Context, r *session.Request) session.Reply {
			close(started)
			<-ctx.Done()
			return session.Reply{}
		})
		c := must.Get(session.Dial(device, l.Addr().String(), session.ClientConfig{Slots: 1}))(t)
		posted := make(chan error, 1)
		go func() { posted <- c.Call(t.Context(), &session.Call{Method: "posted", WaitForReady: true}) }()
		<-started
		queued := make(chan error, 1)
		go func() { queued <- c.Call(t.Context(), &session.Call{Method: "queued", WaitForReady: true}) }()
		synctest.Wait()
		first.Stop()
		require.NoError(t, <-served)
		require.ErrorIs(t, <-posted, session.ErrFateUnknown)
		second, served := live(func(ctx context.Context, r *session.Request) session.Reply { return session.Reply{} })
		require.NoError(t, <-queued)
		require.EqualValues(t, 1, second.Stats().Executed)
		require.EqualValues(t, 1, c.Stats().Unknown)
		require.NoError(t, c.Close())
		synctest.Wait()
		require.Zero(t, second.Stats().Sessions, "the client has ended its session")
		second.GracefulStop()
		require.NoError(t, <-served)
	})
}

// TestGracefulStop: calls that run are answered, later ones hear that the
// server goes away.
func TestGracefulStop(t *testing.T) {
	pair(t, "", func(ctx context.Context, r *session.Request) session.Reply {
		<-time.After(time.Second)
		return session.Reply{Body: session.Bytes("done")}
	}, func(t *testing.T, c *session.Client, s *session.Server) {
		const calls = 20
		done := make(chan error, calls)
		for range calls {
			go func() { done <- c.Call(t.Context(), &session.Call{Method: "slow"}) }()
		}
		synctest.Wait()
		stopped := make(chan struct{})
		go func() { s.GracefulStop(); close(stopped) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		require.ErrorIs(t, c.Call(ctx, &session.Call{Method: "late"}), session.ErrUnavailable)
		for range calls {
			require.NoError(t, <-done)
		}
		<-stopped
		require.EqualValues(t, calls, s.Stats().Executed)
	})
}

// TestServeOutlastsStop: Serve returns when the calls are answered and the
// connections have ended, since many a program ends with it.
func TestServeOutlastsStop(t *testing.T) {
	for name, stop := range map[string]func(*session.Server){"Stop": (*session.Server).Stop, "GracefulStop": (*session.Server).GracefulStop} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				device, l := uapitest.Listen(t, "")
				answer := make(chan struct{})
				s, served := serve(t, l, session.ServerConfig{Unary: func(context.Context, *session.Request) session.Reply {
					<-answer
					return session.Reply{}
				}})
				c := must.Get(session.Dial(device, l.Addr().String(), session.ClientConfig{}))(t)
				answered := make(chan error, 1)
				go func() { answered <- c.Call(t.Context(), &session.Call{Method: "slow"}) }()
				synctest.Wait()
				go stop(s)
				synctest.Wait()
				require.Empty(t, served, "the handler runs")
				close(answer)
				require.NoError(t, <-served)
				require.Len(t, answered, 1)
				require.NoError(t, c.Close())
			})
		})
	}
}

// cut breaks the connection off as soon as the server has one. Time is virtual.
func cut(s *session.Server) {
	for !s.Cut() {
		time.Sleep(time.Millisecond)
	}
}

// cutUntil breaks connections off at random moments until all callers are done,
// and returns how many. Time is virtual.
func cutUntil(s *session.Server, all *sync.WaitGroup, seed uint64, longest time.Duration) (cuts int) {
	over := make(chan struct{})
	go func() { all.Wait(); close(over) }()
	random := rand.New(rand.NewPCG(seed, 1))
	for {
		select {
		case <-over:
			return cuts
		case <-time.After(time.Duration(random.Int64N(int64(longest)))):
		}
		if s.Cut() {
			cuts++
		}
	}
}
