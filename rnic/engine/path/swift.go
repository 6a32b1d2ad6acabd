package path

import "math"

// swift bounds the bytes in flight to a peer by the delay that they cause, in
// the manner of Swift (Kumar et al., SIGCOMM 2020). It compares the least round
// trip of each round, which is about a round trip long, with the least of all,
// Base: the difference is a queue that stands on the path. Single late answers
// are of busy hosts and count for nothing.
//
//	floor ≤ size
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
// A Base that was measured while others had filled the queue is too large. So a
// path that has had a queue for a while empties it: size is floor until a round
// has passed, and Base is measured anew.
type swift struct {
	*Measured
	paced

	size   int  // bytes in flight at most
	packet int  // bytes of the largest, cost included
	floor  int  // a packet of each of flows, and four, or as few as few
	flows  int  // that have packets in flight
	few    int  // packets, 4 or 1
	steady bool // slow start is over
	fill   int  // of size, 0 … 256/256: how much a round adds

	least    Duration // of this round; 0: nothing was measured yet
	end      Time     // of the round at the earliest
	waited   bool     // in the last round packets waited for room
	missed   bool     // in this round packets were lost, or
	marked   bool     // met a queue, as a switch or the peer says
	calm     int      // rounds in a row without a queue
	often    float64  // the part of the rounds that are marked, 0 … 1, smoothed
	settling int      // rounds that say nothing of the present size
	refill   int      // size before the queue was emptied; 0: it was not

	cuts uint64
}

const (
	// leastAllowance is the delay of the queue that a path may have: much for a
	// switch, but a soft device's host is often busy for a part of it. A long
	// path may have a sixteenth of its length, up to mostAllowance: there a
	// round that is judged wrongly costs the more time.
	leastAllowance, mostAllowance = Millisecond, 4 * Millisecond
	// refreshAfter is how long Base counts until the path is emptied to measure
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

// NewSwift makes the controller that is in use, see NewSet.
func NewSwift(m *Measured, window int) Controller { return newSwift(m, window) }

func newSwift(m *Measured, window int) *swift {
	return &swift{Measured: m, size: window, fill: whole, few: mendable, often: 1}
}

// Serve sets the floor.
func (c *swift) Serve(flows, packet int) {
	c.flows, c.packet = flows, packet
	c.raise()
}

func (c *swift) raise() {
	c.floor = max(c.flows, c.few) * c.packet
	c.size = max(c.size, c.floor)
}

// Acked grows the size, if it limits, and takes the round trip.
func (c *swift) Acked(now Time, n int, rtt Duration, limit int) {
	if (c.Limited || c.waited) && (limit == 0 || c.size < limit) {
		c.size += min(n*c.fill/whole, n)
	}
	if rtt == 0 {
		return
	}
	if c.least == 0 || rtt < c.least {
		c.least = rtt
	}
	c.turn(now)
}

func (c *swift) Lost() { c.missed = true }

// Marked ends a round that is over: a queue that runs over leaves nothing to be
// measured.
func (c *swift) Marked(now Time) {
	c.marked = true
	if c.Base != 0 {
		c.turn(now)
	}
}

// Timeout cuts at once: nothing comes that would end the round.
func (c *swift) Timeout() {
	if c.settling == 0 {
		c.cut(c.size / 2)
	}
}

// Room returns size, and the time until which the path is occupied.
func (c *swift) Room() (bytes int, after Time) {
	if c.Base >= Long {
		after = c.until
	}
	return c.size, after
}

// turn ends the round when it is over.
func (c *swift) turn(now Time) {
	if now < c.end {
		return
	}
	if c.least == 0 {
		c.least = c.Smoothed
	}
	if c.settling > 0 {
		c.settling--
	} else {
		c.judge(now)
	}
	c.end = now + Time(c.Smoothed)
	c.least, c.missed, c.marked = 0, false, false
	c.Limited, c.waited = false, c.Limited
}

// judge chooses the size, and how it grows, by the round that ends.
func (c *swift) judge(now Time) {
	allowance := min(max(leastAllowance, c.Base/16), mostAllowance)
	allowed := allowance + Duration(float64(allowance)*math.Sqrt(float64(c.floor)/float64(c.size)))
	if c.refill > 0 || c.size == c.floor && c.least-c.Base > allowed {
		// So few packets make no queue: the path is as long.
		c.Base, c.Fresh, c.size, c.refill = c.least, now, max(c.size, c.refill), 0
	}
	queue := c.least - c.Base
	c.often -= c.often / 16
	if c.marked {
		c.often += 1. / 16
	}
	// A soft device's host is late by that without a queue.
	short := allowance/4 + min(c.Base/16, allowance/2)
	switch {
	case c.steady && c.Limited && !c.missed && now-c.Fresh > Time(max(refreshAfter, refreshRounds*c.Smoothed)):
		c.empty()
	case queue > allowed:
		part := max(c.least-4*(queue-allowed)/5, c.least/2)
		c.cut(int(float64(c.size) * float64(part) / float64(c.least)))
	case c.marked:
		c.few = 1
		c.raise()
		c.cut(c.size - int(float64(c.size)*c.often/2))
	case c.missed && queue > short:
		c.cut(c.size * 7 / 10)
	case !c.steady && queue > allowance/2+c.Base/8:
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
		} else if c.Limited {
			c.fill += whole >> max(4-c.calm, 1)
		}
	}
}

func (c *swift) cut(size int) {
	if !c.steady {
		c.steady, c.Fresh = true, longAgo
	}
	c.size, c.settling, c.refill = max(size, c.floor), 1, 0
	c.cuts++
}

// empty lets the queue drain for a round, and be measured in the next.
func (c *swift) empty() {
	c.refill, c.size, c.settling = c.size, c.floor, 1
}
