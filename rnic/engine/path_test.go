package engine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

const pathLimit = 16 * (1024 + packetCost)

// newPaths makes connected pairs whose a sides share a path of 16 packets.
func newPaths(t *testing.T, pairs int) (*Paths, []*network) {
	p := NewPaths(pathLimit)
	var n []*network
	for range pairs {
		n = append(n, newPair(t, cfg{edit: func(side int, c *Config) {
			if side == 0 {
				c.Paths = p
			}
		}}))
	}
	return p, n
}

// requireCharged compares the path with its queue pairs.
func requireCharged(t *testing.T, p *Paths, ns []*network) {
	inFlight, active := 0, 0
	for _, n := range ns {
		if f := n.a.qp.Gauges().InFlight; f > 0 {
			inFlight, active = inFlight+f, active+1
		}
	}
	x := p.of[ns[0].a.qp.peer]
	require.Equal(t, []int{len(ns), inFlight, active}, []int{x.users, x.inFlight, x.active})
}

// A queue pair alone has the whole path; newcomers get a share at once; none is
// held back for good; and nothing is left of those that are gone.
func TestPathIsShared(t *testing.T) {
	p, ns := newPaths(t, 4)
	require.Equal(t, 1, p.Len())
	requireCharged(t, p, ns)
	for i, n := range ns {
		n.post(n.a, n.write(1, 50*1024))
		n.pump(n.a)
		requireCharged(t, p, ns)
		require.Len(t, n.a.sent, 16/(i+1))
	}
	n := ns[0]
	n.now += latency
	for n.deliver() {
	}
	n.pump(n.b)
	n.now += latency
	for n.deliver() {
	}
	n.pump(n.a)
	requireCharged(t, p, ns)
	require.Equal(t, pathLimit/4, n.a.qp.Gauges().Window)
	require.Equal(t, pathLimit, n.a.qp.Gauges().PathWindow)
	require.Equal(t, Duration(2*latency), n.a.qp.Gauges().BaseRTT)
	require.Equal(t, 4*(1024+packetCost), n.a.qp.Gauges().InFlight, "no more than its share, while the path is full")
	for _, n := range ns {
		n.run(0)
		requireSuccess(t, n.a.wcs, 1)
		require.Zero(t, n.a.qp.Counters().Timeouts)
	}
	requireCharged(t, p, ns)

	n.filter = func(*host, *wire.Packet) (int, Time) { return 0, 0 }
	n.post(n.a, n.write(2, 1024))
	n.pump(n.a)
	requireCharged(t, p, ns)
	require.NoError(t, n.a.qp.Modify(n.now, abi.QPSErr, &Attr{}, 0))
	requireCharged(t, p, ns)
	for i, n := range ns {
		require.NoError(t, n.a.qp.Modify(n.now, abi.QPSReset, &Attr{}, 0))
		require.Equal(t, min(1, 3-i), p.Len())
	}
}

// When the share falls below the cost in flight, of which no packet asks for an
// ACK, one packet more leaves that does.
func TestPathAsksBeforeItWaits(t *testing.T) {
	p, ns := newPaths(t, 2)
	n, x := ns[0], p.of[ns[0].a.qp.peer]
	q := n.a.qp
	n.post(n.a, n.write(1, 40*1024))
	n.batch = NewBatch(3)
	n.batch.Reset()
	q.Transmit(n.now, n.batch)
	for _, l := range n.batch.Packets {
		n.send(n.a, l)
	}
	require.Len(t, n.a.sent, 3)
	require.False(t, n.a.sent[2].AckReq)
	x.active, x.inFlight = x.active+15, x.inFlight+pathLimit
	n.pump(n.a)
	require.Len(t, n.a.sent, 4)
	require.True(t, n.a.sent[3].AckReq)
	x.active, x.inFlight = x.active-15, x.inFlight-pathLimit
	n.run(0)
	requireSuccess(t, n.a.wcs, 1)
	require.Zero(t, q.Counters().RetransmittedPkts)
}

// On a long path a window leaves in runs of about a millisecond, at a quarter
// more than the pace of a window in a round trip, and all of it leaves.
func TestPathIsPaced(t *testing.T) {
	n := newPair(t, cfg{edit: func(side int, c *Config) {
		if side == 0 {
			c.Paths = NewPaths(0)
		}
	}})
	const rtt = 20 * Time(Millisecond)
	n.filter = func(*host, *wire.Packet) (int, Time) { return 1, rtt/2 - latency }
	n.post(n.a, n.write(1, 64*1024)) // measures the round trip
	n.run(0)
	x := n.a.qp.path
	require.InDelta(t, int64(rtt), int64(x.srtt), 1e6)
	x.spend(n.now, 100<<20) // repeats, say
	_, held := x.holds(n.now)
	require.True(t, held)
	n.now += rtt + Time(Millisecond)
	_, held = x.holds(n.now)
	require.False(t, held, "a path is held for a round trip at most")
	x.steady, x.size, n.a.qp.req.win.size = true, 500*(1024+packetCost), 1<<20
	n.a.sent = nil
	n.post(n.a, n.write(2, 500*1024))
	start := n.now
	for n.now < start+rtt {
		before := len(n.a.sent)
		n.pump(n.a)
		run := len(n.a.sent) - before
		require.LessOrEqual(t, run, 1+500*5/4/20)
		if len(n.a.sent) == 500 {
			break
		}
		at, ok := n.a.qp.NextTimeout()
		require.True(t, ok)
		n.now = at
		n.a.qp.HandleTimeout(n.now)
	}
	require.InDelta(t, int64(rtt*4/5), int64(n.now-start), 1e6)
	n.run(0)
	requireSuccess(t, n.a.wcs, 1, 2)
	require.Zero(t, n.a.qp.Counters().RetransmittedPkts)
}
