package grpctest

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"google.golang.org/grpc"
	"google.golang.org/grpc/interop"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/stats"

	"github.com/rdmashim/rdmashim/uapi/rpc"
)

// traced is a program of both ends whose stats handlers are OpenTelemetry's.
type traced struct {
	spans          *tracetest.SpanRecorder
	provider       *trace.TracerProvider
	client, server stats.Handler
}

func newTraced() *traced {
	x := &traced{spans: tracetest.NewSpanRecorder()}
	x.provider = trace.NewTracerProvider(trace.WithSpanProcessor(x.spans))
	options := []otelgrpc.Option{otelgrpc.WithTracerProvider(x.provider), otelgrpc.WithPropagators(propagation.TraceContext{})}
	x.client, x.server = otelgrpc.NewClientHandler(options...), otelgrpc.NewServerHandler(options...)
	return x
}

// told describes the spans without what differs between runs: each one's kind,
// name, status, and events, and whether a span is its parent. The spans of the
// two ends of a call are of one trace.
func (x *traced) told(t *testing.T) (lines []string) {
	spans := x.spans.Ended()
	names := map[string]string{}
	for _, s := range spans {
		names[s.SpanContext().SpanID().String()] = s.SpanKind().String() + " " + s.Name()
	}
	for _, s := range spans {
		if s.Parent().IsValid() {
			require.Equal(t, s.Parent().TraceID(), s.SpanContext().TraceID())
		}
		var events []string
		for _, e := range s.Events() {
			events = append(events, e.Name)
		}
		lines = append(lines, strings.Join([]string{
			s.SpanKind().String(), s.Name(), s.Status().Code.String(), strings.Join(events, ","),
			"below", names[s.Parent().SpanID().String()],
		}, " "))
	}
	slices.Sort(lines)
	return lines
}

// TestOpenTelemetry: OpenTelemetry's stats handlers make of calls and streams
// over uapi/rpc the spans that they make of grpc-go's, and a server's span
// belongs to its client's.
func TestOpenTelemetry(t *testing.T) {
	use := func(c grpc.ClientConnInterface, x *traced, end func()) []string {
		ctx, root := x.provider.Tracer("").Start(limited(t), "root")
		stub := testgrpc.NewTestServiceClient(c)
		interop.DoEmptyUnaryCall(ctx, stub)
		interop.DoLargeUnaryCall(ctx, stub)
		interop.DoClientStreaming(ctx, stub)
		interop.DoServerStreaming(ctx, stub)
		interop.DoPingPong(ctx, stub)
		interop.DoStatusCodeAndMessage(ctx, stub)
		root.End()
		end() // the handlers have ended, and so have their spans
		return x.told(t)
	}

	x := newTraced()
	reference := grpc.NewServer(grpc.StatsHandler(x.server))
	testgrpc.RegisterTestServiceServer(reference, interop.NewTestServer())
	tcp := overTCP(t, reference, grpc.WithStatsHandler(x.client))
	want := use(tcp, x, func() {
		require.NoError(t, tcp.Close())
		reference.GracefulStop()
	})
	require.NotEmpty(t, want)

	x = newTraced()
	server := rpc.NewServer(rpc.ServerConfig{StatsHandlers: []stats.Handler{x.server}})
	testgrpc.RegisterTestServiceServer(server, interop.NewTestServer())
	ours, _ := nativeClient(t, server, softPair, rpc.ClientConfig{StatsHandlers: []stats.Handler{x.client}})
	require.Equal(t, want, use(ours, x, server.GracefulStop))
}
