package rpc

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
)

// TestInterceptors: those of a list stand around each other in its order, at
// both ends, for calls and streams, and know the target.
func TestInterceptors(t *testing.T) {
	var seen []string
	note := func(format string, a ...any) { seen = append(seen, fmt.Sprintf(format, a...)) }
	var client ClientConfig
	var server ServerConfig
	for _, name := range []string{"a", "b", "c"} {
		client.UnaryInterceptors = append(client.UnaryInterceptors, func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			note("%s> %s", name, cc.Target())
			err := invoker(ctx, method, req, reply, cc, opts...)
			note("<%s", name)
			return err
		})
		client.StreamInterceptors = append(client.StreamInterceptors, func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			note("%s> %s", name, desc.StreamName)
			return streamer(ctx, desc, cc, method, opts...)
		})
		server.UnaryInterceptors = append(server.UnaryInterceptors, func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			note("%s] %s", name, info.FullMethod)
			return handler(ctx, req)
		})
		server.StreamInterceptors = append(server.StreamInterceptors, func(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
			note("%s] %v%v", name, info.IsClientStream, info.IsServerStream)
			return handler(srv, ss)
		})
	}
	c := ours(t, server, client)
	_, err := testgrpc.NewTestServiceClient(c).EmptyCall(limited(t), &testgrpc.Empty{})
	require.NoError(t, err)
	target, method := "passthrough:///"+c.Target(), "/grpc.testing.TestService/EmptyCall"
	require.Equal(t, []string{"a> " + target, "b> " + target, "c> " + target, "a] " + method, "b] " + method, "c] " + method, "<c", "<b", "<a"}, seen)
	seen = nil
	s, err := testgrpc.NewTestServiceClient(c).StreamingOutputCall(limited(t), sizes())
	require.NoError(t, err)
	_, err = s.Recv()
	require.Error(t, err)
	require.Equal(t, []string{"a> StreamingOutputCall", "b> StreamingOutputCall", "c> StreamingOutputCall", "a] falsetrue", "b] falsetrue", "c] falsetrue"}, seen)
}
