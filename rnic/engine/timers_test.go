package engine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// RFC 6298, sections 3 and 5: an acknowledgement of a repeated packet measures
// nothing and does not bring the old timeout back; but it bounds the round
// trip.
func TestKarn(t *testing.T) {
	n := newPair(t, cfg{attr: func(_ int, a *Attr) { a.Timeout = 18 }}) // 1.07 s
	timer := &n.a.qp.req.timer
	timeouts := &n.a.qp.counters.Timeouts
	n.complete(n.a, n.write(1, 10))
	short := Duration(2 * latency)
	require.Equal(t, short, timer.srtt)
	rto := n.a.qp.Gauges().RTO
	require.Equal(t, short+2*Millisecond, rto)

	const way = 25 * Millisecond
	n.filter = func(*host, *wire.Packet) (int, Time) { return 1, Time(way) - latency }
	n.post(n.a, n.write(2, 10))
	n.run(n.now + Time(2*way)) // four timeouts, then the answer to the first copy
	requireSuccess(t, n.a.wcs, 1, 2)
	require.EqualValues(t, 4, *timeouts)
	require.Equal(t, short, timer.srtt, "measured a repeated packet")
	require.Equal(t, 2*way+2*way/4, n.a.qp.Gauges().RTO, "the round trip is not known to be shorter")

	n.complete(n.a, n.write(3, 10))
	requireSuccess(t, n.a.wcs, 1, 2, 3)
	require.EqualValues(t, 4, *timeouts, "the timeout is too short still")
	require.Zero(t, timer.backoff)
	require.Zero(t, timer.bound)
	require.Greater(t, timer.srtt, short)
}

// TestBackoffEndsInTime: an ACK that comes one round trip after a packet's last
// copy shows that the copies before it were lost. The timeout was not too
// short, however often it expired, so heavy loss costs short timeouts, not
// doubled ones.
func TestBackoffEndsInTime(t *testing.T) {
	for _, known := range []bool{true, false} { // from the handshake, or measured
		n := newPair(t, cfg{attr: func(_ int, a *Attr) { a.Timeout = 18 }}) // 1.07 s
		q := n.a.qp
		if known {
			q.Estimate(Duration(2 * latency))
		} else {
			n.complete(n.a, n.write(9, 10))
			n.a.wcs = nil
		}
		short := q.Gauges().RTO
		require.Less(t, short, 5*Millisecond)
		for i := range uint64(5) {
			n.filter = func(*host, *wire.Packet) (int, Time) {
				if q.counters.Timeouts < 3*(i+1) {
					return 0, 0
				}
				return 1, 0
			}
			n.post(n.a, n.write(i, 10))
			n.run(n.now + Time(7*short) + 4*latency)
			require.Len(t, n.a.wcs, int(i+1), "after 3 timeouts")
			require.EqualValues(t, 3*(i+1), q.counters.Timeouts)
			require.Zero(t, q.req.timer.backoff)
			require.Equal(t, short, q.Gauges().RTO)
		}
	}
}

// Before anything was measured, the time since a repeated packet's first copy
// shortens the guess.
func TestBoundShortensTheGuess(t *testing.T) {
	n := newPair(t, cfg{attr: func(_ int, a *Attr) { a.Timeout = 18 }}) // 1.07 s
	q := n.a.qp
	require.Equal(t, 20*Millisecond, q.Gauges().RTO)
	first := true
	n.filter = func(*host, *wire.Packet) (int, Time) {
		lost := first
		first = false
		if lost {
			return 0, 0 // the following packets show it, before any timeout
		}
		return 1, 0
	}
	n.post(n.a, n.write(1, 4000))
	n.run(n.now + Time(20*Millisecond))
	requireSuccess(t, n.a.wcs, 1)
	require.Zero(t, q.counters.Timeouts)
	require.Less(t, q.Gauges().RTO, 6*Millisecond)
}

// The backoff stays while neither a bound is known, because the packet that is
// timed is still missing, nor a packet was acknowledged that was sent once.
func TestKarnWithoutBound(t *testing.T) {
	n := newPair(t, cfg{})
	n.filter = func(*host, *wire.Packet) (int, Time) { return 0, 0 }
	n.post(n.a, n.write(1, 3*1024)) // the last packet asks for an ACK and is timed
	n.pump(n.a)
	q := n.a.qp
	n.lapse(t, n.a)
	n.pump(n.a) // the first two
	require.EqualValues(t, 2, q.counters.RetransmittedPkts)
	ack := func(psn wire.PSN) {
		n.now += latency
		n.respond(wire.RCAck, psn, wire.SyndromeACK(wire.NoCredits), 0)
	}
	rto := q.Gauges().RTO
	ack(0)
	require.EqualValues(t, 1, q.Outstanding())
	require.Equal(t, rto, q.Gauges().RTO, "a repeated packet ended the backoff")
	ack(2)
	require.Zero(t, q.Outstanding())
	require.Zero(t, q.req.timer.backoff)
	require.Equal(t, Duration(n.now-1), q.req.timer.srtt, "the third was sent once, in the beginning")
}

