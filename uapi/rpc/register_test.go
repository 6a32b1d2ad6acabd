package rpc

import (
	"cmp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	channelz "google.golang.org/grpc/channelz/service"
	"google.golang.org/grpc/health/grpc_health_v1"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
)

// described is a server's description of its services, in one order.
func described(s interface {
	GetServiceInfo() map[string]grpc.ServiceInfo
}) map[string]grpc.ServiceInfo {
	infos := s.GetServiceInfo()
	for _, info := range infos {
		slices.SortFunc(info.Methods, func(a, b grpc.MethodInfo) int { return cmp.Compare(a.Name, b.Name) })
	}
	return infos
}

// TestServiceInfo: services that register with a grpc.Server register here, and
// are described alike.
func TestServiceInfo(t *testing.T) {
	theirs, ours := grpc.NewServer(), NewServer(ServerConfig{})
	defer theirs.Stop()
	registerAll(theirs)
	registerAll(ours)
	channelz.RegisterChannelzServiceToServer(theirs)
	channelz.RegisterChannelzServiceToServer(ours)
	require.Equal(t, described(theirs), described(ours))
	require.Len(t, described(ours), 5)
}

// TestRegistrationMistakes end the program, as in grpc-go, with a text.
func TestRegistrationMistakes(t *testing.T) {
	s := NewServer(ServerConfig{})
	testgrpc.RegisterTestServiceServer(s, echo{})
	require.PanicsWithError(t, "rpc: register grpc.testing.TestService: it is registered already", func() {
		testgrpc.RegisterTestServiceServer(s, echo{})
	})
	require.PanicsWithError(t, "rpc: register grpc.health.v1.Health: rpc.echo does not implement grpc_health_v1.HealthServer", func() {
		s.RegisterService(&grpc_health_v1.Health_ServiceDesc, echo{})
	})
	for method, want := range map[string]string{
		"/grpc.testing.TestService/None": "unknown method None of service grpc.testing.TestService",
		"/none.Service/Call":             "unknown service none.Service",
		"none":                           "unknown service none",
		"/":                              "unknown service ",
		"":                               "unknown service ",
	} {
		require.Equal(t, want, s.services.unknown(method), method)
	}
}
