//go:build guest && linux

package guesttest

import (
	"context"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"

	"github.com/rdmashim/rdmashim/kshim/rdmacm"
	"github.com/rdmashim/rdmashim/tests/amount"
	"github.com/rdmashim/rdmashim/tests/must"
)

// TestNoWay: no route, no RDMA device on the way, a host that is not there.
func TestNoWay(t *testing.T) {
	a := newSide(t)
	ctx := limited(t)
	_, err := a.ch.Resolve(ctx, netip.AddrPort{}, netip.MustParseAddrPort("192.0.2.1:1"), rdmacm.Options{})
	require.ErrorIs(t, err, syscall.ENETUNREACH)
	_, err = a.ch.Resolve(ctx, netip.AddrPort{}, netip.MustParseAddrPort("10.77.0.99:1"), rdmacm.Options{Timeout: 100 * time.Millisecond})
	require.ErrorIs(t, err, syscall.ETIMEDOUT)
	require.ErrorContains(t, err, "ADDR_ERROR")
	_, err = a.ch.Resolve(ctx, netip.MustParseAddrPort("10.99.0.1:0"), netip.MustParseAddrPort("10.77.0.99:1"), rdmacm.Options{})
	t.Log(err)
	require.Error(t, err)
	_, err = a.ch.Resolve(ctx, netip.AddrPort{}, netip.AddrPort{}, rdmacm.Options{})
	require.ErrorIs(t, err, syscall.EAFNOSUPPORT)
	_, err = a.ch.Listen(netip.MustParseAddrPort("10.99.0.1:1"), 0, rdmacm.Options{})
	t.Log(err)
	require.Error(t, err)
	l := must.Get(a.ch.Listen(netip.MustParseAddrPort("[::]:0"), 0, rdmacm.Options{}))(t)
	_, err = a.ch.Listen(netip.AddrPortFrom(self, l.Addr().Port()), 0, rdmacm.Options{})
	require.ErrorIs(t, err, syscall.EADDRNOTAVAIL, "the wildcard has it")
	one := must.Get(a.ch.Listen(netip.AddrPortFrom(self, 0), 0, rdmacm.Options{}))(t)
	must.Fail(a.ch.Listen(one.Addr(), 0, rdmacm.Options{}))(t, syscall.EADDRINUSE)
	require.NoError(t, one.Close())
	require.NoError(t, l.Close())
	require.NoError(t, l.Close())
	must.Fail(l.Accept(ctx))(t, net.ErrClosed)
}

// silent is a neighbour that has an address and never answers.
func silent(t testing.TB) netip.AddrPort {
	t.Helper()
	eth := must.Get(netlink.LinkByName("eth0"))(t)
	n := &netlink.Neigh{LinkIndex: eth.Attrs().Index, IP: net.IPv4(10, 77, 0, 66), State: netlink.NUD_PERMANENT,
		HardwareAddr: net.HardwareAddr{2, 0, 0, 0, 0, 66}}
	require.NoError(t, netlink.NeighSet(n))
	t.Cleanup(func() { _ = netlink.NeighDel(n) })
	return netip.MustParseAddrPort("10.77.0.66:7471")
}

// TestSilentHost: the caller's deadline holds, and without one the kernel gives
// up by itself.
func TestSilentHost(t *testing.T) {
	a := newSide(t)
	to := silent(t)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, _, err := a.dial(ctx, to)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "10.77.0.66:7471")
	require.Empty(t, cmIDs(t))

	if !amount.All() {
		return // the kernel gives up after minutes
	}
	start := time.Now()
	_, _, err = a.dial(t.Context(), to)
	require.ErrorIs(t, err, syscall.ETIMEDOUT)
	require.ErrorContains(t, err, "UNREACHABLE")
	t.Logf("unreachable after %v", time.Since(start))
}
