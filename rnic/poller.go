package rnic

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/rdmashim/rdmashim/rnic/engine"
)

// A program that polls does the device's work itself: no goroutine is woken for
// it. The listener notices when a packet wakes it all the same, and then stays
// away from the socket until the polling stops.

// polling is the state by which polling programs keep the listener away.
type polling struct {
	polls atomic.Uint64 // calls of Progress
	calm  atomic.Uint64 // polls at the last Arm
	at    atomic.Int64  // engine.Time of about the last poll
	empty int           // polls in vain; guarded by rx
	began engine.Time   // when they began; guarded by rx
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
	now := d.now()
	if p.empty++; did {
		p.empty = 0
	}
	if p.empty == 1 {
		p.began = now
	}
	p.at.Store(int64(now))
	empty, vain := p.empty, now-p.began
	d.rx.Unlock()
	long := vain == 0 || vain >= engine.Time(yieldAfter) // time may stand still
	if empty%yieldEvery == yieldEvery-1 && (long || d.contention.still.Load()) {
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
	d.waiters.armed.Store(true)
	if d.own.owner() == away {
		hint(d.own.unpark)
	}
}
