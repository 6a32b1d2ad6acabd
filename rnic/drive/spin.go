package drive

import (
	"runtime"
	"sync/atomic"
)

// spin calls look until it found something or the time is up (habits.go:
// adaptive spinning). In between it yields the processor: the goroutine that it
// waits for may need it.
func (d *Driver) spin(look func() bool) {
	if !d.brisk.Load() || d.contended() {
		return
	}
	until := d.now() + spinFor
	for n := 0; n < spinTurns && d.now() < until; n++ {
		if look() {
			return
		}
		d.giveWay()
	}
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
