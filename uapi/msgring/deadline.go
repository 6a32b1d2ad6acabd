package msgring

import (
	"net"
	"time"
)

// deadline is that of one direction. Its timer is made by the first deadline
// that lies ahead, and stopped when none stands.
type deadline struct {
	timer  *time.Timer
	at     time.Time // zero: none
	passed bool
}

// SetReadDeadline sets when Read and Peek give up, also those that wait. The
// zero time is never. A connection whose deadline passed is usable after
// another one is set.
func (c *Conn) SetReadDeadline(t time.Time) error {
	return c.setDeadline(&c.readBy, &c.turns.reader, t)
}

// SetWriteDeadline is SetReadDeadline for Write, Reserve and Commit.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	return c.setDeadline(&c.writeBy, &c.turns.writer, t)
}

// SetDeadline sets both.
func (c *Conn) SetDeadline(t time.Time) error {
	_ = c.SetReadDeadline(t)
	return c.SetWriteDeadline(t)
}

func (c *Conn) setDeadline(d *deadline, w *waiter, t time.Time) error {
	c.mu.Lock()
	if c.closing {
		c.mu.Unlock()
		return net.ErrClosed
	}
	d.at = t
	d.look(c, w)
	c.mu.Unlock()
	c.turns.rouse(w)
	return nil
}

// look sees whether the deadline has passed, and has the timer look when it
// has. Preconditions: the connection's mu is held.
func (d *deadline) look(c *Conn, w *waiter) {
	left := time.Until(d.at)
	d.passed = !d.at.IsZero() && left <= 0
	switch {
	case d.at.IsZero() || d.passed:
		d.stop()
	case d.timer == nil:
		d.timer = time.AfterFunc(left, func() {
			c.mu.Lock()
			if !c.closing {
				d.look(c, w)
			}
			c.mu.Unlock()
			c.turns.rouse(w)
		})
	default:
		d.timer.Reset(left)
	}
}

func (d *deadline) stop() {
	if d.timer != nil {
		d.timer.Stop()
	}
}
