//go:build linux && !udpportable

package udp

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/rnic/link"
)

// The netpoller hears of datagrams from a Wait until Quiet, and a Wait after
// that finds what came meanwhile.
func TestQuiet(t *testing.T) {
	a, b := listen(t, loopback4), listen(t, loopback4)
	q := b.(*socket).raw.(*quiet)
	in := make([]link.Packet, 4)
	for i := range 3 {
		require.False(t, q.armed, "round %d", i)
		require.NoError(t, a.Send([]link.Packet{{Peer: b.Caps().Local, Head: head(7, 0)}}))
		require.NoError(t, b.Wait())
		require.True(t, q.armed)
		n, err := b.Recv(in)
		require.NoError(t, err)
		require.Equal(t, 1, n)
		n, err = b.Recv(in)
		require.NoError(t, err)
		require.Zero(t, n)
		link.Quiet(b)
		link.Quiet(b)
	}
	require.NoError(t, b.Close())
	link.Quiet(b)
	require.ErrorIs(t, b.Wait(), net.ErrClosed)
	require.Nil(t, q.watch)
}
