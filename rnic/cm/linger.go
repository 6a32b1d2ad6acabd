package cm

import "container/list"

// lingering is a list of connections that are over, or destroyed by their
// owners and on their way there, the oldest first.
type lingering struct{ list.List }

func (l *lingering) add(c *conn) {
	if c.linger == nil {
		c.linger = l.PushBack(c)
	}
}

func (l *lingering) remove(c *conn) {
	if c.linger != nil {
		l.Remove(c.linger)
		c.linger = nil
	}
}

// lingers puts c on the list. Beyond its bound the oldest leaves before its
// time.
func (m *Manager) lingers(c *conn) {
	m.linger.add(c)
	for m.linger.Len() > m.cfg.MaxLinger {
		m.counters.LingerEvicted++
		m.leave(m.linger.Front().Value.(*conn))
	}
}

// leave ends lingering, of whatever kind.
func (m *Manager) leave(c *conn) {
	if c.state == TimeWait {
		m.leaveTimeWait(c)
	} else {
		m.forget(c)
	}
}

// enterTimeWait ends a connection whose identifiers may still be named by
// packets on their way (IBA 12.9.8.4). It lasts one local ACK timeout, which
// covers twice a packet's life and the peer's delay.
func (m *Manager) enterTimeWait(c *conn, now Time) {
	m.answered(c)
	m.unregisterQPN(c)
	c.state, c.replay = TimeWait, false
	c.resend, c.limit = 0, 0
	wait := Duration(max(c.attr.Timeout.Nanoseconds(), 1))
	c.giveUp = now + Time(min(wait, span(m.cfg.MRATimeout))) // however long a time the peer claims
	m.timers.set(c)
	m.lingers(c)
}

// refused keeps a connection that this side rejected for as long as the peer,
// if the REJ was lost, repeats the message that it answered: the REJ is
// replayed then. Without that, a program would see one REQ as several.
func (m *Manager) refused(c *conn, now Time) {
	m.enterTimeWait(c, now)
	c.replay, c.quiet = true, true
	m.remember(c, now)
}

// remember keeps c for twice the longest interval in which the peer repeats.
func (m *Manager) remember(c *conn, now Time) {
	c.giveUp = now + Time(2*m.cfg.patience(c.timeout))
	m.timers.set(c)
}

func (m *Manager) leaveTimeWait(c *conn) {
	m.linger.remove(c)
	m.idle(c)
	if !c.quiet {
		m.report(c, Event{Kind: TimeWaitExit})
	}
}

// idle ends a connection that left nothing on its way that matters.
func (m *Manager) idle(c *conn) {
	m.answered(c)
	m.unregister(c)
	m.stop(c)
	c.state = Idle
	if c.orphan {
		m.forget(c)
	}
}
