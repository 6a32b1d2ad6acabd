package uapi

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"

	"github.com/rdmashim/rdmashim/tests/netns"
)

// TestDialLocalhost: the address of a name at which there is no device costs no
// time; where both IP versions have a device, the listening one is found
// although the default context begins at the other.
func TestDialLocalhost(t *testing.T) {
	if !netns.Own(t) {
		return
	}
	named(t, "localhost", "::1", "127.0.0.1")
	server, err := Open("soft:[::1]")
	if errors.Is(err, syscall.EADDRNOTAVAIL) && os.Getenv("CI") != "true" {
		t.Skip("this machine has no ::1; enable IPv6: sysctl net.ipv6.conf.all.disable_ipv6=0: ", err)
	}
	require.NoError(t, err)
	defer server.Close()
	l, err := Listen("localhost:7000")
	require.NoError(t, err)
	require.Equal(t, "[::1]:7000", l.Addr().String())
	accepting(t, l)
	dial := func() {
		start := time.Now()
		qp, err := Dial(t.Context(), "localhost:7000", DialConfig{})
		require.NoError(t, err)
		c, err := Default()
		require.NoError(t, err)
		info, err := c.QueryConn(qp)
		require.NoError(t, err)
		require.Equal(t, "[::1]:7000", info.RemoteAddr.String())
		require.Less(t, time.Since(start), DefaultConnectTimeout/2, "no share was waited for")
		require.NoError(t, DestroyQP(qp))
		require.NoError(t, Close())
	}
	dial()
	other, err := Open("soft:127.0.0.1")
	require.NoError(t, err)
	defer other.Close()
	dial()
}

// TestSilentLast: only addresses of this host are known to have no device.
func TestSilentLast(t *testing.T) {
	if !netns.Own(t) {
		return
	}
	c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.2:4791")))
	require.NoError(t, err)
	defer c.Close()
	var list, want []netip.AddrPort
	for _, a := range []string{"127.0.0.1:1", "192.0.2.1:1", "[::1]:1", "127.0.0.2:1"} {
		list = append(list, netip.MustParseAddrPort(a))
	}
	for _, i := range []int{1, 3, 0, 2} {
		want = append(want, list[i])
	}
	require.Equal(t, want, silentLast(list))
	require.Equal(t, []netip.Addr{list[0].Addr(), list[3].Addr(), list[2].Addr()}, loopbackListeners())
}

// TestDialSaysLoIsDown, also on a device that was open before.
func TestDialSaysLoIsDown(t *testing.T) {
	if !netns.Own(t) {
		return
	}
	c, err := Open("soft:127.0.0.1")
	require.NoError(t, err)
	defer c.Close()
	lo, err := netlink.LinkByName("lo")
	require.NoError(t, err)
	require.NoError(t, netlink.LinkSetDown(lo)) // with its address, to which there is a way
	for name, dial := range map[string]func(context.Context, string, DialConfig) (QP, error){"Dial": Dial, "Context.Dial": c.Dial} {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		_, err := dial(ctx, "127.0.0.1:7000", DialConfig{})
		cancel()
		require.Error(t, err, name)
		require.Equal(t, 1, strings.Count(err.Error(), "the interface lo is down"), "%v", err)
		require.ErrorContains(t, err, "ip link set lo up")
	}
}
