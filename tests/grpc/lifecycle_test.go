package grpctest

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/rdmashim/rdmashim/tests/must"
)

// asked is a request for a response of that many bytes, which carries as many.
func asked(size int) *testgrpc.SimpleRequest {
	return &testgrpc.SimpleRequest{ResponseSize: int32(size), Payload: &testgrpc.Payload{Body: bytes.Repeat([]byte{1}, size)}}
}

// call makes a call with that much each way.
func call(t *testing.T, c *grpc.ClientConn, size int, options ...grpc.CallOption) error {
	r, err := testgrpc.NewTestServiceClient(c).UnaryCall(limited(t), asked(size), options...)
	if err == nil && len(r.GetPayload().GetBody()) != size {
		err = fmt.Errorf("a response of %d bytes, not %d", len(r.GetPayload().GetBody()), size)
	}
	return err
}

// TestParallelCallers: 32 callers share a connection.
func TestParallelCallers(t *testing.T) {
	h := newHost(t, softPair)
	h.serve(t)
	c := h.dial(t)
	var all sync.WaitGroup
	for i := range 32 {
		all.Go(func() {
			for j := range 20 {
				if err := call(t, c, 1+997*(i+j)); err != nil {
					t.Errorf("caller %d, call %d: %v", i, j, err)
				}
			}
		})
	}
	all.Wait()
	require.EqualValues(t, 1, h.accepted.Load())
}

// TestKeepAlive: an idle connection is alive after ten minutes of pings from
// both ends.
func TestKeepAlive(t *testing.T) {
	virtual(t, func(t *testing.T) {
		h := newHost(t, simPair)
		h.serve(t, grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}),
			grpc.KeepaliveParams(keepalive.ServerParameters{Time: 10 * time.Second, Timeout: time.Second}))
		c := h.dial(t, grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: time.Second, PermitWithoutStream: true}),
			grpc.WithIdleTimeout(0))
		require.NoError(t, call(t, c, 100))
		time.Sleep(10 * time.Minute)
		require.NoError(t, call(t, c, 100))
		require.EqualValues(t, 1, h.accepted.Load())
	})
}

// TestConnectionAge: the server ends each connection after a minute, and no
// call notices.
func TestConnectionAge(t *testing.T) {
	virtual(t, func(t *testing.T) {
		h := newHost(t, simPair)
		h.serve(t, grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionAge: time.Minute}))
		c := h.dial(t)
		for range 100 {
			require.NoError(t, call(t, c, 100))
			time.Sleep(5 * time.Second)
		}
		require.Greater(t, h.accepted.Load(), int64(4))
	})
}

// TestGracefulStop: the stream that is under way goes on to its end, and no
// other call begins.
func TestGracefulStop(t *testing.T) {
	virtual(t, func(t *testing.T) {
		h := newHost(t, simPair)
		s := h.serve(t)
		c := h.dial(t)
		stream := must.Get(testgrpc.NewTestServiceClient(c).FullDuplexCall(limited(t)))(t)
		pingPong := func() {
			require.NoError(t, stream.Send(&testgrpc.StreamingOutputCallRequest{
				ResponseParameters: []*testgrpc.ResponseParameters{{Size: 10_000}},
			}))
			must.Get(stream.Recv())(t)
		}
		pingPong()
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			s.GracefulStop()
		}()
		synctest.Wait()
		require.Equal(t, codes.Unavailable, status.Code(call(t, c, 1)))
		pingPong()
		require.NoError(t, stream.CloseSend())
		must.Fail(stream.Recv())(t, io.EOF)
		<-stopped
	})
}
