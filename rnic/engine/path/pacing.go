package path

// Pacing lets the packets of a path leave at the pace at which they can arrive,
// not a whole window at once: on a long path a window is many times as long as
// a queue on the way. They leave in runs of about pacingRun, which GSO can send
// as one and which most queues hold.
const pacingRun = Millisecond

// Long is the round trip, without a queue, from which a path is paced. On a
// shorter one answers come as often as a timer would.
const Long = 2 * Millisecond

// paced is the time until which the packets sent so far occupy the path, at its
// pace.
type paced struct{ until Time }

// takes is how long n bytes take at the path's pace: a window in a round trip,
// and a quarter more, so that the window limits; twice as much in slow start.
func (c *swift) takes(n int) Duration {
	more := 1.25
	if !c.steady {
		more = 2
	}
	return Duration(float64(n) * float64(c.Smoothed) / (float64(c.size) * more))
}

// Sent occupies the path. Unused time is lost, but for a run. Bytes that left
// too early, of repeats that do not wait, are forgotten after a round trip.
func (c *swift) Sent(now Time, n int) {
	if c.Base >= Long {
		u := max(c.until, now-Time(pacingRun)) + Time(c.takes(n))
		c.until = min(u, now+Time(c.Smoothed))
	}
}
