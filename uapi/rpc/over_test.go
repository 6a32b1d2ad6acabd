package rpc

import (
	"context"
	"net"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/msgring"
	"github.com/rdmashim/rdmashim/uapi/rpc/session"
)

// TestOverChannel: two programs that share TCP and no connection manager call
// each other; a channel that breaks is one more connection, not another
// session; a service that is not there is refused with its reason; GracefulStop
// ends ServeOver and its listener.
func TestOverChannel(t *testing.T) {
	open := func() *uapi.Device {
		device, err := uapi.Open("soft", uapi.OpenConfig{})
		require.NoError(t, err)
		t.Cleanup(func() {
			require.Empty(t, device.OpenHandles())
			require.NoError(t, device.Close())
		})
		return device
	}
	here, there := open(), open()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := NewServer(ServerConfig{Session: session.ServerConfig{Service: "greeter/1"}})
	registerAll(s)
	served := make(chan error, 1)
	go func() { served <- s.ServeOver(there, l) }()

	var last atomic.Pointer[net.Conn]
	config := session.ClientConfig{Service: "greeter/1", Connect: func(ctx context.Context, config msgring.Config) (*msgring.Conn, error) {
		channel, err := new(net.Dialer).DialContext(ctx, "tcp", l.Addr().String())
		if err != nil {
			return nil, err
		}
		last.Store(&channel)
		return msgring.DialOver(ctx, here, channel, config)
	}}
	c, err := Dial(limited(t), l.Addr().String(), ClientConfig{Session: config})
	require.NoError(t, err)
	client := testgrpc.NewTestServiceClient(c)
	var closed *net.Conn
	for range 3 {
		// A call may be quicker than the news of the channel's end.
		for last.Load() == closed {
			_, err = client.EmptyCall(limited(t), &testgrpc.Empty{}, grpc.WaitForReady(true))
			require.NoError(t, err)
		}
		closed = last.Load()
		require.NoError(t, (*closed).Close())
	}
	_, err = client.EmptyCall(limited(t), &testgrpc.Empty{}, grpc.WaitForReady(true))
	require.NoError(t, err)
	require.Equal(t, 1, s.Sessions().Stats().Sessions)
	require.Positive(t, s.Sessions().Stats().Resumed)

	config.Service = "greeter/2"
	wrong, err := Dial(limited(t), l.Addr().String(), ClientConfig{Session: config})
	require.NoError(t, err)
	_, err = testgrpc.NewTestServiceClient(wrong).EmptyCall(limited(t), &testgrpc.Empty{})
	require.Equal(t, codes.Unavailable, status.Code(err))
	require.ErrorContains(t, err, "asks for service")
	require.NoError(t, wrong.Close())

	require.NoError(t, c.Close())
	s.GracefulStop()
	require.NoError(t, <-served)
	_, err = net.Dial("tcp", l.Addr().String())
	require.Error(t, err)
}
