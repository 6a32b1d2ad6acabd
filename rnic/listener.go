package rnic

import (
	"runtime"
	"time"
)

// listen is the listener: it receives whenever no program does, until the link
// is closed.
func (d *Device) listen() {
	for {
		err := d.link.Wait()
		d.woken.listener.Add(1)
		if err == nil {
			if !d.standBack() {
				return
			}
			d.rx.Lock()
			err = d.drain()
			d.rx.Unlock()
		}
		if err != nil {
			d.mu.Lock()
			d.fail(err)
			d.settle(0)
			d.mu.Unlock()
			hint(d.own.told) // a claimant sees that the device is down
			return
		}
	}
}

// standBack returns when no program drives the device; false when the device is
// closed. Meanwhile the listener is parked.
func (d *Device) standBack() bool {
	var t *time.Timer
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
				continue
			}
		}
		if t == nil {
			t = time.NewTimer(pollPause)
			defer t.Stop()
		}
		if !d.rest(t) {
			return false
		}
	}
}

// rest lets the parked listener wait for a while; false when the device is
// closed.
func (d *Device) rest(t *time.Timer) bool {
	o := &d.own
	if d.rests() {
		o.sound.Store(true)
		defer o.sound.Store(false)
	}
	if by := o.owner(); o.sound.Load() && (by == leading || by == waiting) {
		t.Stop() // the leader looks at sound when it leaves
	} else {
		t.Reset(pollPause)
	}
	select {
	case <-t.C:
	case <-o.unpark:
	case <-d.quit:
		return false
	}
	return true
}

// drain receives until the link is empty and stays so for a moment.
// Acknowledgements go last, when the waiters that were told of completions have
// had their turn: their answers take the acknowledgements along. Preconditions:
// rx is held.
func (d *Device) drain() error {
	told := d.waiters.told.Load()
	for {
		n, err := d.receive()
		// Waiters that were told of completions go first. If there are none,
		// nobody is about to answer, and a peer may wait for acknowledgements.
		if n == 0 && err == nil && told == d.waiters.told.Load() {
			d.catchUp()
			d.spin(func() bool {
				n, err = d.receive()
				return n > 0 || err != nil || d.polled()
			})
		}
		if err != nil {
			return err
		}
		if n > 0 {
			continue
		}
		if !d.owed.Load() {
			return nil
		}
		runtime.Gosched()
		d.mu.Lock()
		d.sendHeld()
		d.mu.Unlock()
		return nil
	}
}
