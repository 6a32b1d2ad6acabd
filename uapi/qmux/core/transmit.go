package core

import (
	"math"

	"github.com/rdmashim/rdmashim/uapi/qmux/wire"
)

// longestLaid bounds in bytes what a record has in Transmit's buffer. The lent
// data at its end may be more.
const longestLaid = 64<<10 - 8

// Buffer is the least length of Transmit's buffer: a record, as far as it is
// laid there, and its Size.
func (c *Conn) Buffer() int {
	return min(c.cfg.MaxRecord, longestLaid) + wire.VarintLen(uint64(c.cfg.MaxRecord))
}

// Transmit writes the next record, its Size included, to the start of buf and
// returns its length: 0 if nothing is to be sent now. The record counts as
// sent. buf has Buffer bytes or more. Control frames go first, then datagrams,
// then streams by priority, those of one priority a record each.
func (c *Conn) Transmit(now Time, buf []byte) int {
	n, _, _ := c.transmit(now, buf, math.MaxInt)
	return n
}

// TransmitLent is Transmit, and leaves out the data at the record's end if it
// is long: lent is the memory of the Write of that stream, which follows the n
// bytes on the byte stream. It counts as sent, but the Write's caller must
// leave it alone until the byte stream has it.
func (c *Conn) TransmitLent(now Time, buf []byte) (n int, lent []byte, of wire.StreamID) {
	return c.transmit(now, buf, leastLent)
}

// transmit is TransmitLent, where data of least bytes is long.
func (c *Conn) transmit(now Time, buf []byte, least int) (n int, lent []byte, of wire.StreamID) {
	if c.outEnded {
		return 0, nil, 0
	}
	room := c.room()
	k := wire.VarintLen(uint64(room))
	c.least = least
	body := c.fill(now, buf[k:k:k+c.laid()])
	if lent = c.lent; lent != nil {
		of = c.lender.id
		c.lent, c.lender = nil, nil
	}
	n = len(body) + len(lent)
	if n == 0 {
		return 0, nil, 0
	}
	if m := wire.VarintLen(uint64(n)); m < k {
		copy(buf[m:], body)
		k = m
	}
	wire.AppendVarint(buf[:0], uint64(n))
	c.counters.RecordsSent++
	c.counters.BytesSent += uint64(k + n)
	c.timers.sent(c, now)
	return k + len(body), lent, of
}

// HasOutput reports whether Transmit may have a record. It errs only by true.
func (c *Conn) HasOutput() bool {
	switch {
	case c.outEnded:
		return false
	case !c.began || c.cause != nil || len(c.control) > 0:
		return true
	case !c.ready:
		return false
	case c.raiseData || c.ping.answer || c.ping.due || c.datagrams.waits > 0:
		return true
	}
	for i := range c.kinds {
		if k := &c.kinds[i]; k.raise || k.wanted && k.blockedAt != k.limit+1 {
			return true
		}
	}
	return (c.credit.left() > 0 || c.credit.blocked()) && c.starved()
}

// room is how many bytes of frames a record may have.
func (c *Conn) room() int {
	if !c.ready {
		return wire.DefaultMaxRecord
	}
	return int(min(c.peer.MaxRecordSize, uint64(c.cfg.MaxRecord)))
}

// laid is how many bytes of frames a record may have in Transmit's buffer.
func (c *Conn) laid() int { return min(c.room(), longestLaid) }

// fill appends the frames that are due to b, as far as its capacity goes.
func (c *Conn) fill(now Time, b []byte) []byte {
	if !c.began {
		p := c.cfg.parameters()
		b, c.began = c.put(b, wire.Frame{Type: c.cfg.Draft.Parameters(), Data: p.Append(nil)})
	}
	if c.cause == nil && c.ready {
		b = c.fillConnection(now, b)
	}
	b, done := c.fillControl(now, b)
	switch {
	case !done:
		return b
	case c.cause != nil:
		return c.fillClose(b)
	case c.ready:
		b = c.fillDatagrams(b)
		b = c.fillStreams(b)
	}
	return b
}

// put appends a frame if there is room for it, and reports whether it did.
func (c *Conn) put(b []byte, f wire.Frame) ([]byte, bool) {
	c.out = f
	if len(b)+c.out.Length() > cap(b) {
		return b, false
	}
	return c.emit(b), true
}

// emit appends the frame in out.
func (c *Conn) emit(b []byte) []byte {
	c.counters.FramesSent.Add(c.out.Type)
	return c.out.Append(b)
}

