package engine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/rnic/wire"
)

// transmit takes what h would send now, and lets it go on its way if arrives.
func (n *network) transmit(h *host, arrives bool) (alone []bool) {
	for more := true; more; {
		n.batch.Reset()
		more = h.qp.Transmit(n.now, n.batch)
		for _, p := range n.batch.Packets {
			alone = append(alone, p.Alone)
			if arrives {
				n.send(h, p)
			}
		}
	}
	return alone
}

// A packet that is sent again after a timeout asks to leave alone: it may have
// been lost for having been cut out of a larger send. New packets do not.
func TestAloneAfterTimeout(t *testing.T) {
	n := newPair(t, cfg{})
	wr := n.write(1, 3*1024)
	require.NoError(t, n.a.qp.Post(n.now, &wr))
	require.Equal(t, []bool{false, false, false}, n.transmit(n.a, false))
	at, ok := n.a.qp.NextTimeout()
	require.True(t, ok)
	n.now = at
	n.a.qp.HandleTimeout(n.now)
	again := n.transmit(n.a, true)
	require.NotEmpty(t, again)
	require.NotContains(t, again, false)
	n.run(0)
	requireSuccess(t, n.a.wcs, 1)

	wr = n.write(2, 2*1024)
	require.NoError(t, n.a.qp.Post(n.now, &wr))
	require.Equal(t, []bool{false, false}, n.transmit(n.a, true))
	n.run(0)

	// A gap that the peer reports is a loss like any other.
	n = newPair(t, cfg{})
	n.filter = dropOnce(n.a, func(p *wire.Packet) bool { return p.Opcode == wire.RCWriteFirst })
	wr = n.write(3, 3*1024)
	require.NoError(t, n.a.qp.Post(n.now, &wr))
	require.Equal(t, []bool{false, false, false}, n.transmit(n.a, true))
	n.now += latency
	for n.deliver() {
	}
	n.pump(n.b)
	n.now += latency
	for n.deliver() {
	}
	require.Equal(t, []bool{false, false, false}, n.transmit(n.a, true))
	n.run(0)
	requireSuccess(t, n.a.wcs, 3)
}

// The answer to a READ that is repeated, too: the responder does not learn why.
func TestAloneInRepeatedAnswers(t *testing.T) {
	n := newPair(t, cfg{})
	wr := n.read(1, 3*1024)
	require.NoError(t, n.a.qp.Post(n.now, &wr))
	n.pump(n.a)
	n.now += latency
	for n.deliver() {
	}
	require.Equal(t, []bool{false, false, false}, n.transmit(n.b, false))
	at, ok := n.a.qp.NextTimeout()
	require.True(t, ok)
	n.now = at
	n.a.qp.HandleTimeout(n.now)
	n.pump(n.a)
	n.now += latency
	for n.deliver() {
	}
	again := n.transmit(n.b, true)
	require.NotEmpty(t, again)
	require.NotContains(t, again, false)
	n.run(0)
	requireSuccess(t, n.a.wcs, 1)
}
