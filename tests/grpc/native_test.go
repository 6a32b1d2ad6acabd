package grpctest

import (
	"context"
	"io"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	channelzpb "google.golang.org/grpc/channelz/grpc_channelz_v1"
	channelz "google.golang.org/grpc/channelz/service"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/interop"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/reflection"
	reflectpb "google.golang.org/grpc/reflection/grpc_reflection_v1"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/rpc"
)

// native connects the interoperability suite's client to its server by uapi/rpc
// on two devices that pair opens.
func native(t *testing.T, pair func(t *testing.T) (server, client *uapi.Device)) (conn *rpc.ClientConn, client *uapi.Device) {
	t.Helper()
	s := rpc.NewServer(rpc.ServerConfig{})
	register(s, interop.NewTestServer(), health.NewServer())
	return nativeClient(t, s, pair, rpc.ClientConfig{})
}

// nativeClient connects a client to s that has that config but for its Device.
func nativeClient(t *testing.T, s *rpc.Server, pair func(t *testing.T) (server, client *uapi.Device), config rpc.ClientConfig) (conn *rpc.ClientConn, client *uapi.Device) {
	t.Helper()
	server, client := pair(t)
	l := must.Get(server.Listen(":0", uapi.ListenConfig{}))(t)
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	info, err := server.QueryDevice()
	require.NoError(t, err)
	at := netip.AddrPortFrom(info.Address.Addr(), l.Addr().Port()).String()
	config.Device = client
	conn = must.Get(rpc.Dial(limited(t), at, config))(t)
	t.Cleanup(func() {
		require.NoError(t, conn.Close())
		s.GracefulStop()
		require.NoError(t, <-served)
		require.Empty(t, server.OpenHandles())
		require.Empty(t, client.OpenHandles())
	})
	return conn, client
}

func TestNativeInterop(t *testing.T) {
	c, _ := native(t, softPair)
	suite(t, c)
}

// TestNativeCancelAfterBegin is TestCancelAfterBegin.
func TestNativeCancelAfterBegin(t *testing.T) {
	virtual(t, func(t *testing.T) {
		c, _ := native(t, slowPair)
		interop.DoCancelAfterBegin(limited(t), testgrpc.NewTestServiceClient(c))
	})
}

func TestNativeInteropWithFaults(t *testing.T) {
	virtual(t, func(t *testing.T) {
		c, client := native(t, faultyPair)
		for range 5 {
			suite(t, c)
		}
		counters := must.Get(client.Counters())(t)
		require.NotZero(t, counters["retransmitted_pkts"])
	})
}

// register has a server offer the test service, health, reflection and
// channelz.
func register(s reflection.GRPCServer, test testgrpc.TestServiceServer, healthy *health.Server) {
	testgrpc.RegisterTestServiceServer(s, test)
	grpc_health_v1.RegisterHealthServer(s, healthy)
	channelz.RegisterChannelzServiceToServer(s)
	reflection.Register(s)
}

// TestOneServiceThreeWays: a grpc.Server over TCP and over rdmanet and uapi/rpc
// serve one implementation at once, and each client sees the same.
func TestOneServiceThreeWays(t *testing.T) {
	test, healthy := interop.NewTestServer(), health.NewServer()
	there, here := grpc.NewServer(grpc.WaitForHandlers(true)), rpc.NewServer(rpc.ServerConfig{})
	register(there, test, healthy)
	register(here, test, healthy)
	ours, _ := nativeClient(t, here, softPair, rpc.ClientConfig{})

	h := newHost(t, softPair)
	serve(t, there, h)
	byTCP := overTCP(t, there)

	ctx := limited(t)
	for _, want := range []grpc_health_v1.HealthCheckResponse_ServingStatus{grpc_health_v1.HealthCheckResponse_NOT_SERVING, grpc_health_v1.HealthCheckResponse_SERVING} {
		healthy.SetServingStatus("x", want)
		for name, c := range map[string]grpc.ClientConnInterface{"TCP": byTCP, "rdmanet": h.dial(t), "uapi/rpc": ours} {
			interop.DoLargeUnaryCall(ctx, testgrpc.NewTestServiceClient(c))
			status, err := grpc_health_v1.NewHealthClient(c).Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: "x"})
			require.NoError(t, err, name)
			require.Equal(t, want, status.Status, name)
			require.Equal(t, []string{
				"grpc.channelz.v1.Channelz", "grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection",
				"grpc.reflection.v1alpha.ServerReflection", "grpc.testing.TestService",
			}, listed(ctx, t, c), name)
			_, err = channelzpb.NewChannelzClient(c).GetServers(ctx, &channelzpb.GetServersRequest{})
			require.NoError(t, err, name)
		}
	}
}

// listed are the services that a server names by reflection.
func listed(ctx context.Context, t *testing.T, c grpc.ClientConnInterface) (names []string) {
	t.Helper()
	s := must.Get(reflectpb.NewServerReflectionClient(c).ServerReflectionInfo(ctx))(t)
	require.NoError(t, s.Send(&reflectpb.ServerReflectionRequest{MessageRequest: &reflectpb.ServerReflectionRequest_ListServices{}}))
	r := must.Get(s.Recv())(t)
	for _, service := range r.GetListServicesResponse().GetService() {
		names = append(names, service.Name)
	}
	require.NoError(t, s.CloseSend())
	_, err := s.Recv()
	require.Equal(t, io.EOF, err)
	return names
}
