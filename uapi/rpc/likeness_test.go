package rpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health/grpc_health_v1"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	reflectpb "google.golang.org/grpc/reflection/grpc_reflection_v1"

	"github.com/rdmashim/rdmashim/uapi/rpc/session"
)

// patience bounds hangs.
const patience = time.Minute

func limited(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// asking adds metadata that comes back in headers and trailers.
func asking(ctx context.Context) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "h-word", "a", "h-word", "b", "h-raw-bin", "\x00\xff\n", "t-word", "c", "t-raw-bin", "\x80")
}

// back keeps of metadata what asking has sent.
func back(md metadata.MD) string {
	var list []string
	for key, values := range md {
		if strings.HasPrefix(key, "h-") || strings.HasPrefix(key, "t-") {
			list = append(list, fmt.Sprintf("%s=%q", key, values))
		}
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}

// behaviours are the ways of a connection that a program sees, a line each.
var behaviours = []struct {
	name string
	see  func(ctx context.Context, c grpc.ClientConnInterface) string
}{
	{"unary with metadata both ways", func(ctx context.Context, c grpc.ClientConnInterface) string {
		var header, trailer metadata.MD
		r, err := testgrpc.NewTestServiceClient(c).UnaryCall(asking(ctx), simple("hello"), grpc.Header(&header), grpc.Trailer(&trailer))
		return fmt.Sprintf("%s %s header %s trailer %s", r.GetPayload().GetBody(), said(err, true), back(header), back(trailer))
	}},
	{"failed unary with metadata both ways", func(ctx context.Context, c grpc.ClientConnInterface) string {
		var header, trailer metadata.MD
		r := simple("hello")
		r.ResponseStatus = &testgrpc.EchoStatus{Code: 9, Message: "\t\ntest with whitespace\r\nand Unicode BMP ☺ and non-BMP 😈\t\n"}
		_, err := testgrpc.NewTestServiceClient(c).UnaryCall(asking(ctx), r, grpc.Header(&header), grpc.Trailer(&trailer))
		return fmt.Sprintf("%s header %s trailer %s", said(err, true), back(header), back(trailer))
	}},
	{"headers sent early", func(ctx context.Context, c grpc.ClientConnInterface) string {
		var header, trailer metadata.MD
		r := simple("hello")
		r.FillUsername = true
		_, err := testgrpc.NewTestServiceClient(c).UnaryCall(asking(ctx), r, grpc.Header(&header), grpc.Trailer(&trailer))
		return fmt.Sprintf("%s header %s trailer %s", said(err, true), back(header), back(trailer))
	}},
	{"an own code", func(ctx context.Context, c grpc.ClientConnInterface) string {
		r := simple("")
		r.ResponseStatus = &testgrpc.EchoStatus{Code: 4711, Message: "mine"}
		_, err := testgrpc.NewTestServiceClient(c).UnaryCall(ctx, r)
		return said(err, true)
	}},
	{"empty message, and the peer", func(ctx context.Context, c grpc.ClientConnInterface) string {
		var p peer.Peer
		_, err := testgrpc.NewTestServiceClient(c).EmptyCall(ctx, &testgrpc.Empty{}, grpc.Peer(&p))
		return fmt.Sprint(said(err, true), p.Addr != nil)
	}},
	{"unknown method", func(ctx context.Context, c grpc.ClientConnInterface) string {
		_, err := testgrpc.NewTestServiceClient(c).CacheableUnaryCall(ctx, simple(""))
		return said(err, true) // of the stub that generated code embeds
	}},
	{"unknown service", func(ctx context.Context, c grpc.ClientConnInterface) string {
		_, err := testgrpc.NewUnimplementedServiceClient(c).UnimplementedCall(ctx, &testgrpc.Empty{})
		return said(err, false)
	}},
	{"deadline", func(ctx context.Context, c grpc.ClientConnInterface) string {
		for limit := time.Millisecond; ; limit *= 2 {
			late, cancel := context.WithTimeout(ctx, limit)
			_, err := testgrpc.NewTestServiceClient(c).UnaryCall(late, simple("wait"))
			cancel()
			if unsent := errors.Is(err, session.ErrNotSent) || errors.Is(err, session.ErrUnavailable); !unsent || ctx.Err() != nil {
				return said(err, false)
			} // docs/rpc.md: UNAVAILABLE, as it passed before the call was sent
		}
	}},
	{"metadata that may not be", func(ctx context.Context, c grpc.ClientConnInterface) string {
		_, err := testgrpc.NewTestServiceClient(c).UnaryCall(metadata.AppendToOutgoingContext(ctx, "key", "ä"), simple(""))
		_, spaced := testgrpc.NewTestServiceClient(c).UnaryCall(metadata.AppendToOutgoingContext(ctx, "a key", "a"), simple(""))
		return said(err, false) + said(spaced, false)
	}},
	{"message too long", func(ctx context.Context, c grpc.ClientConnInterface) string {
		_, sent := testgrpc.NewTestServiceClient(c).UnaryCall(ctx, simple("hello, hello"), grpc.MaxCallSendMsgSize(10))
		_, received := testgrpc.NewTestServiceClient(c).UnaryCall(ctx, simple("hello, hello"), grpc.MaxCallRecvMsgSize(10))
		_, server := testgrpc.NewTestServiceClient(c).UnaryCall(ctx, simple(strings.Repeat("x", 5<<20)))
		return said(sent, false) + said(received, false) + said(server, false)
	}},
	{"nobody has that codec", func(ctx context.Context, c grpc.ClientConnInterface) string {
		_, err := testgrpc.NewTestServiceClient(c).UnaryCall(ctx, simple(""), grpc.CallContentSubtype("none"))
		return fmt.Sprint(err != nil)
	}},
	{"server stream", func(ctx context.Context, c grpc.ClientConnInterface) string {
		s, err := testgrpc.NewTestServiceClient(c).StreamingOutputCall(asking(ctx), sizes(0, 1, 1000, 70000))
		if err != nil {
			return said(err, true)
		}
		header, err := s.Header()
		line := said(err, true) + " header " + back(header) + ":"
		for {
			r, err := s.Recv()
			if err != nil {
				return fmt.Sprint(line, err, " trailer ", back(s.Trailer()))
			}
			line += fmt.Sprint(" ", len(r.GetPayload().GetBody()))
		}
	}},
	{"server stream that fails at once", func(ctx context.Context, c grpc.ClientConnInterface) string {
		r := sizes()
		r.ResponseStatus = &testgrpc.EchoStatus{Code: 5, Message: "none"}
		s, err := testgrpc.NewTestServiceClient(c).StreamingOutputCall(asking(ctx), r)
		if err != nil {
			return said(err, true)
		}
		_, err = s.Recv()
		_, again := s.Recv()
		header, headerErr := s.Header()
		return said(err, true) + said(again, true) + said(headerErr, false) + back(header) + " trailer " + back(s.Trailer())
	}},
	{"client stream", func(ctx context.Context, c grpc.ClientConnInterface) string {
		s, err := testgrpc.NewTestServiceClient(c).StreamingInputCall(ctx)
		if err != nil {
			return said(err, true)
		}
		for n := range 4 {
			if err := s.Send(&testgrpc.StreamingInputCallRequest{Payload: &testgrpc.Payload{Body: make([]byte, n)}}); err != nil {
				return said(err, true)
			}
		}
		r, err := s.CloseAndRecv()
		return fmt.Sprint(r.GetAggregatedPayloadSize(), said(err, true))
	}},
	{"client stream that the server ends", func(ctx context.Context, c grpc.ClientConnInterface) string {
		s, err := testgrpc.NewTestServiceClient(c).StreamingInputCall(ctx)
		for err == nil { // until the end is known
			err = s.Send(&testgrpc.StreamingInputCallRequest{Payload: &testgrpc.Payload{Body: make([]byte, 600)}})
		}
		_, end := s.CloseAndRecv()
		return fmt.Sprint(errors.Is(err, io.EOF), said(end, true))
	}},
	{"both ways", func(ctx context.Context, c grpc.ClientConnInterface) string {
		s, err := testgrpc.NewTestServiceClient(c).FullDuplexCall(asking(ctx))
		if err != nil {
			return said(err, true)
		}
		header, err := s.Header() // before the first message
		line := said(err, true) + back(header)
		for n := range 3 {
			if err := s.Send(&testgrpc.StreamingOutputCallRequest{Payload: &testgrpc.Payload{Body: make([]byte, n)}}); err != nil {
				return said(err, true)
			}
			r, err := s.Recv()
			line += fmt.Sprint(" ", len(r.GetPayload().GetBody()), err)
		}
		_ = s.CloseSend()
		_, err = s.Recv()
		return fmt.Sprint(line, err, back(s.Trailer()))
	}},
	{"both ways, failed", func(ctx context.Context, c grpc.ClientConnInterface) string {
		s, err := testgrpc.NewTestServiceClient(c).FullDuplexCall(asking(ctx))
		if err != nil {
			return said(err, true)
		}
		_ = s.Send(&testgrpc.StreamingOutputCallRequest{ResponseStatus: &testgrpc.EchoStatus{Code: 2, Message: "no"}})
		_, err = s.Recv()
		return said(err, true) + back(s.Trailer())
	}},
	{"stream cancelled", func(ctx context.Context, c grpc.ClientConnInterface) string {
		ctx, cancel := context.WithCancel(ctx)
		s, err := testgrpc.NewTestServiceClient(c).FullDuplexCall(ctx)
		if err != nil {
			cancel()
			return said(err, true)
		}
		cancel()
		_, err = s.Recv()
		return said(err, false)
	}},
	{"health", func(ctx context.Context, c grpc.ClientConnInterface) string {
		r, err := grpc_health_v1.NewHealthClient(c).Check(ctx, &grpc_health_v1.HealthCheckRequest{})
		_, unknown := grpc_health_v1.NewHealthClient(c).Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: "x"})
		return r.GetStatus().String() + said(err, true) + said(unknown, true)
	}},
	{"reflection", func(ctx context.Context, c grpc.ClientConnInterface) string {
		s, err := reflectpb.NewServerReflectionClient(c).ServerReflectionInfo(ctx)
		if err != nil {
			return said(err, true)
		}
		_ = s.Send(&reflectpb.ServerReflectionRequest{MessageRequest: &reflectpb.ServerReflectionRequest_ListServices{}})
		r, err := s.Recv()
		line := said(err, true)
		for _, service := range r.GetListServicesResponse().GetService() {
			line += " " + service.Name
		}
		_ = s.CloseSend()
		_, err = s.Recv()
		return fmt.Sprint(line, err)
	}},
	{"unary method by a stream", func(ctx context.Context, c grpc.ClientConnInterface) string {
		s, err := c.NewStream(ctx, &grpc.StreamDesc{}, testgrpc.TestService_UnaryCall_FullMethodName)
		if err != nil {
			return said(err, true)
		}
		r := &testgrpc.SimpleResponse{}
		sent := s.SendMsg(simple("hello"))
		_ = s.CloseSend()
		err = s.RecvMsg(r)
		return fmt.Sprint(string(r.GetPayload().GetBody()), sent, said(err, true))
	}},
	{"finished", func(ctx context.Context, c grpc.ClientConnInterface) string {
		var ends []string
		note := grpc.OnFinish(func(err error) { ends = append(ends, said(err, false)) })
		_, _ = testgrpc.NewTestServiceClient(c).UnaryCall(ctx, simple(""), note)
		r := simple("")
		r.ResponseStatus = &testgrpc.EchoStatus{Code: 3}
		_, _ = testgrpc.NewTestServiceClient(c).UnaryCall(ctx, r, note)
		s, err := testgrpc.NewTestServiceClient(c).StreamingOutputCall(ctx, sizes(1), note)
		for err == nil {
			_, err = s.Recv()
		}
		return fmt.Sprint(ends)
	}},
}

func simple(text string) *testgrpc.SimpleRequest {
	return &testgrpc.SimpleRequest{Payload: &testgrpc.Payload{Body: []byte(text)}}
}

func sizes(list ...int32) *testgrpc.StreamingOutputCallRequest {
	r := &testgrpc.StreamingOutputCallRequest{}
	for _, n := range list {
		r.ResponseParameters = append(r.ResponseParameters, &testgrpc.ResponseParameters{Size: n})
	}
	return r
}

// TestLikeness: a program sees the same behaviour of our ClientConn as of
// grpc-go's, with the same services at the other end, with and without faults
// on the wire.
func TestLikeness(t *testing.T) {
	reference := theirs(t, nil)
	for _, options := range []string{"", "?loss=2%&reorder=5%&dup=1%&seed=3"} {
		subject := oursOn(t, options, ServerConfig{}, ClientConfig{})
		for _, b := range behaviours {
			t.Run(b.name+options, func(t *testing.T) {
				want := b.see(limited(t), reference)
				t.Log(want)
				require.Equal(t, want, b.see(limited(t), subject))
			})
		}
	}
}
