package rpc

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/uapitest"
)

// gate is a service whose calls wait until they are let through, and are
// counted. It answers as many bytes as it is asked for, else the request's.
type gate struct {
	testgrpc.UnimplementedTestServiceServer
	executed atomic.Int32
	begun    chan struct{} // one element a call that waits
	open     chan struct{} // closed to let calls through
}

func (g *gate) UnaryCall(ctx context.Context, r *testgrpc.SimpleRequest) (*testgrpc.SimpleResponse, error) {
	g.executed.Add(1)
	g.begun <- struct{}{}
	select {
	case <-g.open:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if code := r.GetResponseStatus().GetCode(); code != 0 {
		return nil, status.Error(codes.Code(code), r.ResponseStatus.Message)
	}
	if r.ResponseSize == 0 {
		return &testgrpc.SimpleResponse{Payload: r.Payload}, nil
	}
	return &testgrpc.SimpleResponse{Payload: &testgrpc.Payload{Body: make([]byte, r.ResponseSize)}}, nil
}

func (g *gate) FullDuplexCall(s testgrpc.TestService_FullDuplexCallServer) error {
	g.executed.Add(1)
	g.begun <- struct{}{}
	<-s.Context().Done()
	return s.Context().Err()
}

// world is a server of a gate, and a client, on a network in memory.
type world struct {
	*gate
	device   *uapi.Device
	listener *uapi.Listener
	server   *Server
	client   *ClientConn
	served   sync.WaitGroup
	deaf     atomic.Bool // the listener was closed while the server runs
}

// serve begins to serve the gate, also in place of a server that has stopped.
func (w *world) serve(t *testing.T, config ServerConfig) {
	s := NewServer(config)
	testgrpc.RegisterTestServiceServer(s, w.gate)
	w.server = s
	w.served.Go(func() {
		if err := s.Serve(w.listener); err != nil && !w.deaf.Load() {
			t.Error(err)
		}
	})
}

// leave stops the server, so that no listener is left.
func (w *world) leave() {
	w.server.Stop()
	w.served.Wait()
	_ = w.listener.Close()
}

// within runs test in virtual time.
func within(t *testing.T, faults string, config ServerConfig, test func(t *testing.T, w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{gate: &gate{begun: make(chan struct{}, 100), open: make(chan struct{})}}
		w.device, w.listener = uapitest.Listen(t, faults)
		w.serve(t, config)
		addr := w.listener.Addr().String()
		w.client = must.Get(Dial(t.Context(), addr, ClientConfig{Device: w.device}))(t)
		test(t, w)
		require.NoError(t, w.client.Close())
		w.server.Stop()
		w.served.Wait()
	})
}

// cut breaks the connection off as soon as the server has one.
func (w *world) cut() {
	for !w.server.Sessions().Cut() {
		time.Sleep(time.Millisecond)
	}
}

// TestAtMostOnce holds the table of docs/rpc.md: how a call ends, and how often
// it was executed.
func TestAtMostOnce(t *testing.T) {
	for _, c := range []struct {
		name     string
		config   ServerConfig
		request  *testgrpc.SimpleRequest
		options  []grpc.CallOption
		before   func(w *world)
		during   func(w *world) // while the handler waits
		code     codes.Code
		fate     error
		executed int32
	}{
		{name: "nothing happens", executed: 1},
		{name: "the connection breaks", during: (*world).cut, executed: 1},
		{name: "the handler fails", request: &testgrpc.SimpleRequest{ResponseStatus: &testgrpc.EchoStatus{Code: 9}}, code: codes.FailedPrecondition, executed: 1},
		{name: "the deadline passes", during: func(w *world) { time.Sleep(2 * patience) }, code: codes.DeadlineExceeded, executed: 1},
		{name: "the client is closed", during: func(w *world) { _ = w.client.Close() }, code: codes.Canceled, executed: 1},
		{name: "no server", before: (*world).leave, code: codes.Unavailable},
		{name: "the caller waits for one", options: []grpc.CallOption{grpc.WaitForReady(true)}, before: (*world).leave, code: codes.Unavailable},
		{name: "the server goes away", before: func(w *world) { w.server.GracefulStop() }, code: codes.Unavailable},
		{name: "the request is too long", config: ServerConfig{MaxReceive: 1000}, request: &testgrpc.SimpleRequest{Payload: &testgrpc.Payload{Body: make([]byte, 1001)}}, code: codes.ResourceExhausted},
		{name: "the long request is too long", request: &testgrpc.SimpleRequest{Payload: &testgrpc.Payload{Body: make([]byte, 5<<20)}}, code: codes.ResourceExhausted},
		{name: "the answer is too long", options: []grpc.CallOption{grpc.MaxCallRecvMsgSize(1000)}, request: &testgrpc.SimpleRequest{ResponseSize: 1001}, code: codes.ResourceExhausted, executed: 1},
		{name: "the long answer is too long", request: &testgrpc.SimpleRequest{ResponseSize: 5 << 20}, code: codes.ResourceExhausted, executed: 1},
		{name: "the server starts anew", during: func(w *world) { w.server.Stop(); w.serve(t, ServerConfig{}) }, code: codes.Unavailable, fate: FateUnknown, executed: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			within(t, "", c.config, func(t *testing.T, w *world) {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				if c.before != nil {
					c.before(w)
				}
				ended := make(chan error, 1)
				go func() {
					_, err := testgrpc.NewTestServiceClient(w.client).UnaryCall(ctx, cmp.Or(c.request, simple("")), c.options...)
					ended <- err
				}()
				if c.executed > 0 {
					<-w.begun
				}
				if c.during != nil {
					c.during(w)
				}
				close(w.open)
				err := <-ended
				require.Equal(t, c.code, status.Code(err), err)
				require.Equal(t, c.fate, FateOf(err), err)
				require.Equal(t, c.executed, w.executed.Load())
			})
		})
	}
}

