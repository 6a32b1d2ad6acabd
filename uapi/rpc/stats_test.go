package rpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
)

// recorder is a stats handler that notes the events of each end of a call.
type recorder struct {
	mu    sync.Mutex
	told  map[bool][]string // guarded by mu, by whether it is the client
	ended chan bool
}

type tagged struct{}

func newRecorder() *recorder {
	return &recorder{told: map[bool][]string{}, ended: make(chan bool, 16)}
}

func (*recorder) TagRPC(ctx context.Context, info *stats.RPCTagInfo) context.Context {
	return context.WithValue(ctx, tagged{}, info.FullMethodName)
}

func (r *recorder) HandleRPC(ctx context.Context, s stats.RPCStats) {
	line := fmt.Sprintf("%T %v", s, ctx.Value(tagged{}))
	switch s := s.(type) {
	case *stats.DelayedPickComplete:
		return // of balancers
	case *stats.Begin:
		line += fmt.Sprint(s.FailFast, s.IsClientStream, s.IsServerStream, s.BeginTime.IsZero())
	case *stats.OutHeader:
		line += back(s.Header)
	case *stats.InHeader:
		line += back(s.Header)
	case *stats.OutPayload:
		line += fmt.Sprintf("%T %d", s.Payload, s.Length)
	case *stats.InPayload:
		line += fmt.Sprintf("%T %d", s.Payload, s.Length)
	case *stats.InTrailer:
		line += back(s.Trailer)
	case *stats.OutTrailer:
		line += back(s.Trailer)
	case *stats.End:
		line += status.Code(s.Error).String()
	}
	r.mu.Lock()
	r.told[s.IsClient()] = append(r.told[s.IsClient()], line)
	r.mu.Unlock()
	if _, ok := s.(*stats.End); ok {
		r.ended <- true
	}
}

func (*recorder) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (*recorder) HandleConn(context.Context, stats.ConnStats)                       {}

// TestStats: handlers are told the same of calls and streams as by grpc-go. The
// order of overlapping events is the scheduler's.
func TestStats(t *testing.T) {
	calls := []func(ctx context.Context, c testgrpc.TestServiceClient) error{
		func(ctx context.Context, c testgrpc.TestServiceClient) error {
			_, err := c.UnaryCall(ctx, simple("hello"))
			return err
		},
		func(ctx context.Context, c testgrpc.TestServiceClient) error {
			r := simple("hello")
			r.ResponseStatus = &testgrpc.EchoStatus{Code: 7}
			_, err := c.UnaryCall(ctx, r, grpc.WaitForReady(true))
			return err
		},
		func(ctx context.Context, c testgrpc.TestServiceClient) error {
			s, err := c.StreamingOutputCall(ctx, sizes(1, 2, 3))
			for err == nil {
				_, err = s.Recv()
			}
			return err
		},
		func(ctx context.Context, c testgrpc.TestServiceClient) error {
			s, err := c.StreamingInputCall(ctx)
			if err != nil {
				return err
			}
			if err := s.Send(&testgrpc.StreamingInputCallRequest{Payload: &testgrpc.Payload{Body: []byte("x")}}); err != nil {
				return err
			}
			_, err = s.CloseAndRecv()
			return err
		},
	}
	for i, call := range calls {
		reference, subject := newRecorder(), newRecorder()
		for _, c := range []struct {
			conn grpc.ClientConnInterface
			told *recorder
		}{
			{theirs(t, []grpc.ServerOption{grpc.StatsHandler(reference)}, grpc.WithStatsHandler(reference)), reference},
			{ours(t, ServerConfig{StatsHandlers: []stats.Handler{subject}}, ClientConfig{StatsHandlers: []stats.Handler{subject}}), subject},
		} {
			err := call(asking(limited(t)), testgrpc.NewTestServiceClient(c.conn))
			if err != nil && !errors.Is(err, io.EOF) {
				require.Contains(t, err.Error(), "PermissionDenied")
			}
			<-c.told.ended
			<-c.told.ended
			slices.Sort(c.told.told[true])
			slices.Sort(c.told.told[false])
		}
		require.Equal(t, reference.told, subject.told, "call %d", i)
	}
}
