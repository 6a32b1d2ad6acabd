package uapi

import (
	"errors"
	"net"
	"net/netip"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
)

// A route that carries less than both sides offer is told when connecting: no
// packet would arrive.
func TestRouteTooNarrow(t *testing.T) {
	open := func(config OpenConfig) (*Device, QP) {
		d := must.Get(Open("sim?net=narrow", config))(t)
		t.Cleanup(func() { d.Close() })
		return d, must.Get(d.CreateQP(4, 4))(t)
	}
	a, qp := open(OpenConfig{})
	b, peer := open(OpenConfig{})
	remote := must.Get(b.LocalEndpoint(peer))(t)
	require.Equal(t, 4096, remote.MTU)

	var asked netip.Addr
	most, failure := 0, error(nil)
	a.where.Route = func(to netip.Addr) (int, error) {
		asked = to
		return most, failure
	}
	require.ErrorIs(t, a.ConnectQP(qp, remote), syscall.EMSGSIZE)
	require.Equal(t, remote.Addr.Addr(), asked)
	most = 1024
	err := a.ConnectQP(qp, remote)
	require.ErrorIs(t, err, syscall.EMSGSIZE)
	require.ErrorContains(t, err, "mtu=1024")

	small := remote
	small.MTU = 1024
	require.NoError(t, a.ConnectQP(qp, small), "not connected by what failed, and fits now")

	failure = errors.New("no route")
	c := must.Get(a.CreateQP(4, 4))(t)
	require.NoError(t, a.ConnectQP(c, remote), "a route may come later")
}

// Each side knows its own route; ConnectOver finds the path MTU that both
// carry.
func TestConnectOverAgreesOnMTU(t *testing.T) {
	for _, routes := range [][2]int{{4096, 4096}, {1024, 4096}, {4096, 512}, {1024, 2048}} {
		var ends [2]*Device
		var qps [2]QP
		for i, most := range routes {
			d := testDevice(t, "sim?net=agree")
			d.where.Route = func(netip.Addr) (int, error) { return most, nil }
			qps[i] = must.Get(d.CreateQP(4, 4))(t)
			ends[i] = d
		}
		x, y := net.Pipe()
		failed := make(chan error, 1)
		go func() {
			_, err := ends[1].ConnectOver(t.Context(), y, qps[1], nil, nil)
			failed <- err
		}()
		must.Get(ends[0].ConnectOver(t.Context(), x, qps[0], nil, nil))(t)
		require.NoError(t, <-failed)
		for i, d := range ends {
			info := must.Get(d.QueryQP(qps[i]))(t)
			require.Equal(t, min(routes[0], routes[1]), info.MTU)
		}
		x.Close()
		y.Close()
	}
}

func TestConnectOverWithoutAWay(t *testing.T) {
	a := testDevice(t, "sim?net=noway")
	a.where.Route = func(netip.Addr) (int, error) { return 0, nil }
	qp := must.Get(a.CreateQP(4, 4))(t)
	peer := must.Get(a.LocalEndpoint(qp))(t)
	x, y := net.Pipe()
	defer x.Close()
	go func() {
		Exchange(t.Context(), y, Introduction{Endpoint: peer})
		y.Close()
	}()
	_, err := a.ConnectOver(t.Context(), x, qp, nil, nil)
	require.ErrorIs(t, err, syscall.EMSGSIZE)
}