// TestNoConnection: the connection of a call without a deadline breaks, and no
// other can be made. After the session's lifetime the call's fate is unknown.
func TestNoConnection(t *testing.T) {
	within(t, "", ServerConfig{}, func(t *testing.T, w *world) {
		ended := make(chan error, 1)
		go func() {
			_, err := testgrpc.NewTestServiceClient(w.client).UnaryCall(t.Context(), simple(""))
			ended <- err
		}()
		<-w.begun
		w.deaf.Store(true)
		require.NoError(t, w.listener.Close())
		began := time.Now()
		w.cut()
		err := <-ended
		require.Equal(t, codes.Unavailable, status.Code(err), err)
		require.Equal(t, FateUnknown, FateOf(err))
		require.InDelta(t, 60, time.Since(began).Seconds(), 15)
		require.EqualValues(t, 1, w.executed.Load())
		close(w.open)
	})
}

// TestTooManySessions: a client beyond the server's bound hears so, and a call
// that waits is made when another session has ended.
func TestTooManySessions(t *testing.T) {
	config := ServerConfig{}
	config.Session.Sessions = 1
	within(t, "", config, func(t *testing.T, w *world) {
		close(w.open)
		must.Get(testgrpc.NewTestServiceClient(w.client).UnaryCall(t.Context(), simple("")))(t)
		second, err := Dial(t.Context(), w.listener.Addr().String(), ClientConfig{Device: w.device})
		require.NoError(t, err)
		stub := testgrpc.NewTestServiceClient(second)
		_, err = stub.UnaryCall(t.Context(), simple(""))
		require.Equal(t, codes.Unavailable, status.Code(err))
		require.ErrorContains(t, err, "too many sessions")
		require.NoError(t, FateOf(err))
		require.EqualValues(t, 1, w.executed.Load())

		ended := make(chan error, 1)
		go func() {
			_, err := stub.UnaryCall(t.Context(), simple(""), grpc.WaitForReady(true))
			ended <- err
		}()
		synctest.Wait()
		require.Empty(t, ended)
		require.NoError(t, w.client.Close())
		require.NoError(t, <-ended)
		require.EqualValues(t, 2, w.executed.Load())
		require.NoError(t, second.Close())
	})
}

// TestExecutedAnswerLost: the server keeps no answer that long, and the
// connection broke before it was sent.
func TestExecutedAnswerLost(t *testing.T) {
	config := ServerConfig{}
	config.Session.SessionKept = 1000
	within(t, "delay=10ms", config, func(t *testing.T, w *world) {
		ended := make(chan error, 1)
		go func() {
			_, err := testgrpc.NewTestServiceClient(w.client).UnaryCall(t.Context(), &testgrpc.SimpleRequest{ResponseSize: 2000})
			ended <- err
		}()
		<-w.begun
		w.cut()
		close(w.open)
		err := <-ended
		require.Equal(t, codes.DataLoss, status.Code(err), err)
		require.Equal(t, FateExecuted, FateOf(err))
		require.EqualValues(t, 1, w.executed.Load())
	})
}

// TestStreamBreaks: a stream ends with its connection, and its handler is told.
func TestStreamBreaks(t *testing.T) {
	within(t, "", ServerConfig{}, func(t *testing.T, w *world) {
		s := must.Get(testgrpc.NewTestServiceClient(w.client).FullDuplexCall(t.Context()))(t)
		<-w.begun
		w.cut()
		_, err := s.Recv()
		require.Equal(t, codes.Unavailable, status.Code(err), err)
		require.EqualValues(t, 1, w.executed.Load())
	})
}
