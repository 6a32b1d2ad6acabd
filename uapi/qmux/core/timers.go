package core

import "slices"

// TimerKind names what a timer is for.
type TimerKind uint8

// The timers that there are. Nothing is ever sent again, so that none waits for
// a loss or to send an acknowledgement.
const (
	IdleTimer  TimerKind = iota // ends a connection whose peer is silent
	KeepTimer                   // sends a ping
	CloseTimer                  // ends a close that the peer does not answer
	timerKinds
)

// String is the kind's word in figures.
func (k TimerKind) String() string { return [...]string{"idle", "keepalive", "close"}[k] }

// timers are the times at which something happens without the peer.
type timers struct {
	at     [timerKinds]Time // Never: not armed
	period Duration         // of idle time, 0: none

	sentSince bool // a record was sent since one was received
}

// arm sets when a timer fires.
func (c *Conn) arm(k TimerKind, at Time) {
	c.timers.at[k] = at
	c.counters.TimersArmed[k]++
}

// start sets the timers of a new connection.
func (t *timers) start(c *Conn, now Time) {
	t.period = c.cfg.IdleTimeout
	t.at = [timerKinds]Time{Never, Never, Never}
	t.restart(c, now)
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

func (t *timers) restart(c *Conn, now Time) {
	if t.period > 0 {
		c.arm(IdleTimer, now+Time(t.period))
	}
}

// received restarts the idle time for a record that is here completely.
func (t *timers) received(c *Conn, now Time) {
	t.sentSince = false
	t.restart(c, now)
	if c.cfg.KeepAlive > 0 && c.ready {
		after := c.cfg.KeepAlive
		if t.period > 0 {
			after = min(after, t.period/2)
		}
		c.arm(KeepTimer, now+Time(after))
	}
}

// sent restarts the idle time for a record that was sent, once for each that
// was received: a peer that is gone is not kept alive by our own words.
func (t *timers) sent(c *Conn, now Time) {
	if !t.sentSince {
		t.sentSince = true
		t.restart(c, now)
	}
}

// closed leaves the time that a close waits for the peer.
func (t *timers) closed(c *Conn, now Time) {
	t.at[IdleTimer], t.at[KeepTimer] = Never, Never
	c.arm(CloseTimer, now+Time(linger))
}

// NextTimeout is when HandleTimeout must be called, Never if it need not be.
func (c *Conn) NextTimeout() Time {
	if c.over {
		return Never
	}
	return slices.Min(c.timers.at[:])
}

// HandleTimeout runs the timers that expired by now; calling it early is
// harmless. An idle connection ends without a word to the peer.
func (c *Conn) HandleTimeout(now Time) {
	at := &c.timers.at
	switch {
	case c.over:
	case now >= at[CloseTimer]:
		c.cutOff(nil)
	case now >= at[IdleTimer]:
		c.cutOff(&Cause{Kind: Idle})
	case now >= at[KeepTimer]:
		at[KeepTimer] = Never
		c.Ping()
	}
}
