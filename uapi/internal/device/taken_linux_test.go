package device

import (
	"net"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/tests/netns"
)

// TestSilentLast: only addresses of this host are known to have no listener,
// and come behind the others.
func TestSilentLast(t *testing.T) {
	if !netns.Own(t) {
		return
	}
	c := must.Get(net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.2:4791"))))(t)
	defer c.Close()
	var list, want []netip.AddrPort
	for _, a := range []string{"127.0.0.1:1", "192.0.2.1:1", "[::1]:1", "127.0.0.2:1"} {
		list = append(list, netip.MustParseAddrPort(a))
	}
	for _, i := range []int{1, 3, 0, 2} {
		want = append(want, list[i])
	}
	require.Equal(t, want, SilentLast(list))
	require.Equal(t, []netip.Addr{list[0].Addr(), list[3].Addr(), list[2].Addr()}, LoopbackListeners())
}
