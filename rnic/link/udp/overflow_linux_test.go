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
	"github.com/rdmashim/rdmashim/tests/must"
)

// Drops of a full receive buffer are counted, also when the link has closed.
func TestOverflow(t *testing.T) {
	l := must.Get(Listen(loopback4, Options{Buffer: 4096}))(t)
	defer l.Close()
	require.Zero(t, counter(t, l, "drop_rcvbuf"))
	c := must.Get(net.Dial("udp", l.Caps().Local.String()))(t)
	defer c.Close()
	b := make([]byte, 1024)
	require.Eventually(t, func() bool {
		must.Get(c.Write(b))(t)
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
			from := must.Get(Listen(loopback4, o))(t)
			defer from.Close()
			to := must.Get(Listen(loopback4, o))(t)
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
				n := must.Get(to.Recv(into))(t)
				got += n
			}
		}
	}
}
