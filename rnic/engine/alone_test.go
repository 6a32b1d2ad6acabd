package engine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/rnic/wire"
)

// transmit takes the packets that h sends now, and delivers them if arrives.
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

// lapse runs h's requester into its timeout.
func (n *network) lapse(t *testing.T, h *host) {
	at, ok := h.qp.NextTimeout()
	require.True(t, ok)
	n.now = at
	h.qp.HandleTimeout(n.now)
}

// A packet that is sent again after a second timeout in a row asks to leave
// alone: it may have been lost for having been cut out of a larger send. New
// packets do not, nor the packets that a single timeout repeats.
func TestAloneAfterTimeouts(t *testing.T) {
	n := newPair(t, cfg{})
	wr := n.write(1, 3*1024)
	require.NoError(t, n.a.qp.Post(n.now, &wr))
	require.Equal(t, []bool{false, false, false}, n.transmit(n.a, false))
	n.lapse(t, n.a)
	first := n.transmit(n.a, false)
	require.NotEmpty(t, first)
	require.NotContains(t, first, true)
	n.lapse(t, n.a)
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
	n.arrive()
	n.pump(n.b)
	n.arrive()
	require.Equal(t, []bool{false, false, false}, n.transmit(n.a, true))
	n.run(0)
	requireSuccess(t, n.a.wcs, 3)
}

// The answer to a READ, too, when the requester has asked three times.
func TestAloneInRepeatedAnswers(t *testing.T) {
	n := newPair(t, cfg{})
	wr := n.read(1, 3*1024)
	require.NoError(t, n.a.qp.Post(n.now, &wr))
	for range 3 {
		n.ask()
		require.Equal(t, []bool{false, false, false}, n.transmit(n.b, false))
		n.lapse(t, n.a)
	}
	n.ask()
	again := n.transmit(n.b, true)
	require.NotEmpty(t, again)
	require.NotContains(t, again, false)
	n.run(0)
	requireSuccess(t, n.a.wcs, 1)
}

// One lost response is no reason for the rest to leave alone.
func TestRepeatedAnswerInCompany(t *testing.T) {
	n := newPair(t, cfg{})
	n.filter = dropOnce(n.b, func(p *wire.Packet) bool { return p.Opcode == wire.RCReadResponseMiddle })
	wr := n.read(1, 6*1024)
	require.NoError(t, n.a.qp.Post(n.now, &wr))
	n.ask()
	require.Len(t, n.transmit(n.b, true), 6)
	n.arrive()
	n.ask()
	require.Equal(t, []bool{false, false, false, false, false}, n.transmit(n.b, true))
	n.run(0)
	requireSuccess(t, n.a.wcs, 1)
}

// ask brings what a sends now to b.
func (n *network) ask() {
	n.pump(n.a)
	n.arrive()
}
