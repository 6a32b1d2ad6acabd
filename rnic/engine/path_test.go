package engine

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/engine/path"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

const pathLimit = 16 * (1024 + packetCost)

// newPaths makes connected pairs whose a sides share a path of 16 packets.
func newPaths(t *testing.T, pairs int) (*path.Set, []*network) {
	p := path.NewSet(pathLimit, nil)
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

// onPath reads a number of the queue pair's path.
func onPath(q *QP, name string) int {
	return int(reflect.ValueOf(&q.flow).Elem().FieldByName("path").Elem().FieldByName(name).Int())
}

// requireCharged compares the path with its queue pairs.
func requireCharged(t *testing.T, ns []*network) {
	inFlight, active := 0, 0
	for _, n := range ns {
		if f := n.a.qp.Gauges().InFlight; f > 0 {
			inFlight, active = inFlight+f, active+1
		}
	}
	q := ns[0].a.qp
	require.Equal(t, []int{len(ns), inFlight, active}, []int{onPath(q, "users"), onPath(q, "inFlight"), onPath(q, "active")})
}

// A queue pair alone has the whole path; newcomers get a share at once; none is
// held back for good; and nothing is left of those that are gone.
func TestPathIsShared(t *testing.T) {
	p, ns := newPaths(t, 4)
	require.Equal(t, 1, p.Len())
	requireCharged(t, ns)
	for i, n := range ns {
		n.post(n.a, n.write(1, 50*1024))
		n.pump(n.a)
		requireCharged(t, ns)
		require.Len(t, n.a.sent, 16/(i+1))
	}
	n := ns[0]
	n.arrive()
	n.pump(n.b)
	n.arrive()
	n.pump(n.a)
	requireCharged(t, ns)
	require.Equal(t, pathLimit/4, n.a.qp.Gauges().Window)
	require.Equal(t, pathLimit, n.a.qp.Gauges().PathWindow)
	require.Equal(t, Duration(2*latency), n.a.qp.Gauges().BaseRTT)
	require.Equal(t, 4*(1024+packetCost), n.a.qp.Gauges().InFlight, "no more than its share, while the path is full")
	for _, n := range ns {
		n.run(0)
		requireSuccess(t, n.a.wcs, 1)
		require.Zero(t, n.a.qp.Counters().Timeouts)
	}
	requireCharged(t, ns)

	n.filter = func(*host, *wire.Packet) (int, Time) { return 0, 0 }
	n.post(n.a, n.write(2, 1024))
	n.pump(n.a)
	requireCharged(t, ns)
	require.NoError(t, n.a.qp.Modify(n.now, abi.QPSErr, &Attr{}, 0))
	requireCharged(t, ns)
	for i, n := range ns {
		require.NoError(t, n.a.qp.Modify(n.now, abi.QPSReset, &Attr{}, 0))
		require.Equal(t, min(1, 3-i), p.Len())
	}
}

// When the share falls below the cost in flight, of which no packet asks for an
// ACK, one packet more leaves that does.
func TestPathAsksBeforeItWaits(t *testing.T) {
	p, ns := newPaths(t, 2)
	n, q := ns[0], ns[0].a.qp
	var others [15]path.Flow
	charge := func(bytes int) {
		for i := range others {
			others[i].Join(p, q.peer, 0, 0)
			others[i].Charge(bytes)
		}
	}
	n.post(n.a, n.write(1, 40*1024))
	n.batch = NewBatch(3)
	n.batch.Reset()
	q.Transmit(n.now, n.batch)
	for _, l := range n.batch.Packets {
		n.send(n.a, l)
	}
	require.Len(t, n.a.sent, 3)
	require.False(t, n.a.sent[2].AckReq)
	charge(pathLimit)
	n.pump(n.a)
	require.Len(t, n.a.sent, 4)
	require.True(t, n.a.sent[3].AckReq)
	charge(0)
	n.run(0)
	requireSuccess(t, n.a.wcs, 1)
	require.Zero(t, q.Counters().RetransmittedPkts)
}

// On a long path a window leaves in runs of about a millisecond, in slow start
// at twice the pace of a window in a round trip, and all of it leaves.
func TestPathIsPaced(t *testing.T) {
	n := newPair(t, cfg{edit: func(side int, c *Config) {
		if side == 0 {
			c.Paths = path.NewSet(0, nil)
			c.Tuning.InitialWindow = 500 * (1024 + packetCost)
		}
	}})
	const rtt = 20 * Time(Millisecond)
	n.filter = func(*host, *wire.Packet) (int, Time) { return 1, rtt/2 - latency }
	n.post(n.a, n.write(1, 64*1024)) // measures the round trip
	n.run(0)
	f := &n.a.qp.flow
	_, srtt := f.RoundTrip()
	require.InDelta(t, int64(rtt), int64(srtt), 1e6)
	f.Sent(n.now, 100<<20) // repeats, say
	_, held := f.Held(n.now)
	require.True(t, held)
	n.now += rtt + Time(Millisecond)
	_, held = f.Held(n.now)
	require.False(t, held, "a path is held for a round trip at most")
	n.a.sent = nil
	n.post(n.a, n.write(2, 500*1024))
	start := n.now
	for n.now < start+rtt {
		before := len(n.a.sent)
		n.pump(n.a)
		run := len(n.a.sent) - before
		require.LessOrEqual(t, run, 1+500*2/20)
		if len(n.a.sent) == 500 {
			break
		}
		n.lapse(t, n.a)
	}
	require.InDelta(t, int64(rtt/2), int64(n.now-start), 1e6)
	n.run(0)
	requireSuccess(t, n.a.wcs, 1, 2)
	require.Zero(t, n.a.qp.Counters().RetransmittedPkts)
}
