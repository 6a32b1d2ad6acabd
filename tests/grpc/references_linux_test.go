package grpctest

import (
	"context"
	"fmt"
	"net"
	"os"
	"testing"

	"github.com/containerd/ttrpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/interop"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/protobuf/proto"
	"storj.io/drpc"
	"storj.io/drpc/drpcconn"
	"storj.io/drpc/drpcmux"
	"storj.io/drpc/drpcpool"
	"storj.io/drpc/drpcserver"
)

// testService and unaryCall name what the references call.
const (
	testService = "grpc.testing.TestService"
	unaryCall   = "/" + testService + "/UnaryCall"
)

// serveReferences serves gRPC over a UNIX socket, and UnaryCall by ttrpc over
// one and by dRPC over TCP.
func serveReferences(s *grpc.Server, all *servers) error {
	var unix [2]net.Listener
	for i, name := range []string{"grpc", "ttrpc"} {
		var err error
		if unix[i], err = net.Listen("unix", fmt.Sprintf("@rdmashim/grpctest/%d/%s", os.Getpid(), name)); err != nil {
			return err
		}
	}
	tcp, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		return err
	}
	service := interop.NewTestServer()
	t, err := ttrpc.NewServer()
	if err != nil {
		return err
	}
	t.Register(testService, map[string]ttrpc.Method{"UnaryCall": func(ctx context.Context, unmarshal func(any) error) (any, error) {
		var in testgrpc.SimpleRequest
		if err := unmarshal(&in); err != nil {
			return nil, err
		}
		return service.UnaryCall(ctx, &in)
	}})
	mux := drpcmux.New()
	if err := mux.Register(service, description{}); err != nil {
		return err
	}
	go s.Serve(unix[0])
	go t.Serve(context.Background(), unix[1])
	go drpcserver.New(mux).Serve(context.Background(), tcp)
	all.UNIX, all.TTRPC, all.DRPC = unix[0].Addr().String(), unix[1].Addr().String(), tcp.Addr().String()
	return nil
}

// description tells dRPC of UnaryCall, as code generated for it would.
type description struct{}

func (description) NumMethods() int { return 1 }

func (description) Method(n int) (string, drpc.Encoding, drpc.Receiver, any, bool) {
	receive := func(service any, ctx context.Context, in, _ any) (drpc.Message, error) {
		return service.(testgrpc.TestServiceServer).UnaryCall(ctx, in.(*testgrpc.SimpleRequest))
	}
	return unaryCall, encoding{}, receive, testgrpc.TestServiceServer.UnaryCall, n == 0
}

// encoding is protobuf, for dRPC.
type encoding struct{}

func (encoding) Marshal(m drpc.Message) ([]byte, error) { return proto.Marshal(m.(proto.Message)) }
func (encoding) Unmarshal(b []byte, m drpc.Message) error {
	return proto.Unmarshal(b, m.(proto.Message))
}

// dialTTRPC returns UnaryCall over one connection.
func dialTTRPC(b *testing.B, addr string) unary {
	conn, err := net.Dial("unix", addr)
	if err != nil {
		b.Fatal(err)
	}
	c := ttrpc.NewClient(conn)
	b.Cleanup(func() { _ = c.Close() })
	return func(ctx context.Context, in *testgrpc.SimpleRequest) error {
		return c.Call(ctx, testService, "UnaryCall", in, new(testgrpc.SimpleResponse))
	}
}

// dialDRPC returns UnaryCall over a pool of connections, one for each call that
// is under way.
func dialDRPC(b *testing.B, addr string) unary {
	pool := drpcpool.New[string, drpcpool.Conn](drpcpool.Options{})
	b.Cleanup(func() { _ = pool.Close() })
	c := pool.Get(context.Background(), addr, func(ctx context.Context, addr string) (drpcpool.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
		if err != nil {
			return nil, err
		}
		return drpcconn.New(conn), nil
	})
	return func(ctx context.Context, in *testgrpc.SimpleRequest) error {
		return c.Invoke(ctx, unaryCall, encoding{}, in, new(testgrpc.SimpleResponse))
	}
}
