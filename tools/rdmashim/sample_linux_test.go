package main

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/tests/netns"
	"github.com/rdmashim/rdmashim/tools/internal/cli/clitest"
)

// TestSampleFindsDevices: without --device, the server serves on what there is,
// and the client takes the route's.
func TestSampleFindsDevices(t *testing.T) {
	if !netns.Own(t) {
		return
	}
	s := clitest.Serve(t, "sample", "write-read", "server", "--port", "0", "--once")
	at := must.Get(netip.ParseAddrPort(s.Addr))(t)
	require.True(t, at.Addr().IsUnspecified(), s.Addr)
	o := runTool(t, "sample", "write-read", "client", netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), at.Port()).String())
	require.Zero(t, o.Code, o.Stderr)
	o = s.Wait()
	require.Zero(t, o.Code, o.Stderr)
	require.Contains(t, o.Stdout, "verified")
}

// TestServersOfOneMachine: servers on different ports are reached at the same
// addresses, in whichever order they start, and also when the first has ended.
func TestServersOfOneMachine(t *testing.T) {
	if !netns.Own(t) {
		return
	}
	ports := []string{"7001", "7002", "7003"}
	var servers []*clitest.Server
	for _, port := range ports {
		s := clitest.Serve(t, "ping", "server", "--port", port)
		require.Equal(t, "[::]:"+port, s.Addr)
		servers = append(servers, s)
	}
	ping := func(ports []string) {
		t.Helper()
		for _, port := range ports {
			for _, host := range []string{"127.0.0.1", "[::1]"} {
				runTool(t, "ping", "client", "-C", "1", host+":"+port).Well(t)
			}
		}
	}
	ping(ports)
	servers[0].Stop()
	ping(ports[1:])
	for _, s := range servers[1:] {
		s.Stop()
	}
}

// TestLoIsDown: what needs lo names it, and what sets it up.
func TestLoIsDown(t *testing.T) {
	if !netns.Own(t) {
		return
	}
	lo := must.Get(netlink.LinkByName("lo"))(t)
	require.NoError(t, netlink.LinkSetDown(lo))
	says := func(args ...string) {
		t.Helper()
		o := runTool(t, args...)
		require.Equal(t, 1, o.Code)
		require.Equal(t, 1, strings.Count(o.Stderr, "the interface lo is down, which 127.0.0.1 needs: ip link set lo up"), o.Stderr)
	}
	says("demo")
	addr := must.Get(netlink.ParseAddr("127.0.0.1/8"))(t)
	require.NoError(t, netlink.AddrDel(lo, addr)) // as in a fresh namespace
	says("demo")
	says("ping", "client", "127.0.0.1")
	says("sample", "write-read", "client", "127.0.0.1")
	says("echo", "client", "127.0.0.1")
	says("echo", "client", "--over", "tcp", "127.0.0.1")
	says("echo", "server", "--listen", ":0")
}
