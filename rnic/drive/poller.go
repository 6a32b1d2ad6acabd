package drive

import (
	"runtime"
	"sync/atomic"
	"time"
)

// A program that polls does the device's work itself: no goroutine is woken for
// it. The listener notices when a packet wakes it all the same, and then stays
// away from the socket until the polling stops.

// polling is the state by which polling programs keep the listener away.
type polling struct {
	polls atomic.Uint64 // calls of Progress
	armed atomic.Uint64 // polls at the last Arm
	at    atomic.Int64  // time of about the last poll
	empty int           // polls in vain; guarded by Receiver
	began time.Duration // when they began; guarded by Receiver
}

// Progress receives the link's packets and does all that follows from them,
// unless another goroutine receives. It reports whether it did something, so
// that there may be completions. It does not block; see kshim.Driven.
func (d *Driver) Progress() bool {
	p := &d.polling
	polls := p.polls.Add(1)
	if !d.Receiver.TryLock() {
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
	d.Receiver.Unlock()
	long := vain == 0 || vain >= yieldAfter           // time may stand still
	waits := int64(polls-p.armed.Load()) < yieldEvery // it polls once behind its Arm
	if empty%yieldEvery == yieldEvery-1 && !waits && (long || d.contention.still.Load()) {
		d.giveWay()
	}
	if empty%goschedEvery == goschedEvery-1 || did && d.waiters.woke.Swap(false) {
		runtime.Gosched()
	}
	return did
}

// Assist receives the link's packets and does all that follows from them, until
// there are none or rounds times, unless another goroutine receives. Its caller
// does not poll: the listener does not stay away.
func (d *Driver) Assist(rounds int) {
	for ; rounds > 0 && d.assist(); rounds-- {
	}
}

// Stay is Assist until done, for stayFor at most, whose caller keeps a program
// waiting that would poll: the processor is the device's meanwhile.
func (d *Driver) Stay(done func() bool) {
	for until := d.now() + stayFor; !done() && d.now() < until; {
		if !d.assist() {
			d.giveWay()
		}
	}
}

// assist reports whether it did something.
func (d *Driver) assist() (did bool) {
	if d.Receiver.TryLock() {
		did = d.poll()
		d.Receiver.Unlock()
	}
	return did
}

// poll receives, or does other work that is due. Preconditions: Receiver is
// held.
func (d *Driver) poll() bool {
	n, err := d.engine.Receive()
	switch {
	case err != nil:
		d.Arm() // for the listener, which meets the error too, and deals with it
		return false
	case n > 0:
		return true
	}
	return d.engine.CatchUp()
}

// polled reports whether a program polls at present.
func (d *Driver) polled() bool {
	p := &d.polling
	return p.polls.Load()-p.armed.Load() >= spinning && time.Duration(int64(d.now())-p.at.Load()) < PollPause
}

// stopped begins the count of polls anew: the program does not poll.
func (p *polling) stopped() { p.armed.Store(p.polls.Load()) }

// Arm follows the arming of a completion queue: a program is about to wait for
// an event, and needs the listener, unless it is expected to Attend.
func (d *Driver) Arm() {
	d.polling.stopped()
	if !d.attends() {
		d.enlist()
	}
}

// enlist has the listener resume, if no program drives the device.
func (d *Driver) enlist() {
	d.waiters.armed.Store(true)
	if d.own.owner() == away {
		hint(d.own.unpark)
	}
}
