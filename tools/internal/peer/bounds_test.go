package peer

import (
	"net"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSeats: an address has its share; that of IPv6 is its network's.
func TestSeats(t *testing.T) {
	at := func(text string) netip.AddrPort { return netip.MustParseAddrPort(text) }
	s := Seats{Most: 5}
	require.NoError(t, s.Check())
	for range 3 {
		require.NoError(t, s.Take(at("192.0.2.1:7")))
	}
	require.ErrorContains(t, s.Take(at("192.0.2.1:8")), "--max-per-address")
	require.ErrorIs(t, s.Left(at("[::ffff:192.0.2.1]:8")), ErrNoSeat)
	require.NoError(t, s.Take(at("192.0.2.2:7")))
	require.NoError(t, s.Take(&net.UnixAddr{Name: "@", Net: "unix"}))
	require.ErrorContains(t, s.Take(at("192.0.2.2:7")), "--max-clients")
	s.Give(at("192.0.2.1:9"))
	require.NoError(t, s.Take(at("192.0.2.1:8")))

	s = Seats{Most: 9, Share: 1}
	require.NoError(t, s.Check())
	require.NoError(t, s.Take(at("[2001:db8::1]:7")))
	require.ErrorIs(t, s.Take(at("[2001:db8::2]:7")), ErrNoSeat)
	require.NoError(t, s.Take(at("[2001:db8:0:1::1]:7")))
	require.NoError(t, s.Take(at("[fe80::1%lo]:7")))
	require.NoError(t, s.Take(at("[fe80::2%lo]:7")))
	for range 3 {
		require.NoError(t, s.Take(&net.UnixAddr{Name: "@", Net: "unix"}))
	}
	require.Len(t, s.taken, 5)
	for range 3 {
		s.Give(&net.UnixAddr{Name: "@", Net: "unix"})
	}
	require.Len(t, s.taken, 4, "who has gone is forgotten")
	require.Error(t, (&Seats{Most: 1, Share: -1}).Check())
}
