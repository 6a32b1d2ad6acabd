package core

import "github.com/rdmashim/rdmashim/uapi/qmux/wire"

// sendHalf is the sending half of a stream.
//
// lent is the program's memory, and never copied but into a record. fin says
// that the stream ends behind it. ended is set with the last byte or the reset;
// from then on lent is empty.
type sendHalf struct {
	lent     []byte
	dropped  int // bytes of lent that a reset or the connection's end dropped
	fin      bool
	credit   credit // its sent is the stream's length so far
	reliable uint64 // bytes that a reset does not take back
	code     uint64 // of the reset
	cut      bool   // it was reset
	remote   bool   // because the peer asked for it
	unknown  bool   // … which the program does not know yet
	ended    bool   // its last frame is sent
	over     bool   // and the program knows; also where there is no such half
}

// sendable reports whether the stream has data and credit of its own.
func (s *stream) sendable() bool { return len(s.send.lent) > 0 && s.send.credit.left() > 0 }

// Write lends p to the stream, and ends the stream behind it if fin is set. The
// caller leaves p alone until EventWritable, when Unsent tells what became of
// it, or takes it back with Withdraw. A further Write before that is ErrBusy.
// The error is a *StreamError after a reset or the peer's STOP_SENDING,
// ErrFinished behind the end, ErrNoStream, ErrDirection, or the Cause.
func (c *Conn) Write(id wire.StreamID, p []byte, fin bool) error {
	s, err := c.find(id, true)
	if err != nil {
		return err
	}
	h := &s.send
	switch {
	case h.cut:
		c.known(s)
		return &StreamError{Stream: id, Code: h.code, Remote: h.remote}
	case h.fin || h.over:
		return ErrFinished
	case c.cause != nil:
		return c.cause
	case len(h.lent) > 0:
		return ErrBusy
	}
	h.lent, h.dropped, h.fin = p, 0, fin
	if len(p) == 0 {
		h.lent = nil
		if fin {
			c.want(s, dueFin)
		}
		return nil
	}
	c.supply(s)
	return nil
}

// supply lets a stream with data stand where it belongs: in the scheduler, or
// before its exhausted credit.
func (c *Conn) supply(s *stream) {
	switch {
	case s.sendable():
		c.sched.push(s)
	case len(s.send.lent) > 0 && s.send.credit.blocked():
		c.want(s, dueBlocked)
	}
}

// Unsent is how many bytes of the last Write are not in a record, and, with the
// error that Write would return, never will be.
func (c *Conn) Unsent(id wire.StreamID) (int, error) {
	s := c.streams[id]
	switch {
	case s == nil:
		return 0, nil
	case s.send.cut:
		c.known(s)
		return s.send.dropped, &StreamError{Stream: id, Code: s.send.code, Remote: s.send.remote}
	case s.send.dropped > 0:
		return s.send.dropped, c.failed()
	}
	return len(s.send.lent), nil
}

// drop gives lent bytes back that will not be sent.
func (h *sendHalf) drop() { h.dropped, h.lent = h.dropped+len(h.lent), nil }

// Withdraw takes the unsent bytes of the last Write back, and the stream's end
// if it stood behind them. It returns how many they were.
func (c *Conn) Withdraw(id wire.StreamID) int {
	s := c.streams[id]
	if s == nil || len(s.send.lent) == 0 {
		return 0
	}
	n := len(s.send.lent)
	s.send.lent, s.send.fin = nil, false
	return n
}

// SetReliable makes the bytes sent so far arrive even if the stream is reset.
// It returns false if the peer does not know such resets.
func (c *Conn) SetReliable(id wire.StreamID) bool {
	s := c.streams[id]
	if s == nil || !c.resetAt() {
		return false
	}
	s.send.reliable = s.send.credit.sent
	return true
}

// resetAt reports whether both sides know RESET_STREAM_AT.
func (c *Conn) resetAt() bool { return c.cfg.Draft.ResetStreamAt() && c.peer.ResetStreamAt }

// Reset ends the sending half without its end; unsent bytes are dropped. On a
// half whose end is sent, or that was reset, it changes nothing. The error is
// ErrNoStream, ErrDirection or the Cause.
func (c *Conn) Reset(id wire.StreamID, code uint64) error {
	s, err := c.find(id, true)
	if err != nil {
		return err
	}
	c.known(s)
	if c.cause == nil {
		c.cut(s, code)
	}
	return c.failed()
}

// cut resets the sending half.
func (c *Conn) cut(s *stream, code uint64) {
	h := &s.send
	if h.cut || h.ended || h.over {
		return
	}
	h.cut, h.code = true, code&wire.MaxVarint
	h.drop()
	s.due &^= dueFin | dueBlocked
	c.want(s, dueReset)
}

// known notes that the program knows how the half ended.
func (c *Conn) known(s *stream) {
	s.send.unknown = false
	s.send.over = s.send.over || s.send.ended
	c.retire(s)
}

// sentEnd notes that the half's last frame is in a record.
func (c *Conn) sentEnd(s *stream) {
	s.send.ended = true
	s.send.over = !s.send.unknown
	c.retire(s)
}

// receiveStop handles STOP_SENDING: the half is reset with the peer's code
// (RFC 9000 section 3.5).
func (c *Conn) receiveStop(now Time, f *wire.Frame) error {
	s, err := c.half(now, f.Stream, false)
	if err != nil || s == nil || s.send.cut || s.send.ended {
		c.wasted()
		return err
	}
	s.send.remote = true
	s.send.unknown = !s.send.fin || len(s.send.lent) > 0 // else it waits for nothing
	c.cut(s, f.Code)
	c.queueStreamEvent(s, EventWritable)
	return nil
}

// receiveCredit handles MAX_STREAM_DATA.
func (c *Conn) receiveCredit(now Time, f *wire.Frame) error {
	s, err := c.half(now, f.Stream, false)
	if err != nil || s == nil || !s.send.credit.raise(f.Limit) {
		c.wasted()
		return err
	}
	s.due &^= dueBlocked
	c.supply(s)
	return nil
}
