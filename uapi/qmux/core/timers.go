package core

// timers are the times at which something happens without the peer. There are
// no others: nothing is ever sent again.
type timers struct {
	period Duration // of idle time, 0: none
	idle   Time
	keep   Time // when a ping is due
	linger Time // when a close waits no longer

	sentSince bool // a record was sent since one was received
}

// start sets the timers of a new connection.
func (t *timers) start(c *Conn, now Time) {
	t.period = c.cfg.IdleTimeout
	t.keep, t.linger = Never, Never
	t.restart(now)
}

// ready takes the peer's idle time: the shorter one holds.
func (t *timers) ready(c *Conn, now Time) {
	if ms := min(c.peer.MaxIdleTimeout, maxIdle); ms > 0 {
		theirs := Duration(ms) * Millisecond
		if t.period == 0 || theirs < t.period {
			t.period = theirs
		}
	}
	t.received(c, now)
}

func (t *timers) restart(now Time) {
	t.idle = Never
	if t.period > 0 {
		t.idle = now + Time(t.period)
	}
}

// received restarts the idle time for a record that is here completely.
func (t *timers) received(c *Conn, now Time) {
	t.sentSince = false
	t.restart(now)
	if c.cfg.KeepAlive > 0 && c.ready {
		t.keep = now + Time(c.cfg.KeepAlive)
		if t.period > 0 {
			t.keep = now + Time(min(c.cfg.KeepAlive, t.period/2))
		}
	}
}

// sent restarts the idle time for a record that was sent, once for each that
// was received: a peer that is gone is not kept alive by our own words.
func (t *timers) sent(c *Conn, now Time) {
	if !t.sentSince {
		t.sentSince = true
		t.restart(now)
	}
}

// closed leaves the time that a close waits for the peer.
func (t *timers) closed(now Time) {
	t.idle, t.keep = Never, Never
	t.linger = now + Time(linger)
}

// NextTimeout is when HandleTimeout must be called, Never if it need not be.
func (c *Conn) NextTimeout() Time {
	if c.over {
		return Never
	}
	return min(c.timers.idle, c.timers.keep, c.timers.linger)
}

// HandleTimeout does what is due at now; calling it early is harmless. An idle
// connection ends without a word to the peer.
func (c *Conn) HandleTimeout(now Time) {
	t := &c.timers
	switch {
	case c.over:
	case now >= t.linger:
		c.cutOff(nil)
	case now >= t.idle:
		c.cutOff(&Cause{Kind: Idle})
	case now >= t.keep:
		t.keep = Never
		c.Ping()
	}
}
