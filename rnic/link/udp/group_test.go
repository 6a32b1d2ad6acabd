package udp

import (
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tests/must"
)

// A packet to a group reaches the links that have joined it, the sender's among
// them, whole and once, and no link that has left it.
func TestGroups(t *testing.T) {
	group := netip.MustParseAddr("239.77.4.92")
	a := listen(t, loopback4)
	port := a.Caps().Local.Port()
	links := []link.Link{a, listen(t, netip.AddrPortFrom(netip.MustParseAddr("127.0.0.2"), port))}
	for range 2 {
		for _, l := range links {
			require.NoError(t, l.Join(group))
		}
	}
	payloads := [][]byte{fill(0, 1), fill(1, 2), fill(1000, 3), fill(1000, 4)}
	var batch []link.Packet
	for i, p := range payloads {
		batch = append(batch, link.Packet{Peer: netip.AddrPortFrom(group, port), Head: head(wire.PSN(i), len(p)), Payload: p})
	}
	require.NoError(t, a.Send(batch))
	for _, l := range links {
		for i, payload := range payloads {
			got := recvN(t, l, 1)[0]
			require.Equal(t, group, got.Group)
			require.Equal(t, a.Caps().Local, got.Peer)
			var p wire.Packet
			require.NoError(t, p.Parse(got.Head))
			require.EqualValues(t, i, p.PSN)
			require.Equal(t, string(payload), string(p.Payload))
		}
	}
	b := links[1]
	b.Leave(group)
	require.NoError(t, a.Send(batch[:1]))
	require.Equal(t, group, recvN(t, a, 1)[0].Group)
	require.NoError(t, a.Send([]link.Packet{{Peer: b.Caps().Local, Head: head(77, 0)}}))
	require.False(t, recvN(t, b, 1)[0].Group.IsValid(), "it has left")
	require.NoError(t, b.Join(group), "again")
}

// TestGroupOverflow: packets of groups for which the queue has no room count
// beside those that the kernel dropped.
func TestGroupOverflow(t *testing.T) {
	s := listenWith(t, loopback4, Options{})
	for range groupQueue + 3 {
		s.groups.put(link.Packet{})
	}
	for range 2 {
		require.EqualValues(t, 3, counter(t, s, "drop_rcvbuf"))
	}
}

// Rubbish that is sent to a group is counted, and groups that are none are
// refused.
func TestGroupErrors(t *testing.T) {
	a := listen(t, loopback4)
	for _, bad := range []string{"10.0.0.1", "ff0e::1", "::"} {
		require.ErrorIs(t, a.Join(netip.MustParseAddr(bad)), syscall.EINVAL)
	}
	group := netip.MustParseAddr("239.77.4.93")
	require.NoError(t, a.Join(group))
	conn, err := net.DialUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}, net.UDPAddrFromAddrPort(netip.AddrPortFrom(group, a.Caps().Local.Port())))
	require.NoError(t, err)
	defer conn.Close()
	for _, n := range []int{1, 100, slotSize + 1} {
		must.Get(conn.Write(make([]byte, n)))(t)
	}
	require.Eventually(t, func() bool { return counter(t, a, "drop_malformed") == 2 && counter(t, a, "drop_icrc") == 1 }, 30*time.Second, time.Millisecond)
	require.NoError(t, a.Close())
	require.ErrorIs(t, a.Join(group), net.ErrClosed)
}
