package core

import "github.com/rdmashim/rdmashim/uapi/qmux/wire"

// ping is QX_PING: the one source of round-trip times, and the proof that the
// peer lives.
type ping struct {
	due     bool
	last    uint64 // of the requests sent; they begin with 1
	sentAt  Time   // of the last request
	waiting bool   // the last request is not answered

	answer    bool // a response is to be sent
	requested bool // a request came
	sequence  uint64

	rtt    Duration // smoothed, 0 before the first
	minRTT Duration
}

// Ping sends a QX_PING with the next record.
func (c *Conn) Ping() { c.ping.due = true }

// RTT returns the smoothed and the shortest round trip of the pings, from
// Transmit to Receive; 0 before the first.
func (c *Conn) RTT() (smoothed, shortest Duration) { return c.ping.rtt, c.ping.minRTT }

// measure sends a ping along with credit from a window that may grow.
func (c *Conn) measure(now Time, w *window) {
	p := &c.ping
	if w.size < w.max && !p.waiting && (p.last == 0 || Duration(now-p.sentAt) >= pingEvery) {
		p.due = true
	}
}

// fillPing appends a response and a request. Requests that came meanwhile are
// answered at once, by the largest.
func (c *Conn) fillPing(now Time, b []byte) []byte {
	p := &c.ping
	ok := false
	if p.answer {
		if b, ok = c.put(b, wire.Frame{Type: wire.TypePong, Sequence: p.sequence}); ok {
			p.answer = false
		}
	}
	if p.due {
		if b, ok = c.put(b, wire.Frame{Type: wire.TypePing, Sequence: p.last + 1}); ok {
			p.due, p.waiting = false, true
			p.last++
			p.sentAt = now
			c.counters.PingsSent++
		}
	}
	return b
}

// receivePing handles a request.
func (c *Conn) receivePing(f *wire.Frame) error {
	p := &c.ping
	if p.requested && f.Sequence <= p.sequence && c.cfg.Draft.StrictPing() {
		return errPingOrder
	}
	p.sequence = max(p.sequence, f.Sequence)
	p.requested, p.answer = true, true
	c.counters.PingsReceived++
	c.wasted()
	return nil
}

// receivePong handles a response.
func (c *Conn) receivePong(now Time, f *wire.Frame) error {
	p := &c.ping
	switch {
	case f.Sequence > p.last || f.Sequence == 0:
		return errPongUnsent
	case f.Sequence < p.last || !p.waiting:
		c.wasted()
		return nil
	}
	p.waiting = false
	c.counters.RTTSamples++
	sample := max(Duration(now-p.sentAt), 1)
	if p.rtt == 0 {
		p.rtt, p.minRTT = sample, sample
		return nil
	}
	p.rtt += (sample - p.rtt) / 8
	p.minRTT = min(p.minRTT, sample)
	return nil
}
