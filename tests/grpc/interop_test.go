package grpctest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/interop"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"
)

// cases are those of gRPC's interoperability suite that need no cloud's
// credentials and no load balancer. They end the process when they fail, and
// say why. TestCancelAfterBegin has one more.
var cases = []struct {
	name string
	do   func(ctx context.Context, c testgrpc.TestServiceClient, options ...grpc.CallOption)
}{
	{"empty_unary", interop.DoEmptyUnaryCall},
	{"large_unary", interop.DoLargeUnaryCall},
	{"client_streaming", interop.DoClientStreaming},
	{"server_streaming", interop.DoServerStreaming},
	{"ping_pong", interop.DoPingPong},
	{"empty_stream", interop.DoEmptyStream},
	{"timeout_on_sleeping_server", interop.DoTimeoutOnSleepingServer},
	{"cancel_after_first_response", interop.DoCancelAfterFirstResponse},
	{"custom_metadata", interop.DoCustomMetadata},
	{"status_code_and_message", interop.DoStatusCodeAndMessage},
	{"special_status_message", interop.DoSpecialStatusMessage},
}

// suite runs all cases on one connection. interop.DoUnimplementedMethod wants
// grpc-go's, and is written anew.
func suite(t *testing.T, c grpc.ClientConnInterface) {
	ctx := limited(t)
	service := testgrpc.NewTestServiceClient(c)
	for _, one := range cases {
		t.Log(one.name) // which of them ended the process
		one.do(ctx, service)
	}
	t.Log("unimplemented_method")
	err := c.Invoke(ctx, "/grpc.testing.TestService/UnimplementedCall", &testgrpc.Empty{}, &testgrpc.Empty{})
	require.Equal(t, codes.Unimplemented, status.Code(err), err)
	t.Log("unimplemented_service")
	interop.DoUnimplementedService(ctx, testgrpc.NewUnimplementedServiceClient(c))
}

func TestInterop(t *testing.T) {
	h := newHost(t, softPair)
	h.serve(t)
	suite(t, h.dial(t))
}

func TestInteropOverTLS(t *testing.T) {
	server, client := encryption(t)
	h := newHost(t, softPair)
	h.serve(t, server)
	suite(t, h.dial(t, client))
}

// TestCancelAfterBegin: the case wants no response to reach the caller that has
// cancelled and then waits. On a network with a delay none can be there yet.
func TestCancelAfterBegin(t *testing.T) {
	virtual(t, func(t *testing.T) {
		h := newHost(t, slowPair)
		h.serve(t)
		interop.DoCancelAfterBegin(limited(t), testgrpc.NewTestServiceClient(h.dial(t)))
	})
}

// TestInteropWithFaults: the client's device has to send again.
func TestInteropWithFaults(t *testing.T) {
	virtual(t, func(t *testing.T) {
		h := newHost(t, faultyPair)
		h.serve(t)
		c := h.dial(t)
		for range 5 {
			suite(t, c)
		}
		counters, err := h.Device.Counters()
		require.NoError(t, err)
		require.NotZero(t, counters["retransmitted_pkts"])
	})
}
