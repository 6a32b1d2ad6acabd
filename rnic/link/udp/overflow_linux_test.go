//go:build !udpportable

package udp

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Drops of a full receive buffer are counted, also when the link has closed.
func TestOverflow(t *testing.T) {
	l, err := Listen(loopback4, Options{Buffer: 4096})
	require.NoError(t, err)
	defer l.Close()
	require.Zero(t, counter(t, l, "drop_rcvbuf"))
	c, err := net.Dial("udp", l.Caps().Local.String())
	require.NoError(t, err)
	defer c.Close()
	b := make([]byte, 1024)
	require.Eventually(t, func() bool {
		_, err := c.Write(b)
		require.NoError(t, err)
		return counter(t, l, "drop_rcvbuf") > 0
	}, time.Minute, time.Millisecond)
	require.NoError(t, l.Close())
	require.NotZero(t, counter(t, l, "drop_rcvbuf"))
}
