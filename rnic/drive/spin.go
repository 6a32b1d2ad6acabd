package drive

import (
	"runtime"
	"sync/atomic"
	"time"
)

// spin calls look until it found something or the time is up (habits.go:
// adaptive spinning). In between it yields the processor: the goroutine that it
// waits for may need it, and may have done its work when the time is up.
func (d *Driver) spin(look func() bool) {
	if !d.brisk.Load() || d.contended() {
		return
	}
	began, p := d.now(), &d.trial
	window := p.window(time.Duration(d.arrived.Load()), d.contention.calm())
	for range spinTurns {
		found, took := look(), d.now()-began
		if found || took >= window {
			p.spun(began, took, found)
			return
		}
		d.giveWay()
	}
}

// trial decides how long a receiver spins. Where a processor that rests takes
// longer to wake than both sides spin, each of them spins in vain and blocks,
// message after message. So one spins for longer then, on trial: its answers
// find the peer awake, and the peer's find it. The trial goes on for as long as
// it pays. Fields belong to the goroutine that waits for the link.
type trial struct {
	long  bool
	spins int           // of this round
	found int           // those that found something
	near  int           // those in vain that a long one would not have been
	spent time.Duration // by all of them
	vain  time.Duration // when the last one began, if it was in vain
	rest  int           // rounds until the next trial
	last  int           // rounds that the last trial in vain was followed by
}

// window is how long to spin. Packets have come at arrived; no trial begins
// where other threads want the processor.
func (p *trial) window(arrived time.Duration, calm bool) time.Duration {
	if wait := arrived - p.vain; p.vain > 0 && wait > 0 && wait <= spinLong {
		p.near++
	}
	p.vain = 0
	if p.spins == trialSpins {
		p.judge(calm)
	}
	if p.long {
		return spinLong
	}
	return spinFor
}

// spun counts a spin.
func (p *trial) spun(began, took time.Duration, found bool) {
	p.spins++
	p.spent += took
	if found {
		p.found++
	} else {
		p.vain = began
	}
}

// judge ends a round.
func (p *trial) judge(calm bool) {
	switch pays := p.spent <= time.Duration(p.found)*spinWorth; {
	case p.long && pays:
		p.last = 0
	case p.long:
		p.long, p.last = false, min(max(trialMore*p.last, trialMore), trialMost)
		p.rest = p.last
	case p.rest > 0:
		p.rest--
	default:
		p.long = calm && p.near >= trialNear
	}
	p.spins, p.found, p.near, p.spent = 0, 0, 0, 0
}

// contention tells whether other threads want the processor.
type contention struct {
	left    atomic.Int32 // spins still to be left out because of them
	penalty atomic.Int32 // how many they were
	short   atomic.Int32 // yields since then that did not take long
	// still says that the peer is a goroutine that needs this thread: in a
	// testing/synctest bubble, where time stands still, or on the in-memory
	// network of a process with one processor.
	still atomic.Bool
}

// contended reports whether the processor is better left to other threads.
func (d *Driver) contended() bool {
	n := d.contention.left.Load()
	if n > 0 {
		d.contention.left.Store(n - 1)
	}
	return n > 0
}

// calm reports whether the last yield that took long was many yields ago.
func (c *contention) calm() bool { return c.short.Load() >= contendedLeast }

// notice follows a yield that took long. A machine that is busy now and then
// gets its spins back soon.
func (c *contention) notice() {
	n := int32(contendedLeast)
	if c.short.Swap(0) < contendedLeast {
		n = min(contendedMore*max(c.penalty.Load(), n), contendedMost)
	}
	c.penalty.Store(n)
	c.left.Store(n)
}

// giveWay lets another thread that waits for this processor have it: the peer,
// say.
func (d *Driver) giveWay() {
	c := &d.contention
	if c.still.Load() {
		runtime.Gosched()
		return
	}
	if d.contended() {
		_ = d.link.Sleep(dozeFor, false)
		return
	}
	at := d.now()
	yield()
	switch took := d.now() - at; {
	case took > longYield:
		c.notice()
	case took == 0 && runtime.GOOS == "linux": // its clock tells nanoseconds
		c.still.Store(true) // the cost of yielding would never be seen
	default:
		c.short.Add(1)
	}
}
