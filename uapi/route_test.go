package uapi

import (
	"errors"
	"net/netip"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A route that carries less than both sides offer is told when connecting: no
// packet would arrive.
func TestRouteTooNarrow(t *testing.T) {
	open := func(opts ...Option) (*Context, QP) {
		c, err := Open("sim?net=narrow", opts...)
		require.NoError(t, err)
		t.Cleanup(func() { c.Close() })
		qp, err := c.CreateQP(4, 4)
		require.NoError(t, err)
		return c, qp
	}
	a, qp := open()
	b, peer := open()
	remote, err := b.LocalEndpoint(peer)
	require.NoError(t, err)
	require.Equal(t, 4096, remote.MTU)

	var asked netip.Addr
	most, failure := 0, error(nil)
	a.station.route = func(to netip.Addr) (int, error) {
		asked = to
		return most, failure
	}
	require.ErrorIs(t, a.ConnectQP(qp, remote), syscall.EMSGSIZE)
	require.Equal(t, remote.Addr.Addr(), asked)
	most = 1024
	err = a.ConnectQP(qp, remote)
	require.ErrorIs(t, err, syscall.EMSGSIZE)
	require.ErrorContains(t, err, "mtu=1024")

	small := remote
	small.MTU = 1024
	require.NoError(t, a.ConnectQP(qp, small), "not connected by what failed, and fits now")

	failure = errors.New("no route")
	c, err := a.CreateQP(4, 4)
	require.NoError(t, err)
	require.NoError(t, a.ConnectQP(c, remote), "a route may come later")
}
