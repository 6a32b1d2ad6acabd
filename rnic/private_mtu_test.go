package rnic

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/link"
)

// longWay is a link whose routes carry less than its interface.
type longWay struct {
	link.Link
	caps  link.Caps
	route int
}

func (n longWay) Caps() link.Caps                 { return n.caps }
func (n longWay) PathMTU(netip.Addr) (int, error) { return n.route, nil }

// Packets to soft devices have the least of the route's room, the longest that
// a link takes, and a 32nd of the buffer; no private MTU where a path MTU was
// asked for.
func TestPrivateRoom(t *testing.T) {
	caps := link.Caps{MTU: 65507, Longest: 65507, RecvBuffer: 8 << 20}
	small := caps
	small.RecvBuffer = 425984
	slots := caps
	slots.Longest = 4224
	for _, c := range []struct {
		caps        link.Caps
		route, asks int
		path        abi.MTU
		want        int
	}{
		{caps, 65507, 0, abi.MTU4096, 65507},
		{caps, 1472, 0, abi.MTU1024, 1472},
		{caps, 1472, 0, abi.MTU512, 0},
		{caps, 1472, 1024, abi.MTU1024, 0},
		{small, 65507, 0, abi.MTU4096, 425984 / 32},
		{slots, 65507, 0, abi.MTU4096, 4224},
	} {
		d := &Device{link: longWay{caps: c.caps, route: c.route}, caps: c.caps, askedMTU: c.asks}
		require.Equal(t, c.want, d.privateRoom(netip.MustParseAddr("10.0.0.1"), c.path, false), "%+v", c)
	}
}
