//go:build !udpportable

package udp

import (
	"net"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/rnic/wire"
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

// A window of packets finds room in the receive buffer, merged or not, however
// late the receiver is.
func TestWindow(t *testing.T) {
	for _, o := range []Options{{}, {NoGRO: true}, {NoGSO: true}} {
		for _, size := range []int{1024, 1408, 4096} {
			o.Buffer = 212992 // what Linux lets anybody have
			from, err := Listen(loopback4, o)
			require.NoError(t, err)
			defer from.Close()
			to, err := Listen(loopback4, o)
			require.NoError(t, err)
			defer to.Close()
			batch := make([]link.Packet, to.Caps().Window/(size+256)) // engine.packetCost
			for i := range batch {
				batch[i] = link.Packet{Peer: to.Caps().Local, Head: head(wire.PSN(i), size), Payload: fill(size, 1)}
			}
			for some := range slices.Chunk(batch, batchSize) {
				require.NoError(t, from.Send(some))
			}
			into := make([]link.Packet, len(batch))
			for got := 0; got < len(batch); {
				require.Zero(t, counter(t, to, "drop_rcvbuf"), "%+v, %d bytes", o, size)
				n, err := to.Recv(into)
				require.NoError(t, err)
				got += n
			}
		}
	}
}
