package sample

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/tools/rdmashim/sample/samplepb"
)

// patience bounds hangs.
const patience = time.Minute

// memory connects a client to services in memory.
func memory(t *testing.T, register func(grpc.ServiceRegistrar), options ...grpc.ServerOption) *grpc.ClientConn {
	t.Helper()
	l := bufconn.Listen(1 << 20)
	s := grpc.NewServer(append(options, grpc.WaitForHandlers(true))...)
	register(s)
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	c, err := grpc.NewClient("passthrough:///memory", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, c.Close())
		s.Stop()
		require.NoError(t, <-served)
	})
	return c
}

// TestCounting: all calls count, the count of an earlier process stays, and the
// middle is passed once.
func TestCounting(t *testing.T) {
	path := filepath.Join(t.TempDir(), "counter")
	total := int64(0)
	for range 2 {
		c := must.Get(openCounter(path, nil))(t)
		client := samplepb.NewCounterClient(memory(t, func(s grpc.ServiceRegistrar) { samplepb.RegisterCounterServer(s, c) }))
		middles := 0
		work := counting{calls: 101, callers: 7, timeout: patience, midway: func() error { middles++; return nil }}
		r := must.Get(work.run(t.Context(), client))(t)
		require.Equal(t, []int64{101, 101, 0, 101}, []int64{r.Calls, r.Acknowledged, r.Unknown, r.Counted})
		require.Equal(t, 1, middles)
		total += r.Counted
		answer := must.Get(client.Read(t.Context(), &samplepb.ReadRequest{}))(t)
		require.Equal(t, total, answer.Value)
		require.NoError(t, c.close())
	}
	require.NoError(t, os.WriteFile(path, []byte("short"), 0o600))
	_, err := openCounter(path, nil)
	require.ErrorContains(t, err, "is no counter's file")
}

// TestCountingFinds a server that executes a call twice, and one that answers a
// call that it did not execute. A caller's error ends the run.
func TestCountingFinds(t *testing.T) {
	for want, serve := range map[string]func(*samplepb.AddRequest) error{
		"at most once is broken": func(r *samplepb.AddRequest) error { r.N *= 2; return nil },
		"went up by 0":           func(r *samplepb.AddRequest) error { r.N = 0; return nil },
		"not today":              func(*samplepb.AddRequest) error { return status.Error(codes.FailedPrecondition, "not today") },
	} {
		c := must.Get(openCounter("", nil))(t)
		wrong := func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			if r, ok := req.(*samplepb.AddRequest); ok {
				if err := serve(r); err != nil {
					return nil, err
				}
			}
			return handler(ctx, req)
		}
		conn := memory(t, func(s grpc.ServiceRegistrar) { samplepb.RegisterCounterServer(s, c) }, grpc.UnaryInterceptor(wrong))
		_, err := (&counting{calls: 20, callers: 3, timeout: patience}).run(t.Context(), samplepb.NewCounterClient(conn))
		require.ErrorContains(t, err, want)
	}
}

// TestCountingUnknown: a call whose answer is lost may have been executed.
func TestCountingUnknown(t *testing.T) {
	c := must.Get(openCounter("", nil))(t)
	var answered atomic.Int64
	lose := func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		answer, err := handler(ctx, req)
		if _, ok := req.(*samplepb.AddRequest); ok && err == nil {
			switch answered.Add(1) {
			case 5:
				err = status.Error(codes.DeadlineExceeded, "too late")
			case 6:
				err = status.Error(codes.Unavailable, "the connection broke")
			}
		}
		return answer, err
	}
	conn := memory(t, func(s grpc.ServiceRegistrar) { samplepb.RegisterCounterServer(s, c) }, grpc.UnaryInterceptor(lose))
	r, err := (&counting{calls: 20, callers: 3, timeout: patience}).run(t.Context(), samplepb.NewCounterClient(conn))
	require.NoError(t, err)
	require.Equal(t, []int64{18, 2, 20}, []int64{r.Acknowledged, r.Unknown, r.Counted})
}
