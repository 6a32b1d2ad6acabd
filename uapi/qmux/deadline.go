package qmux

import (
	"os"
	"sync"
	"time"
)

// deadline is when calls in one direction end. passed is closed then.
type deadline struct {
	mu     sync.Mutex
	timer  *time.Timer
	passed chan struct{}
}

func newDeadline() deadline { return deadline{passed: make(chan struct{})} }

// setDeadline is d.set for a stream of the connection. late is called when the
// deadline has passed.
func (c *Conn) setDeadline(d *deadline, t time.Time, late func()) {
	if !t.IsZero() {
		c.deadlines.Add(1)
	}
	d.set(t, late)
	if d.check() != nil {
		late()
	}
}

// set sets the deadline; the zero time means none. Calls that wait see it too.
func (d *deadline) set(t time.Time, late func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil && !d.timer.Stop() {
		<-d.passed // the timer fired, or is about to
	}
	d.timer = nil
	over := isClosed(d.passed)
	left := time.Until(t)
	switch {
	case t.IsZero() || left > 0:
		if over {
			d.passed = make(chan struct{})
		}
		if !t.IsZero() {
			passed := d.passed
			d.timer = time.AfterFunc(left, func() {
				close(passed)
				late()
			})
		}
	case !over:
		close(d.passed)
	}
}

// wait returns the channel that is closed when the deadline passes. A deadline
// that is moved once it has passed has another.
func (d *deadline) wait() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.passed
}

// check returns os.ErrDeadlineExceeded if the deadline has passed.
func (d *deadline) check() error {
	if isClosed(d.wait()) {
		return os.ErrDeadlineExceeded
	}
	return nil
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
