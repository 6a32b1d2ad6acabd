package engine

import "math"

// congestion bounds the bytes in flight to a peer by the delay that they cause,
// in the manner of Swift (Kumar et al., SIGCOMM 2020). It compares the least
// round trip of each round, which is about a round trip long, with the least of
// all, base: the difference is a queue that stands on the path. Single late
// answers are of busy hosts and count for nothing.
//
//	floor ≤ size
//	base is 0 until the first measurement, and 0 < base ≤ srtt then
//
// The first rounds double size (slow start) until there is a queue. Then each
// adds a packet, and while there is no queue an eighth more, in the second such
// round in a row a quarter, later a half: a busy host looks like a queue, and
// size is soon back where that cut it (TIMELY's hyperactive increase, Mittal et
// al., SIGCOMM 2015). A queue of more than allowance shrinks size in
// proportion, once in two rounds, since the packets of the second left before;
// a small size is allowed more, so that shares become equal. A loss shrinks it
// only where there is a queue, too: packets that are lost at random say nothing
// of the load.
//
// A base that was measured while others had filled the queue is too large. So a
// path that has had a queue for a while empties it: size is floor until a round
// has passed, and base is measured anew.
type congestion struct {
	size   int  // bytes in flight at most
	packet int  // bytes of the largest, cost included
	floor  int  // a packet of each of pairs, and four, or as few as few
	pairs  int  // queue pairs that have packets in flight
	few    int  // packets, 4 or 1
	steady bool // slow start is over
	fill   int  // of size, 0 … 256/256: how much a round adds

	base, srtt Duration
	least      Duration // of this round; 0: nothing was measured yet
	end        Time     // of the round at the earliest
	limited    bool     // in this round packets waited for room, or
	waited     bool     // in the last
	missed     bool     // in this round packets were lost, or
	marked     bool     // met a queue, as a switch or the peer says
	calm       int      // rounds in a row without a queue
	often      float64  // the part of the rounds that are marked, 0 … 1, smoothed
	settling   int      // rounds that say nothing of the present size
	refill     int      // size before the queue was emptied; 0: it was not
	fresh      Time     // when base was measured last

	cuts uint64
}

const (
	// leastAllowance is the delay of the queue that a path may have: much for a
	// switch, but a soft device's host is often busy for a part of it. A long
	// path may have a sixteenth of its length, up to mostAllowance: there a
	// round that is judged wrongly costs the more time.
	leastAllowance, mostAllowance = Millisecond, 4 * Millisecond
	// refreshAfter is how long base counts until the path is emptied to measure
	// it, but at least refreshRounds round trips: that takes two.
	refreshAfter  = Second / 4
	refreshRounds = 50
	// longAgo is a time before all others.
	longAgo Time = math.MinInt64 / 2
	// mendable is how many packets leave room for one behind a loss, which
	// shows it.
	mendable = 4
	// whole is fill that doubles size in a round.
	whole = 256
)

func newCongestion(size int) congestion {
	return congestion{size: size, fill: whole, few: mendable, often: 1}
}

// serves sets the floor: so many queue pairs have packets in flight.
func (c *congestion) serves(pairs int) {
	c.pairs = pairs
	c.floor = max(pairs, c.few) * c.packet
	c.size = max(c.size, c.floor)
}

// waits notes that a packet waits for room.
func (c *congestion) waits() { c.limited = true }

// acknowledged notes that n bytes arrived. Only a size that limits grows.
// Size does not grow beyond limit, 0 being none.
func (c *congestion) acknowledged(n, limit int) {
	if (c.limited || c.waited) && (limit == 0 || c.size < limit) {
		c.size += min(n*c.fill/whole, n)
	}
}

// lost notes a loss that a later packet showed.
func (c *congestion) lost() { c.missed = true }

// mark notes that a switch, or the peer, says that there is a queue. It ends a
// round that is over: a queue that runs over leaves nothing to be measured.
func (c *congestion) mark(now Time) {
	c.marked = true
	if c.base != 0 {
		c.turn(now)
	}
}

// silent notes a retransmission timeout on a path that was measured: nothing
// comes that would end the round.
func (c *congestion) silent() {
	if c.settling == 0 {
		c.cut(c.size / 2)
	}
}

// measured notes a round trip.
func (c *congestion) measured(now Time, rtt Duration) {
	if c.base == 0 || rtt <= c.base {
		c.base, c.fresh = rtt, now
	}
	if c.srtt == 0 {
		c.srtt = rtt
	}
	c.srtt += (rtt - c.srtt) / 8
	if c.least == 0 || rtt < c.least {
		c.least = rtt
	}
	c.turn(now)
}

// turn ends the round when it is over.
func (c *congestion) turn(now Time) {
	if now < c.end {
		return
	}
	if c.least == 0 {
		c.least = c.srtt
	}
	if c.settling > 0 {
		c.settling--
	} else {
		c.judge(now)
	}
	c.end = now + Time(c.srtt)
	c.least, c.missed, c.marked = 0, false, false
	c.limited, c.waited = false, c.limited
}

// judge chooses the size, and how it grows, by the round that ends.
func (c *congestion) judge(now Time) {
	allowance := min(max(leastAllowance, c.base/16), mostAllowance)
	allowed := allowance + Duration(float64(allowance)*math.Sqrt(float64(c.floor)/float64(c.size)))
	if c.refill > 0 || c.size == c.floor && c.least-c.base > allowed {
		// So few packets make no queue: the path is as long.
		c.base, c.fresh, c.size, c.refill = c.least, now, max(c.size, c.refill), 0
	}
	queue := c.least - c.base
	c.often -= c.often / 16
	if c.marked {
		c.often += 1. / 16
	}
	// A soft device's host is late by that without a queue.
	short := allowance/4 + min(c.base/16, allowance/2)
	switch {
	case c.steady && c.limited && !c.missed && now-c.fresh > Time(max(refreshAfter, refreshRounds*c.srtt)):
		c.empty()
	case queue > allowed:
		part := max(c.least-4*(queue-allowed)/5, c.least/2)
		c.cut(int(float64(c.size) * float64(part) / float64(c.least)))
	case c.marked:
		c.few = 1
		c.serves(c.pairs)
		c.cut(c.size - int(float64(c.size)*c.often/2))
	case c.missed && queue > short:
		c.cut(c.size * 7 / 10)
	case !c.steady && queue > allowance/2+c.base/8:
		c.steady = true
		c.empty()
	}
	c.fill = whole
	if c.steady {
		c.fill = min(whole*c.packet/c.size, whole)
		if c.marked {
			c.fill = 0
		}
		if c.calm++; queue > short || c.marked {
			c.calm = 0
		} else if c.limited {
			c.fill += whole >> max(4-c.calm, 1)
		}
	}
}

func (c *congestion) cut(size int) {
	if !c.steady {
		c.steady, c.fresh = true, longAgo
	}
	c.size, c.settling, c.refill = max(size, c.floor), 1, 0
	c.cuts++
}

// empty lets the queue drain for a round, and be measured in the next.
func (c *congestion) empty() {
	c.refill, c.size, c.settling = c.size, c.floor, 1
}
