package rpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
)

// echo is the service of grpc-go's interoperability suite, with metadata and
// statuses that the request asks for.
type echo struct {
	testgrpc.UnimplementedTestServiceServer
}

func (echo) EmptyCall(ctx context.Context, _ *testgrpc.Empty) (*testgrpc.Empty, error) {
	p, ok := peer.FromContext(ctx)
	if !ok || p.Addr == nil {
		return nil, status.Error(codes.Internal, "no peer")
	}
	return &testgrpc.Empty{}, nil
}

// answerMetadata sends back what the client sent, as headers and trailers.
func answerMetadata(ctx context.Context, header, trailer func(metadata.MD) error) error {
	in, ok := metadata.FromIncomingContext(ctx)
	if !ok {
		return status.Error(codes.Internal, "no metadata")
	}
	headers, trailers := metadata.MD{}, metadata.MD{}
	for key, values := range in {
		switch key[:2] {
		case "h-":
			headers[key] = values
		case "t-":
			trailers[key] = values
		}
	}
	return errors.Join(header(headers), trailer(trailers))
}

// asked is the status that a request asks for, with a detail.
func asked(s *testgrpc.EchoStatus) error {
	if s.GetCode() == 0 {
		return nil
	}
	detailed, err := status.New(codes.Code(s.Code), s.Message).WithDetails(durationpb.New(7))
	if err != nil {
		return err
	}
	return detailed.Err()
}

func (echo) UnaryCall(ctx context.Context, r *testgrpc.SimpleRequest) (*testgrpc.SimpleResponse, error) {
	if r.GetPayload().GetBody() != nil && string(r.Payload.Body) == "wait" {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if method, ok := grpc.Method(ctx); !ok || method != testgrpc.TestService_UnaryCall_FullMethodName {
		return nil, status.Errorf(codes.Internal, "method %q", method)
	}
	err := answerMetadata(ctx,
		func(md metadata.MD) error { return grpc.SetHeader(ctx, md) },
		func(md metadata.MD) error { return grpc.SetTrailer(ctx, md) })
	if err != nil {
		return nil, err
	}
	if r.FillUsername { // means here: the headers are final
		if err := grpc.SendHeader(ctx, metadata.Pairs("h-last", "1")); err != nil {
			return nil, err
		}
		if grpc.SetHeader(ctx, metadata.Pairs("h-late", "1")) == nil {
			return nil, status.Error(codes.Internal, "a late header was taken")
		}
	}
	if err := asked(r.ResponseStatus); err != nil {
		return nil, err
	}
	return &testgrpc.SimpleResponse{Payload: &testgrpc.Payload{Body: append([]byte("you said "), r.GetPayload().GetBody()...)}}, nil
}

func (echo) StreamingOutputCall(r *testgrpc.StreamingOutputCallRequest, s testgrpc.TestService_StreamingOutputCallServer) error {
	if err := answerMetadata(s.Context(), s.SetHeader, func(md metadata.MD) error { s.SetTrailer(md); return nil }); err != nil {
		return err
	}
	for _, p := range r.ResponseParameters {
		if err := s.Send(&testgrpc.StreamingOutputCallResponse{Payload: &testgrpc.Payload{Body: make([]byte, p.Size)}}); err != nil {
			return err
		}
	}
	return asked(r.ResponseStatus)
}

func (echo) StreamingInputCall(s testgrpc.TestService_StreamingInputCallServer) error {
	sum := int32(0)
	for {
		r, err := s.Recv()
		if errors.Is(err, io.EOF) {
			return s.SendAndClose(&testgrpc.StreamingInputCallResponse{AggregatedPayloadSize: sum})
		}
		if err != nil {
			return err
		}
		if sum += int32(len(r.Payload.Body)); sum > 1000 {
			return status.Error(codes.OutOfRange, "that is enough")
		}
	}
}

func (echo) FullDuplexCall(s testgrpc.TestService_FullDuplexCallServer) error {
	if err := answerMetadata(s.Context(), s.SendHeader, func(md metadata.MD) error { s.SetTrailer(md); return nil }); err != nil {
		return err
	}
	for {
		r, err := s.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := asked(r.ResponseStatus); err != nil {
			return err
		}
		if err := s.Send(&testgrpc.StreamingOutputCallResponse{Payload: r.Payload}); err != nil {
			return err
		}
	}
}

// registerAll registers the same services with either server.
func registerAll(s reflection.GRPCServer) {
	testgrpc.RegisterTestServiceServer(s, echo{})
	grpc_health_v1.RegisterHealthServer(s, health.NewServer())
	reflection.Register(s)
}

// ours is a ClientConn to a server of this package.
func ours(t *testing.T, server ServerConfig, client ClientConfig) *ClientConn {
	return oursOn(t, "", server, client)
}

// oursOn is ours over a soft device with options.
func oursOn(t *testing.T, options string, server ServerConfig, client ClientConfig) *ClientConn {
	device := must.Get(uapi.Open("soft"+options, uapi.OpenConfig{}))(t)
	t.Cleanup(func() { require.NoError(t, device.Close()) })
	info := must.Get(device.QueryDevice())(t)
	l := must.Get(device.Listen(info.Address.Addr().String()+":0", uapi.ListenConfig{}))(t)
	s := NewServer(server)
	registerAll(s)
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	client.Device = device
	c := must.Get(Dial(limited(t), l.Addr().String(), client))(t)
	t.Cleanup(func() {
		require.NoError(t, c.Close())
		s.GracefulStop()
		require.NoError(t, <-served)
		require.NoError(t, l.Close())
		require.Empty(t, device.OpenHandles())
	})
	return c
}

// theirs is a ClientConn of grpc-go to a server of grpc-go with all services,
// in memory.
func theirs(t *testing.T, server []grpc.ServerOption, client ...grpc.DialOption) *grpc.ClientConn {
	l := bufconn.Listen(1 << 20)
	s := grpc.NewServer(append(server, grpc.WaitForHandlers(true))...)
	registerAll(s)
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	c, err := grpc.NewClient("passthrough:///bufconn", append(client, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))...)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, c.Close())
		s.Stop()
		require.NoError(t, <-served)
	})
	return c
}

// said is an error as a line: its code, its text if a handler chose it, and its
// details.
func said(err error, text bool) string {
	s, ok := status.FromError(err)
	if !ok {
		return fmt.Sprintf("no status: %v", err)
	}
	line := s.Code().String()
	if text {
		line += fmt.Sprintf(" %q", s.Message())
	}
	return line + fmt.Sprint(" ", s.Details())
}
