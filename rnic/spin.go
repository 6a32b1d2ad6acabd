package rnic

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/rdmashim/rdmashim/rnic/engine"
	"github.com/rdmashim/rdmashim/rnic/link"
)

// Who would block looks for a moment longer, if that has paid of late: what
// comes at once finds it awake, which spares both sides the wake-up. Otherwise
// it is tried once in a while.
const (
	spinFor    = 25 * time.Microsecond
	spinTurns  = 128 // looks, where time stands still
	spinRetry  = 1   // times without, after one in vain; twice as many each time
	spinRarely = 8   // but no more
)

// spinner decides whether to look for longer.
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

// spin looks again and again, and reports whether there was something. In
// between others may have the processor: it may be what they wait for.
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

// contention is what is known of others who want the processor.
type contention struct {
	left  atomic.Int32 // how many times nobody spins because of them
	still atomic.Bool  // time stands still: it is that of a testing/synctest bubble
}

const (
	// longYield is longer than a peer takes that waits for the same processor:
	// who got it has work for all of its time slice.
	longYield = time.Millisecond
	// contendedFor is how many times nobody spins then.
	contendedFor = 512
	// dozeFor is how long a program that polls sleeps instead, unless something
	// arrives: who sleeps is preferred when it wakes, who spins waits for its
	// turn.
	dozeFor = 50 * time.Microsecond
)

// contended reports whether the processor is better left to others.
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
		runtime.Gosched() // whoever is waited for is in this process
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
	case took == 0 && runtime.GOOS == "linux": // whose clock tells nanoseconds
		c.still.Store(true) // what yielding costs would never be seen
	}
}
