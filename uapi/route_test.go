package uapi

import (
	"errors"
	"net"
	"net/netip"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A route that carries less than both sides offer is told when connecting: no
// packet would arrive.
func TestRouteTooNarrow(t *testing.T) {
	open := func(config OpenConfig) (*Context, QP) {
		c, err := OpenWith("sim?net=narrow", config)
		require.NoError(t, err)
		t.Cleanup(func() { c.Close() })
		qp, err := c.CreateQP(4, 4)
		require.NoError(t, err)
		return c, qp
	}
	a, qp := open(OpenConfig{})
	b, peer := open(OpenConfig{})
	remote, err := b.LocalEndpoint(peer)
	require.NoError(t, err)
	require.Equal(t, 4096, remote.MTU)

	var asked netip.Addr
	most, failure := 0, error(nil)
	a.device.Route = func(to netip.Addr) (int, error) {
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

// Each side knows its own route; ConnectOver finds the path MTU that both
// carry.
func TestConnectOverAgreesOnMTU(t *testing.T) {
	for _, routes := range [][2]int{{4096, 4096}, {1024, 4096}, {4096, 512}, {1024, 2048}} {
		var ends [2]*Context
		var qps [2]QP
		for i, most := range routes {
			c, err := Open("sim?net=agree")
			require.NoError(t, err)
			t.Cleanup(func() { c.Close() })
			c.device.Route = func(netip.Addr) (int, error) { return most, nil }
			qps[i], err = c.CreateQP(4, 4)
			require.NoError(t, err)
			ends[i] = c
		}
		x, y := net.Pipe()
		failed := make(chan error, 1)
		go func() {
			_, err := ends[1].ConnectOver(t.Context(), y, qps[1], nil, nil)
			failed <- err
		}()
		_, err := ends[0].ConnectOver(t.Context(), x, qps[0], nil, nil)
		require.NoError(t, err)
		require.NoError(t, <-failed)
		for i, c := range ends {
			info, err := c.QueryQP(qps[i])
			require.NoError(t, err)
			require.Equal(t, min(routes[0], routes[1]), info.MTU)
		}
		x.Close()
		y.Close()
	}
}

func TestConnectOverWithoutAWay(t *testing.T) {
	a, err := Open("sim?net=noway")
	require.NoError(t, err)
	defer a.Close()
	a.device.Route = func(netip.Addr) (int, error) { return 0, nil }
	qp, err := a.CreateQP(4, 4)
	require.NoError(t, err)
	peer, err := a.LocalEndpoint(qp)
	require.NoError(t, err)
	x, y := net.Pipe()
	defer x.Close()
	go func() {
		Exchange(t.Context(), y, Introduction{Endpoint: peer})
		y.Close()
	}()
	_, err = a.ConnectOver(t.Context(), x, qp, nil, nil)
	require.ErrorIs(t, err, syscall.EMSGSIZE)
}
