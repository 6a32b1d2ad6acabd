package cm

import (
	"container/heap"
	"math"
)

// timerHeap orders connections by when something is due.
type timerHeap []*conn

func (h timerHeap) Len() int           { return len(h) }
func (h timerHeap) Less(i, j int) bool { return h[i].due() < h[j].due() }
func (h timerHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i]; h[i].heap, h[j].heap = i, j }
func (h *timerHeap) Push(x any)        { c := x.(*conn); c.heap = len(*h); *h = append(*h, c) }

func (h *timerHeap) Pop() any {
	last := len(*h) - 1
	c := (*h)[last]
	(*h)[last], c.heap = nil, -1
	*h = (*h)[:last]
	return c
}

// set puts c where its times say.
func (h *timerHeap) set(c *conn) {
	switch due := c.due(); {
	case due == 0:
		h.remove(c)
	case c.heap < 0:
		heap.Push(h, c)
	default:
		heap.Fix(h, c.heap)
	}
}

func (h *timerHeap) remove(c *conn) {
	if c.heap >= 0 {
		heap.Remove(h, c.heap)
	}
}

// due is when c's first timer expires, 0 if none runs.
func (c *conn) due() Time {
	if c.resend != 0 && (c.giveUp == 0 || c.resend < c.giveUp) {
		return c.resend
	}
	return c.giveUp
}

// NextTimeout is when HandleTimeout must be called; false if never. It may
// change with every other call.
func (m *Manager) NextTimeout() (Time, bool) {
	first := Time(math.MaxInt64)
	if len(m.timers) > 0 {
		first = m.timers[0].due()
	}
	for i := range m.held {
		first = min(first, m.held[i].due)
	}
	return first, first != math.MaxInt64
}

// HandleTimeout runs the timers that expired by now; calling it early is
// harmless. Datagrams that arrived before now should be handed to Receive
// first. Next: Transmit, Event, NextTimeout.
func (m *Manager) HandleTimeout(now Time) {
	m.serveHeld(now)
	for len(m.timers) > 0 && m.timers[0].due() <= now {
		m.expire(m.timers[0], now)
	}
}

// expire runs c's expired timer.
func (m *Manager) expire(c *conn, now Time) {
	switch {
	case c.state == TimeWait:
		m.leaveTimeWait(c)
	case c.state == Established:
		m.probe(c, now)
	case c.giveUp > now:
		m.repeat(c, now)
	case c.tries < 2:
		// A peer is given up only after it was asked twice, so that a host that
		// slept does not take itself for a silent peer.
		c.giveUp = now + Time(m.life(c, m.patience(c)))
		m.repeat(c, now)
	default:
		m.gaveUp(c, now)
	}
}

// send sends the message in c.sending, and again until stop is called or the
// peer is given up.
func (m *Manager) send(c *conn, now Time) {
	whole := m.patience(c)
	c.interval = min(m.cfg.FirstRetry, whole)
	c.tries, c.sentAt, c.replay = 1, now, false
	c.resend = now + Time(c.interval)
	all := whole * Duration(c.retries+1)
	c.giveUp = now + Time(m.life(c, all))
	c.limit = now + Time(all+span(m.cfg.MRATimeout)*Duration(c.retries+1))
	m.timers.set(c)
	m.out = append(m.out, c.sending)
}

// patience is how long one answer is waited for. The way is not counted for a
// question of SIDR, as with Linux (cma.c: cma_resolve_ib_udp).
func (m *Manager) patience(c *conn) Duration {
	if c.sidr {
		return span(c.timeout)
	}
	return m.cfg.patience(c.timeout)
}

// life returns the time to wait for an answer: d, or less for a REP whose
// receiver has not shown itself. An MRA to it shows that its receiver is there,
// and knows this side's identifier: from then on the peer has the time that it
// asked for.
func (m *Manager) life(c *conn, d Duration) Duration {
	if c.state == RepSent {
		return min(d, m.cfg.ReplyLife)
	}
	return d
}

// repeat sends c.sending again.
func (m *Manager) repeat(c *conn, now Time) {
	c.tries++
	c.sentAt = 0
	c.interval = min(2*c.interval, m.patience(c))
	c.resend = now + Time(c.interval)
	m.timers.set(c)
	if c.state == RepSent && !m.spend() {
		return
	}
	m.counters.Retries++
	m.out = append(m.out, c.sending)
}

// maxCredit is the number of datagrams, 16 KiB together, that may leave over
// any time, beyond those that came, to addresses that have not shown a peer. It
// covers the losses of ordinary handshakes.
const maxCredit = 64

// earn follows the taking of a datagram, before which sent were to leave.
func (m *Manager) earn(sent int) {
	if len(m.out) == sent {
		m.credit = min(m.credit+1, maxCredit)
	}
}

// spend takes one from the credit and reports whether there was one. A datagram
// that comes and is not answered earns credit; a datagram that leaves unasked
// to a peer that has not confirmed yet costs it. So a sender of REQs in the
// name of others does not make this side send them more than was sent here (RFC
// 9000, 8.1, has the same aim).
//
// A peer that got no REP does not depend on credit: it repeats its REQ, and
// each copy is answered. A peer whose RTU was lost depends on it, during a
// flood, until its first data packet comes: without credit the connection ends
// when the REP's life does (Config.ReplyLife).
func (m *Manager) spend() bool {
	if m.credit == 0 {
		return false
	}
	m.credit--
	return true
}

// roundTrip is how long the answer took that has come now, 0 if that is not
// known: it may be to any copy of a repeated message, or its program took its
// time.
func (c *conn) roundTrip(now Time) Duration {
	if c.sentAt == 0 {
		return 0
	}
	return Duration(now - c.sentAt)
}

// postpone gives the peer the time that it asked for in an MRA, from now on. It
// is still asked, less and less often: an answer may be lost.
func (m *Manager) postpone(c *conn, now Time, by Duration) {
	c.sentAt = 0
	c.giveUp = max(c.giveUp, min(now+Time(by+m.cfg.patience(c.timeout)), c.limit))
	m.timers.set(c)
}

// stop ends repeating.
func (m *Manager) stop(c *conn) {
	c.resend, c.giveUp, c.limit = 0, 0, 0
	m.timers.set(c)
}
