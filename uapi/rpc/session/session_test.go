package session_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/rpc/session"
)

type handler = func(ctx context.Context, r *session.Request) session.Reply

// pair runs test with a client of a server that has the handler, in virtual
// time, on a network with those faults.
func pair(t *testing.T, faults string, handle handler, test func(t *testing.T, c *session.Client, s *session.Server)) {
	serving(t, faults, session.ServerConfig{Unary: handle}, test)
}

func serving(t *testing.T, faults string, config session.ServerConfig, test func(t *testing.T, c *session.Client, s *session.Server)) {
	servedOn(t, faults, config, func(t *testing.T, d *uapi.Device, addr string, s *session.Server) {
		c := must.Get(session.Dial(d, addr, session.ClientConfig{}))(t)
		test(t, c, s)
		require.NoError(t, c.Close())
	})
}

// serve begins to serve a listener, and gives what Serve will return.
func serve(t *testing.T, l *uapi.Listener, c session.ServerConfig) (*session.Server, <-chan error) {
	s, served := must.Get(session.NewServer(c))(t), make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	return s, served
}

func echo(_ context.Context, r *session.Request) session.Reply {
	return session.Reply{Metadata: r.Metadata, Body: session.Bytes(slices.Clone(r.Body)), Status: session.Status{Code: uint32(len(r.Method)), Text: r.Method, Details: []byte("d")}}
}

func TestCallCarriesAllParts(t *testing.T) {
	pair(t, "", echo, func(t *testing.T, c *session.Client, s *session.Server) {
		for _, body := range []string{"body", "", string(make([]byte, 32<<10))} {
			var got session.Answer
			require.NoError(t, c.Call(t.Context(), &session.Call{
				Method: "method", Metadata: []byte("metadata"), Body: session.Bytes(body),
				Reply: func(a *session.Answer) error { got = *a; return nil },
			}))
			require.Equal(t, session.Status{Code: 6, Text: "method", Details: []byte("d")}, got.Status)
			require.Equal(t, "metadata", string(got.Metadata))
			require.Equal(t, body, string(got.Body))
		}
	})
}

func TestCallRefusesWhatDoesNotFit(t *testing.T) {
	pair(t, "", echo, func(t *testing.T, c *session.Client, s *session.Server) {
		require.ErrorIs(t, c.Call(t.Context(), &session.Call{Method: "m", Body: session.Bytes(make([]byte, 64<<20+64<<10+1))}), syscall.EMSGSIZE)
		require.ErrorIs(t, c.Call(t.Context(), &session.Call{Method: "m", Metadata: make([]byte, 1<<16)}), syscall.EMSGSIZE)
		require.ErrorIs(t, c.Call(t.Context(), &session.Call{Method: "m", Metadata: make([]byte, 1<<16-1)}), syscall.EMSGSIZE)
		require.ErrorIs(t, c.Call(t.Context(), &session.Call{}), syscall.EINVAL)
		require.Zero(t, s.Stats().Executed)
	})
}

// TestCountsExactly has more callers than slots add under loss, reordering and
// duplication: each call is executed once.
func TestCountsExactly(t *testing.T) {
	var sum atomic.Uint64
	add := func(_ context.Context, r *session.Request) session.Reply {
		return session.Reply{Body: session.Bytes(binary.BigEndian.AppendUint64(nil, sum.Add(1)))}
	}
	pair(t, "loss=5%&reorder=25%&dup=2%&seed=1", add, func(t *testing.T, c *session.Client, s *session.Server) {
		const callers, each = 300, 4
		addEach(t, c, callers, each).Wait()
		require.EqualValues(t, callers*each, sum.Load())
		require.EqualValues(t, callers*each, s.Stats().Executed)
		require.EqualValues(t, 1, c.Stats().Connections)
	})
}

// addEach has callers make calls, each of which has an answer of its own.
func addEach(t *testing.T, c *session.Client, callers, each int) (all *sync.WaitGroup) {
	var seen sync.Map
	all = &sync.WaitGroup{}
	for range callers {
		all.Go(func() {
			for range each {
				assert.NoError(t, c.Call(t.Context(), &session.Call{Method: "add", WaitForReady: true, Reply: func(a *session.Answer) error {
					_, twice := seen.LoadOrStore(binary.BigEndian.Uint64(a.Body), true)
					assert.False(t, twice, "two calls have one answer")
					return nil
				}}))
			}
		})
	}
	return all
}

func TestCancelFreesTheCallerAndKeepsTheConnection(t *testing.T) {
	var ended atomic.Int32
	wait := func(ctx context.Context, r *session.Request) session.Reply {
		if r.Method == "wait" {
			<-ctx.Done()
			ended.Add(1)
		}
		return session.Reply{}
	}
	pair(t, "", wait, func(t *testing.T, c *session.Client, s *session.Server) {
		for range 300 { // more than the session has slots
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- c.Call(ctx, &session.Call{Method: "wait"}) }()
			synctest.Wait()
			cancel()
			require.ErrorIs(t, <-done, context.Canceled)
		}
		require.NoError(t, c.Call(t.Context(), &session.Call{Method: "go on"}))
		require.EqualValues(t, 1, c.Stats().Connections)
	})
	require.Positive(t, ended.Load())
}

func TestDeadlineReachesTheHandler(t *testing.T) {
	var hanging chan struct{}
	left := func(ctx context.Context, r *session.Request) session.Reply {
		at, ok := ctx.Deadline()
		if r.Method == "hang" {
			<-hanging
		}
		return session.Reply{Status: session.Status{Code: uint32(time.Until(at))}, Body: session.Bytes(fmt.Append(nil, ok))}
	}
	pair(t, "", left, func(t *testing.T, c *session.Client, s *session.Server) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.NoError(t, c.Call(ctx, &session.Call{Method: "left", Reply: func(a *session.Answer) error {
			require.Equal(t, "true", string(a.Body))
			require.Positive(t, a.Status.Code)
			require.LessOrEqual(t, a.Status.Code, uint32(time.Second))
			return nil
		}}))
		hanging = make(chan struct{})
		require.ErrorIs(t, c.Call(ctx, &session.Call{Method: "hang"}), context.DeadlineExceeded)
		close(hanging)
		require.NoError(t, c.Call(t.Context(), &session.Call{Method: "go on"}))
		require.EqualValues(t, 1, c.Stats().Connections)
	})
}