// A packet behind those that were repeated was sent once: its acknowledgement,
// from the first flight, tells that the timeout was too short.
func TestKarnBehindTheRepeated(t *testing.T) {
	n := newPair(t, cfg{})
	n.filter = func(*host, *wire.Packet) (int, Time) { return 1, Time(15 * Millisecond) }
	n.post(n.a, n.write(1, 40_000)) // fits the window, but not half of it
	n.run(n.now + Time(29*Millisecond))
	q := n.a.qp
	require.EqualValues(t, 1, q.counters.Timeouts)
	require.NotZero(t, q.counters.RetransmittedPkts)
	require.Less(t, q.req.again, q.req.sent)
	n.run(n.now + Time(3*Millisecond))
	requireSuccess(t, n.a.wcs, 1)
	require.Zero(t, q.req.timer.backoff)
	n.run(0)
}

// Timeouts in a row reduce the window once: no answer to packets that left
// after the first can be there yet.
func TestWindowShrinksOncePerRoundTrip(t *testing.T) {
	n := newPair(t, cfg{})
	q := n.a.qp
	n.complete(n.a, n.write(0, 10)) // measures the round trip
	for range 2 {
		before := q.req.win.size
		n.filter = func(*host, *wire.Packet) (int, Time) { return 0, 0 }
		n.post(n.a, n.write(1, 60_000))
		n.run(n.now + Time(200*Millisecond))
		require.Greater(t, q.counters.Timeouts, uint64(3))
		require.Equal(t, before/2, q.req.win.size)
		n.filter = nil
		n.run(0)
	}
	requireSuccess(t, n.a.wcs, 0, 1, 1)
}

// Before the first measurement a timeout repeats two packets and says nothing
// of the window.
func TestTimeoutBeforeMeasurement(t *testing.T) {
	n := newPair(t, cfg{})
	q := n.a.qp
	before := q.req.win
	n.filter = func(*host, *wire.Packet) (int, Time) { return 0, 0 }
	n.post(n.a, n.write(1, 40_000))
	n.run(n.now + Time(200*Millisecond))
	require.Greater(t, q.counters.Timeouts, uint64(3))
	require.Equal(t, 2*q.counters.Timeouts, q.counters.RetransmittedPkts)
	n.filter = nil
	n.run(0)
	n.complete(n.a, n.write(2, 10))
	requireSuccess(t, n.a.wcs, 1, 2)
	require.NotZero(t, q.Gauges().RTT)
	require.GreaterOrEqual(t, q.req.win.size, before.size)
	require.False(t, q.req.win.slow)
}

// The first timeout follows the estimate, between MinRTO and the ACK timeout,
// until a packet is measured or the queue pair is reset.
func TestEstimate(t *testing.T) {
	n := newPair(t, cfg{attr: func(_ int, a *Attr) { a.Timeout = 16 }}) // 268 ms
	q := n.a.qp
	rto := func() Duration { return q.Gauges().RTO }
	require.Equal(t, 20*Millisecond, rto(), "nothing is known")
	for _, c := range [][2]Duration{
		{Microsecond, 4*Millisecond + Microsecond},
		{20 * Millisecond, 60 * Millisecond},
		{100 * Millisecond, q.ackTimeout()},
		{400 * Millisecond, 500 * Millisecond}, // longer than the ACK timeout
		{10 * Second, q.patience() / 4},
		{-1, 20 * Millisecond},
	} {
		q.Estimate(c[0])
		require.Equal(t, c[1], rto(), "%d", c[0])
	}
	q.Estimate(10 * Second)
	n.complete(n.a, n.write(1, 10))
	require.Less(t, rto(), 5*Millisecond)
	require.NoError(t, q.Modify(n.now, abi.QPSReset, &Attr{}, 0))
	require.Zero(t, q.req.timer)
}

// IBA vol. 1, 9.7.6.1.3: a peer that answers nothing is given up after as many
// ACK timeouts as it is sent the request, once and by each retry.
func TestPatience(t *testing.T) {
	for _, retries := range []uint8{0, 1, 7} {
		n := newPair(t, cfg{attr: func(_ int, a *Attr) { a.Timeout, a.RetryCnt = 18, retries }})
		n.filter = func(*host, *wire.Packet) (int, Time) { return 0, 0 }
		end := n.now + Time(n.a.qp.ackTimeout())*Time(retries+1)
		n.post(n.a, n.write(1, 10))
		n.run(end - 1)
		require.Empty(t, n.a.wcs, "%d retries", retries)
		n.run(end)
		require.Equal(t, []abi.WCStatus{abi.WCRetryExcErr}, statuses(n.a.wcs), "%d retries", retries)
	}
}
