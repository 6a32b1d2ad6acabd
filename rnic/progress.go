package rnic

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/rdmashim/rdmashim/rnic/link"
)

// A program that polls does the device's work itself: no goroutine is woken for
// it. The listener notices when a packet wakes it all the same, and then stays
// away from the socket until the polling stops.
const (
	// spinning is the number of polls without an Arm between them after which a
	// program counts as polling. A program that waits polls twice or so.
	spinning = 32
	// stampEvery is how many polls without anything share a look at the clock.
	stampEvery = 4
	// yieldEvery and goschedEvery are the numbers of polls in vain after which
	// other threads and other goroutines get the processor: the program may be
	// waiting for their work.
	yieldEvery   = 16
	goschedEvery = 512
	// pollPause is how long a program that polls may do something else before
	// the listener takes over.
	pollPause = time.Millisecond
)

// polling is the state by which polling programs keep the listener away.
type polling struct {
	polls atomic.Uint64 // calls of Progress
	calm  atomic.Uint64 // polls at the last Arm
	at    atomic.Int64  // engine.Time of about the last poll
	empty int           // polls without anything; guarded by rx

	parked atomic.Bool   // the listener is about to wait for unpark
	unpark chan struct{} // a token: it should not
}

// Progress receives the link's packets and does all that follows from them,
// unless another goroutine receives. It reports whether it did something, so
// that there may be completions. It does not block.
func (d *Device) Progress() bool {
	p := &d.polling
	polls := p.polls.Add(1)
	if !d.rx.TryLock() {
		p.at.Store(int64(d.now()))
		if polls%yieldEvery == 0 {
			runtime.Gosched()
		}
		return false
	}
	did := d.poll()
	if p.empty++; did {
		p.empty = 0
		p.at.Store(int64(d.rx.now))
	} else if p.empty%stampEvery == 0 {
		p.at.Store(int64(d.now()))
	}
	empty := p.empty
	d.rx.Unlock()
	if empty%yieldEvery == yieldEvery-1 {
		d.giveWay()
	}
	if empty%goschedEvery == goschedEvery-1 {
		runtime.Gosched()
	}
	return did
}

// poll receives, or does other work that is due. Preconditions: rx is held.
func (d *Device) poll() bool {
	n, err := d.receive()
	switch {
	case err != nil:
		d.waits() // for the listener, which meets the error too, and deals with it
		return false
	case n > 0:
		return true
	}
	return d.catchUp()
}

// catchUp does postponed work, unless another goroutine has the lock: a
// stream's work requests and, as the program has not answered the messages
// before, their acknowledgements. It reports whether it did. Preconditions:
// nothing was received.
func (d *Device) catchUp() bool {
	if !d.owed.Load() && d.mu.notes.empty() || !d.mu.TryLock() {
		return false
	}
	d.sendHeld()
	d.mu.Unlock()
	return true
}

// polled reports whether a program polls at present.
func (d *Device) polled() bool {
	p := &d.polling
	return p.polls.Load()-p.calm.Load() >= spinning && time.Duration(int64(d.now())-p.at.Load()) < pollPause
}

// calm notes that the program does not poll.
func (d *Device) calm() {
	p := &d.polling
	p.calm.Store(p.polls.Load())
}

// waits tells that the listener is needed. Arm calls it, as a program is about
// to wait for an event.
func (d *Device) waits() {
	d.calm()
	d.attendance.armed.Store(true)
	if d.polling.parked.Load() {
		d.unpark()
	}
}

// unpark lets the listener look whether it is needed.
func (d *Device) unpark() {
	select {
	case d.polling.unpark <- struct{}{}:
	default:
	}
}

// park returns when no program polls or attends; false when the device is
// closed.
func (d *Device) park() bool {
	if !d.polled() && !d.attended() {
		d.attendance.decided()
		return true
	}
	p, a := &d.polling, &d.attendance
	t := time.NewTimer(pollPause)
	defer t.Stop()
	for {
		d.quiet()
		p.parked.Store(true)
		a.decided()
		for d.polled() || d.attended() {
			if !d.rest(t) {
				return false
			}
		}
		p.parked.Store(false)
		if !a.busy.Load() {
			a.decided()
			return true
		}
		// An attendant may be taking over and have seen parked: once more.
		runtime.Gosched()
	}
}

// quiet keeps the link from waking a thread while a program polls.
func (d *Device) quiet() {
	if a := &d.attendance; d.polled() && a.busy.CompareAndSwap(false, true) {
		link.Quiet(d.link)
		a.busy.Store(false)
	}
}

// rest waits in the park for a while; false when the device is closed.
func (d *Device) rest(t *time.Timer) bool {
	a := &d.attendance
	if d.rests() {
		a.asleep.Store(true)
		defer a.asleep.Store(false)
	}
	if a.asleep.Load() && a.busy.Load() { // the attendant looks at asleep when it ends
		t.Stop()
	} else {
		t.Reset(pollPause)
	}
	select {
	case <-t.C:
	case <-d.polling.unpark:
	case <-d.quit:
		return false
	}
	return true
}
