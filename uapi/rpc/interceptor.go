package rpc

import (
	"context"

	"google.golang.org/grpc"
)

// chain makes one interceptor of a list, nil of an empty one. The first stands
// outermost, as in grpc-go.
func chain[I any](list []I, join func(outer, inner I) I) (all I) {
	for i := len(list) - 1; i >= 0; i-- {
		if i == len(list)-1 {
			all = list[i]
		} else {
			all = join(list[i], all)
		}
	}
	return all
}

func joinUnaryClient(outer, inner grpc.UnaryClientInterceptor) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		return outer(ctx, method, req, reply, cc, func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, opts ...grpc.CallOption) error {
			return inner(ctx, method, req, reply, cc, invoker, opts...)
		}, opts...)
	}
}

func joinStreamClient(outer, inner grpc.StreamClientInterceptor) grpc.StreamClientInterceptor {
	return func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		return outer(ctx, desc, cc, method, func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			return inner(ctx, desc, cc, method, streamer, opts...)
		}, opts...)
	}
}

func joinUnaryServer(outer, inner grpc.UnaryServerInterceptor) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		return outer(ctx, req, info, func(ctx context.Context, req any) (any, error) {
			return inner(ctx, req, info, handler)
		})
	}
}

func joinStreamServer(outer, inner grpc.StreamServerInterceptor) grpc.StreamServerInterceptor {
	return func(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		return outer(srv, ss, info, func(srv any, ss grpc.ServerStream) error {
			return inner(srv, ss, info, handler)
		})
	}
}
