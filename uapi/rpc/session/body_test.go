package session_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/amount"
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/rpc/session"
)

// random is n bytes that a seed makes.
func random(seed byte, n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(b)
	return b
}

// turn answers a body backwards.
func turn(_ context.Context, r *session.Request) session.Reply {
	b := slices.Clone(r.Body)
	r.Release()
	slices.Reverse(b)
	return session.Reply{Body: session.Bytes(b)}
}

// turned calls with a body, and reports an answer that is not it backwards.
func turned(ctx context.Context, c *session.Client, body []byte) error {
	return c.Call(ctx, &session.Call{Method: "turn", Metadata: []byte("m"), WaitForReady: true, Body: session.Bytes(body), Reply: func(a *session.Answer) error {
		got := slices.Clone(a.Body)
		slices.Reverse(got)
		if !bytes.Equal(got, body) {
			return errors.New("another body came back")
		}
		return nil
	}})
}

// TestBodies: bodies of all lengths travel, inside their message or by READ.
func TestBodies(t *testing.T) {
	for _, faults := range []string{"", "loss=1%&reorder=5%&dup=1%&seed=2"} {
		pair(t, faults, turn, func(t *testing.T, c *session.Client, s *session.Server) {
			for i, n := range []int{0, 1, 32 << 10, 32<<10 + 1, 64 << 10, 64<<10 + 1, 1 << 20, 5_000_001} {
				require.NoError(t, turned(t.Context(), c, random(byte(i), n)), "%d bytes", n)
			}
			var all sync.WaitGroup
			for i := range 20 {
				all.Go(func() {
					for j := range 10 {
						assert.NoError(t, turned(t.Context(), c, random(byte(i), j*i*1500)))
					}
				})
			}
			all.Wait()
			require.EqualValues(t, 1, c.Stats().Connections)
			require.EqualValues(t, 208, s.Stats().Executed)
		})
	}
}

// TestBodiesAndCuts cuts connections while bodies are READ: each call is
// executed once, and has its answer, unless the server has not kept it.
func TestBodiesAndCuts(t *testing.T) {
	for seed := range uint64(amount.Of(2, 5)) {
		var ran atomic.Int32
		pair(t, "loss=1%&seed=4", func(ctx context.Context, r *session.Request) session.Reply {
			ran.Add(1)
			time.Sleep(time.Millisecond)
			return turn(ctx, r)
		}, func(t *testing.T, c *session.Client, s *session.Server) {
			const callers, each = 10, 10
			var all sync.WaitGroup
			for i := range callers {
				all.Go(func() {
					for j := range each {
						if err := turned(t.Context(), c, random(byte(i), 1000+i*j*5000)); err != nil && !errors.Is(err, session.ErrExecuted) {
							t.Error(err)
						}
					}
				})
			}
			cutUntil(s, &all, seed, 2*time.Millisecond)
			require.EqualValues(t, callers*each, ran.Load())
			require.NotZero(t, s.Stats().Resumed)
		})
	}
}

// TestBodiesOfStreams: messages of all lengths keep their order on a stream.
func TestBodiesOfStreams(t *testing.T) {
	streams(t, "loss=1%&seed=9", repeat, func(t *testing.T, c *session.Client, s *session.Server) {
		x := must.Get(c.Open(t.Context(), &session.Call{Method: "repeat"}))(t)
		lengths := []int{1 << 20, 10, 100_000, 32 << 10, 0, 700_000, 5, 2 << 20, 1}
		var all sync.WaitGroup
		all.Go(func() {
			for i, n := range lengths {
				assert.NoError(t, x.Send(nil, session.Bytes(random(byte(i), n))))
			}
			_ = x.CloseSend()
		})
		for i, n := range lengths {
			got := must.Get(text(x.Recv))(t)
			require.True(t, got == "|"+string(random(byte(i), n)), "message %d", i)
		}
		_, err := text(x.Recv)
		require.Equal(t, io.EOF, err)
		all.Wait()
	})
}

// TestBodyBounds: a body beyond a bound is not READ, and the session goes on.
func TestBodyBounds(t *testing.T) {
	ran := 0
	handle := func(context.Context, *session.Request) session.Reply {
		ran++
		return session.Reply{Body: session.Bytes(make([]byte, 200_000))}
	}
	serving(t, "", session.ServerConfig{MaxRequest: 100_000, Unary: handle}, func(t *testing.T, c *session.Client, _ *session.Server) {
		require.NoError(t, c.Call(t.Context(), &session.Call{Method: "m", Body: session.Bytes(make([]byte, 100_001)), Reply: func(a *session.Answer) error {
			require.EqualValues(t, 8, a.Status.Code)
			return nil
		}}))
		require.Zero(t, ran)
		for range 300 { // more than there are slots
			require.ErrorIs(t, c.Call(t.Context(), &session.Call{Method: "m", MaxReply: 199_999}), session.ErrTooLong)
		}
		require.ErrorIs(t, c.Call(t.Context(), &session.Call{Method: "m", MaxReply: 1}), syscall.EMSGSIZE)
		require.NoError(t, c.Call(t.Context(), &session.Call{Method: "m", MaxReply: 200_000, Reply: func(a *session.Answer) error {
			require.Len(t, a.Body, 200_000)
			return nil
		}}))
		require.Equal(t, 302, ran)
	})
}

// realDevice is a device of the kernel, which tests/guest names.
var realDevice = os.Getenv("SESSION_TEST_DEVICE")

// TestNothingIsLeft: after Close and Stop the device has the objects that it
// had before.
func TestNothingIsLeft(t *testing.T) { useAll(t, func() {}) }

// useAll makes calls and streams, with bodies that are READ and others, on
// three sessions, one after the other, and tells when each is busiest.
func useAll(t *testing.T, busiest func()) {
	device := must.Get(uapi.Open(cmp.Or(realDevice, "soft"), uapi.OpenConfig{}))(t)
	defer func() { require.NoError(t, device.Close()) }()
	before := device.OpenHandles()
	info := must.Get(device.QueryDevice())(t)
	l := must.Get(device.Listen(info.Address.Addr().String()+":0", uapi.ListenConfig{}))(t)
	s, served := serve(t, l, session.ServerConfig{Unary: turn, Stream: repeat})
	for range 3 {
		c := must.Get(session.Dial(device, l.Addr().String(), session.ClientConfig{}))(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		for _, n := range []int{10, 300_000, 4 << 20} {
			require.NoError(t, turned(ctx, c, random(1, n)))
		}
		x := must.Get(c.Open(ctx, &session.Call{Method: "repeat"}))(t)
		require.NoError(t, x.Send(nil, session.Bytes(random(2, 500_000))))
		must.Get(text(x.Recv))(t)
		busiest()
		require.NoError(t, c.Close())
		cancel()
	}
	s.Stop()
	require.NoError(t, <-served)
	require.NoError(t, l.Close())
	require.Equal(t, before, device.OpenHandles())
}
