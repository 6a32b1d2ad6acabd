package rnic

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/rdmashim/rdmashim/rnic/engine"
	"github.com/rdmashim/rdmashim/rnic/link"
)

// Adaptive spinning: before blocking, spin up to spinFor if recent spins found
// a packet. A packet that comes at once then finds the receiver awake, which
// spares both sides the wake-up. Otherwise a spin is tried once in a while.
const (
	spinFor    = 25 * time.Microsecond
	spinTurns  = 128 // looks at most, where time stands still
	spinRetry  = 1   // waits without a spin after one in vain; twice as many each time
	spinRarely = 8   // the most waits without
)

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
	link.Quiet(d.link)
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
	left  atomic.Int32 // spins still to be left out because of them
	still atomic.Bool  // time stands still: it is that of a testing/synctest bubble
}

const (
	// longYield is longer than a peer on the same processor takes: a thread
	// that kept the processor so long has work for its whole time slice.
	longYield = time.Millisecond
	// contendedFor is the number of spins left out then.
	contendedFor = 512
	// dozeFor is the time that a polling program sleeps instead of spinning,
	// unless a packet arrives: the scheduler prefers a thread that slept to one
	// that spins.
	dozeFor = 50 * time.Microsecond
)

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
		runtime.Gosched() // the peer is in this process
		return
	}
	if d.contended() {
		link.Doze(d.link, dozeFor)
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
