package engine

// Pacing lets the packets of a path leave at the pace at which they can arrive,
// not a whole window at once: on a long path a window is many times as long as
// a queue on the way. They leave in runs of about pacingRun, which GSO can send
// as one and which most queues hold.
const (
	// pacedFrom is the round trip, without a queue, from which a path is paced.
	// On a shorter one answers come as often as a timer would.
	pacedFrom = 2 * Millisecond
	pacingRun = Millisecond
)

// paced is the time until which the packets sent so far occupy the path, at its
// pace.
type paced struct{ until Time }

// takes is how long n bytes take at the path's pace: a window in a round trip,
// and a quarter more, so that the window limits; twice as much in slow start.
func (x *path) takes(n int) Duration {
	more := 1.25
	if !x.steady {
		more = 2
	}
	return Duration(float64(n) * float64(x.srtt) / (float64(x.size) * more))
}

// spend notes that n bytes leave. Unused time is lost, but for a run. Bytes
// that left too early, of repeats that do not wait, are forgotten after a round
// trip.
func (x *path) spend(now Time, n int) {
	if x.base >= pacedFrom {
		u := max(x.paced.until, now-Time(pacingRun)) + Time(x.takes(n))
		x.paced.until = min(u, now+Time(x.srtt))
	}
}

// holds reports whether the path has sent too much, and until when a run more
// than that has come together.
func (x *path) holds(now Time) (until Time, held bool) {
	return x.paced.until + Time(pacingRun), x.base >= pacedFrom && x.paced.until > now
}
