package rpc

import (
	"context"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
)

// direct is a session without a network, goroutines and allocations.
type direct struct {
	server *Server
	in     incoming
	out    []byte
	back   []byte
}

func (d *direct) addrs() (local, remote net.Addr)                    { return clientAt, serverAt }
func (d *direct) close() error                                       { return nil }
func (d *direct) open(context.Context, *request) (clientSide, error) { return nil, errBroken }
func (d *direct) call(ctx context.Context, r *request, t taker) (err error) {
	if d.out, err = r.body.Append(d.out[:0]); err != nil {
		return err
	}
	d.in.method, d.in.metadata, d.in.body = r.method, r.metadata, d.out
	a, b := d.server.call(d.in)
	if d.back, err = b.Append(d.back[:0]); err != nil {
		return err
	}
	return t.take(*a, d.back)
}

type empty struct {
	testgrpc.UnimplementedTestServiceServer
}

func (empty) EmptyCall(context.Context, *testgrpc.Empty) (*testgrpc.Empty, error) {
	return &testgrpc.Empty{}, nil
}

func newDirect(t testing.TB) testgrpc.TestServiceClient {
	s := NewServer(ServerConfig{})
	testgrpc.RegisterTestServiceServer(s, empty{})
	d := &direct{server: s, in: incoming{ctx: connContext(context.Background(), serverAt, clientAt)}}
	c, err := newClientConn(d, "x", ClientConfig{})
	require.NoError(t, err)
	return testgrpc.NewTestServiceClient(c)
}

// TestAllocations: of both ends, besides the four messages; grpc's stub makes
// one of them, and a context that is not the connection's is the session's.
func TestAllocations(t *testing.T) {
	c, ctx := newDirect(t), context.Background()
	n := testing.AllocsPerRun(1000, func() {
		if _, err := c.EmptyCall(ctx, &testgrpc.Empty{}); err != nil {
			t.Fatal(err)
		}
	})
	require.LessOrEqual(t, n-4, 4.0)
}

func BenchmarkFace(b *testing.B) {
	c := newDirect(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.EmptyCall(context.Background(), &testgrpc.Empty{}); err != nil {
			b.Fatal(err)
		}
	}
}
