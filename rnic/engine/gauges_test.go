package engine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

// In flight are the bytes that were sent and not acknowledged. They stay in the
// window while packets are lost, and none are left when all is done or the
// queue pair is in ERR.
func TestGauges(t *testing.T) {
	n := newPair(t, cfg{mtu: abi.MTU1024})
	require.Zero(t, n.a.qp.Gauges().RTT)
	n.post(n.a, n.write(1, 10_000))
	n.pump(n.a)
	g := n.a.qp.Gauges()
	require.Equal(t, 10_000+10*packetCost, g.InFlight)
	require.GreaterOrEqual(t, g.Window, g.InFlight)
	require.Positive(t, g.RTO)
	n.run(n.now + 1_000_000)
	g = n.a.qp.Gauges()
	require.Zero(t, g.InFlight)
	require.Positive(t, g.RTT)

	n.post(n.a, n.write(2, 10_000))
	n.pump(n.a)
	require.NoError(t, n.a.qp.Modify(n.now, abi.QPSErr, &Attr{}, abi.QPMaskState))
	require.Equal(t, Gauges{}, n.a.qp.Gauges())
	require.Equal(t, Gauges{}, NewDatagrams(DatagramConfig{}).Gauges())
}
