package rpc

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/uapi"
)

// overRDMA is ours over a session of the soft device.
func overRDMA(t *testing.T, options string, server ServerConfig, client ClientConfig) *ClientConn {
	device, err := uapi.Open("soft" + options)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, device.Close()) })
	info, err := device.QueryDevice()
	require.NoError(t, err)
	l, err := device.Listen(info.Address.Addr().String() + ":0")
	require.NoError(t, err)
	s := NewServer(server)
	registerAll(s)
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	client.Context = device
	c, err := Dial(limited(t), l.Addr().String(), client)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, c.Close())
		s.GracefulStop()
		require.NoError(t, <-served)
		require.NoError(t, l.Close())
		require.Empty(t, device.OpenHandles())
	})
	return c
}

// TestLikenessOverRDMA: a program sees the same behaviour of a session over
// RDMA as of grpc-go, with and without faults on the wire.
func TestLikenessOverRDMA(t *testing.T) {
	reference := theirs(t, nil)
	for _, options := range []string{"", "?loss=2%&reorder=5%&dup=1%&seed=3"} {
		subject := overRDMA(t, options, ServerConfig{}, ClientConfig{})
		for _, b := range behaviours {
			t.Run(b.name+options, func(t *testing.T) {
				require.Equal(t, b.see(limited(t), reference), b.see(limited(t), subject))
			})
		}
	}
}
