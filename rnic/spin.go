package rnic

import (
	"runtime"
	"sync/atomic"

	"github.com/rdmashim/rdmashim/rnic/engine"
	"github.com/rdmashim/rdmashim/rnic/link"
)

// Adaptive spinning: before blocking, spin up to spinFor if recent spins found
// a packet. A packet that comes at once then finds the receiver awake, which
// spares both sides the wake-up. Otherwise a spin is tried once in a while.

// spinner decides whether the next wait begins with a spin.
type spinner struct{ skip, backoff int }

func (s *spinner) worth() bool {
	if s.skip > 0 {
		s.skip--
		return false
	}
	return true
}

func (s *spinner) paid(did bool) {
	s.backoff = max(s.backoff, spinRetry)
	if did {
		s.backoff = max(s.backoff/2, spinRetry)
		return
	}
	s.skip, s.backoff = s.backoff, min(2*s.backoff, spinRarely)
}

// spin calls look again and again, and reports whether it found something. In
// between it yields the processor: the goroutine that it waits for may need it.
func (d *Device) spin(look func() bool) bool {
	if d.contended() {
		return false
	}
	until := d.now() + engine.Time(spinFor)
	for n := 0; n < spinTurns && d.now() < until; n++ {
		if look() {
			return true
		}
		d.giveWay()
	}
	return false
}

// contention tells whether other threads want the processor.
type contention struct {
	left atomic.Int32 // spins still to be left out because of them
	// still says that the peer is a goroutine that needs this thread: in a
	// testing/synctest bubble, where time stands still, or on the in-memory
	// network of a process with one processor.
	still atomic.Bool
}

// contended reports whether the processor is better left to other threads.
func (d *Device) contended() bool {
	n := d.contention.left.Load()
	if n > 0 {
		d.contention.left.Store(n - 1)
	}
	return n > 0
}

// giveWay lets another thread that waits for this processor have it: the peer,
// say.
func (d *Device) giveWay() {
	c := &d.contention
	if c.still.Load() {
		runtime.Gosched()
		return
	}
	if d.contended() {
		_ = link.Sleep(d.link, dozeFor, false)
		return
	}
	at := d.now()
	yield()
	switch took := d.now() - at; {
	case took > engine.Time(longYield):
		c.left.Store(contendedFor)
	case took == 0 && runtime.GOOS == "linux": // its clock tells nanoseconds
		c.still.Store(true) // the cost of yielding would never be seen
	}
}
