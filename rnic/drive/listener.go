package drive

import (
	"runtime"
	"time"
)

// Listen is the listener: it receives whenever no program does, until the link
// is closed.
func (d *Driver) Listen() {
	pause := time.NewTimer(PollPause)
	pause.Stop()
	for {
		err := d.link.Wait()
		d.wakeups.Add(1)
		if err == nil {
			if !d.standBack(pause) {
				return
			}
			d.Receiver.Lock()
			err = d.drain()
			d.Receiver.Unlock()
		}
		if err != nil {
			d.engine.Fail(err)
			hint(d.own.decide) // a claimant sees that the device is down
			return
		}
	}
}

// standBack returns when no program drives the device; false when the device is
// closed. Meanwhile the listener is parked, with the timer for its rests.
func (d *Driver) standBack(pause *time.Timer) bool {
	for {
		switch d.own.owner() {
		case listening:
			if !d.polled() {
				return true
			}
			d.move(park)
			continue
		case claimed:
			d.move(grant)
			continue
		case away:
			if !d.polled() && !d.expected() {
				d.move(resume)
				d.waiters.attend.Store(false)
				continue
			}
		}
		if !d.rest(pause) {
			return false
		}
	}
}

// rest lets the parked listener wait for a while; false when the device is
// closed.
func (d *Driver) rest(pause *time.Timer) bool {
	o := &d.own
	if d.leaderRests() {
		o.untimed.Store(true)
		defer o.untimed.Store(false)
	}
	if by := o.owner(); o.untimed.Load() && (by == leading || by == waiting) {
		pause.Stop() // the leader looks at untimed when it leaves
	} else {
		pause.Reset(PollPause)
	}
	select {
	case <-pause.C:
	case <-o.unpark:
		pause.Stop()
	case <-d.quit:
		return false
	}
	return true
}

// drain receives until the link is empty and stays so for a moment. Waiters
// that had an event go first: their answers take acknowledgements along, and
// are answered while it spins. Without that spin each packet of two connections
// found the listener asleep. Preconditions: Receiver is held.
func (d *Driver) drain() error {
	events := d.waiters.events.Load()
	for {
		n, err := d.engine.Receive()
		if now := d.waiters.events.Load(); n == 0 && err == nil && now != events {
			events = now
			runtime.Gosched()
			continue
		}
		// No program is about to answer, and a peer may wait for
		// acknowledgements.
		if n == 0 && err == nil {
			d.engine.CatchUp()
			d.spin(func() bool {
				n, err = d.engine.Receive()
				return n > 0 || err != nil || d.polled()
			})
		}
		if err != nil {
			return err
		}
		if n > 0 {
			continue
		}
		if d.engine.Owes() { // another goroutine had the device
			d.engine.SendOwed()
		}
		return nil
	}
}