// fillConnection appends the frames of the whole connection: pings and credit.
// A record that begins with it has room for all of it.
func (c *Conn) fillConnection(now Time, b []byte) []byte {
	ok := true
	if c.raiseData {
		w := c.window
		w.raise(now, c.ping.rtt)
		if b, ok = c.put(b, wire.Frame{Type: wire.TypeMaxData, Limit: w.limit}); ok {
			c.window, c.raiseData = w, false
			c.measure(now, &c.window)
		}
	}
	for i := range c.kinds {
		k := &c.kinds[i]
		uni := wire.StreamID(i).Uni()
		switch {
		case k.raise:
			f := wire.Frame{Type: wire.TypeMaxStreamsBidi, Limit: min(k.retired+k.most, wire.MaxStreams)}
			if uni {
				f.Type = wire.TypeMaxStreamsUni
			}
			if b, ok = c.put(b, f); ok {
				k.limit, k.raise = f.Limit, false
			}
		case k.wanted && k.blockedAt != k.limit+1:
			f := wire.Frame{Type: wire.TypeStreamsBlockedBidi, Limit: k.limit}
			if uni {
				f.Type = wire.TypeStreamsBlockedUni
			}
			if b, ok = c.put(b, f); ok {
				k.blockedAt = k.limit + 1
			}
		}
	}
	if c.credit.blocked() && c.starved() {
		if b, ok = c.put(b, wire.Frame{Type: wire.TypeDataBlocked, Limit: c.credit.limit}); ok {
			c.credit.blockedAt = c.credit.limit + 1
		}
	}
	return c.fillPing(now, b)
}

// starved reports whether a stream has data that only the connection's credit
// holds back.
func (c *Conn) starved() bool {
	s := c.sched.pop()
	if s != nil {
		c.sched.unpop(s)
	}
	return s != nil
}

// fillControl appends the control frames of streams. It reports whether these
// are all.
func (c *Conn) fillControl(now Time, b []byte) ([]byte, bool) {
	for i, s := range c.control {
		var ok bool
		if b, ok = c.fillStreamControl(now, b, s); !ok {
			n := copy(c.control, c.control[i:])
			clear(c.control[n:])
			c.control = c.control[:n]
			return b, false
		}
		s.listed = false
		c.control[i] = nil
	}
	c.control = c.control[:0]
	return b, true
}

// fillStreamControl appends the control frames of one stream.
func (c *Conn) fillStreamControl(now Time, b []byte, s *stream) ([]byte, bool) {
	for s.due != 0 {
		d := s.due & -s.due
		f := wire.Frame{Stream: s.id}
		h, w := &s.send, s.recv.window
		switch d {
		case dueReset:
			f.Type, f.Code, f.FinalSize = wire.TypeResetStream, h.code, h.credit.sent
			if c.resetAt() && h.reliable > 0 {
				f.Type, f.ReliableSize = wire.TypeResetStreamAt, h.reliable
			}
		case dueStop:
			f.Type, f.Code = wire.TypeStopSending, s.recv.stopCode
		case dueWindow:
			w.raise(now, c.ping.rtt)
			f.Type, f.Limit = wire.TypeMaxStreamData, w.limit
		case dueBlocked:
			f.Type, f.Limit = wire.TypeStreamDataBlocked, h.credit.limit
		case dueFin:
			f.Type, f.Offset = wire.StreamType(h.credit.sent > 0, true, true), h.credit.sent
		}
		var ok bool
		if b, ok = c.put(b, f); !ok {
			return b, false
		}
		s.due &^= d
		switch d {
		case dueWindow:
			s.recv.window = w
			c.window.size = max(c.window.size, min(w.size+w.size/2, c.window.max))
			c.measure(now, &s.recv.window)
		case dueBlocked:
			h.credit.blockedAt = h.credit.limit + 1
		case dueReset, dueFin:
			c.sentEnd(s)
		}
	}
	return b, true
}

// fillStreams appends data of streams until the record is full.
func (c *Conn) fillStreams(b []byte) []byte {
	for c.credit.left() > 0 {
		s := c.sched.pop()
		if s == nil {
			break
		}
		h := &s.send
		f := wire.Frame{Type: wire.StreamType(h.credit.sent > 0, false, false), Stream: s.id, Offset: h.credit.sent}
		head := len(b) + f.Length()
		room := cap(b) - head
		if room <= 0 {
			c.sched.unpop(s)
			break
		}
		n := int(min(uint64(len(h.lent)), uint64(c.room()-head), h.credit.left(), c.credit.left()))
		lend := n >= c.least
		if !lend {
			n = min(n, room)
		}
		fin := h.fin && n == len(h.lent)
		full := lend || n+wire.VarintLen(uint64(n)) > room // it ends the record, and needs no length
		f.Type = wire.StreamType(f.Offset > 0, !full, fin)
		if lend {
			c.lent, c.lender = h.lent[:n:n], s
		} else {
			f.Data = h.lent[:n]
		}
		c.out = f
		b = c.emit(b)
		c.out.Data = nil
		c.sent(s, n, fin)
		if full {
			break
		}
	}
	return b
}

// sent notes that the next n bytes of a stream are in a record.
func (c *Conn) sent(s *stream, n int, fin bool) {
	h := &s.send
	h.lent = h.lent[n:]
	h.credit.sent += uint64(n)
	c.credit.sent += uint64(n)
	c.counters.DataSent += uint64(n)
	if len(h.lent) == 0 {
		h.lent = nil
		c.queueStreamEvent(s, EventWritable)
	}
	c.supply(s)
	if fin {
		c.sentEnd(s)
	}
}
