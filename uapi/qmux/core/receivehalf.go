package core

import (
	"io"

	"github.com/rdmashim/rdmashim/uapi/qmux/wire"
)

// receiveHalf is the receiving half of a stream.
//
// Data arrives in order, so that the end of a stream comes behind all of it; a
// reset with a reliable size may come before it. The connection's window is
// charged when bytes arrive, and for a reset with the rest up to final; it is
// given back when the program reads them, or never will.
//
// lent is the memory of a reader that waits: the first got bytes of it are
// unread data, and come before those in unread.
type receiveHalf struct {
	lent      []byte
	got       int
	unread    fifo
	window    window
	final     uint64 // the stream's length, once ended
	goal      uint64 // how many bytes of it arrive
	resetCode uint64
	stopCode  uint64
	ended     bool // final is known
	reset     bool // by the peer
	stopped   bool // by the program
	over      bool // and the program knows; also where there is no such half
}

// AwaitRead lends p, of a Read that returned 0 and nil, to the stream: what
// comes next is put there. The caller leaves p alone until it calls Read with
// the same p, behind EventReadable or before, which ends the loan.
func (c *Conn) AwaitRead(id wire.StreamID, p []byte) {
	if s := c.streams[id]; s != nil && !s.recv.stopped {
		s.recv.lent = p
	}
}

// clear drops all unread data and returns how many bytes that was.
func (h *receiveHalf) clear(pool *blocks) uint64 {
	n := h.got
	h.lent, h.got = nil, 0
	return uint64(n + h.unread.clear(pool))
}

// Read moves bytes that arrived to p. It returns 0 and nil when there are none
// yet; EventReadable says when to try again. io.EOF comes at the stream's end,
// with the last bytes or after them; a *StreamError after the bytes that a
// reset left, or after Stop; the Cause of a connection that has ended, when all
// that had arrived is read. The other errors are ErrNoStream and ErrDirection.
func (c *Conn) Read(id wire.StreamID, p []byte) (int, error) {
	s, err := c.find(id, false)
	if err != nil {
		return 0, err
	}
	h := &s.recv
	if h.stopped {
		return 0, &StreamError{Stream: id, Code: h.stopCode}
	}
	n := h.got
	h.lent, h.got = nil, 0
	n += h.unread.read(p[n:], &c.blocks)
	if n > 0 {
		c.consume(s, uint64(n))
	}
	switch {
	case h.ended && h.window.consumed >= h.goal && !h.reset:
		c.finish(s)
		return n, io.EOF
	case n > 0:
		return n, nil
	case h.ended && h.window.consumed >= h.goal:
		c.finish(s)
		return 0, &StreamError{Stream: id, Code: h.resetCode, Remote: true}
	}
	return 0, c.failed()
}

// Stop asks the peer to send no more; bytes that come all the same are dropped.
// On a half that is over it changes nothing. The error is ErrNoStream,
// ErrDirection or the Cause.
func (c *Conn) Stop(id wire.StreamID, code uint64) error {
	s, err := c.find(id, false)
	if err != nil {
		return err
	}
	h := &s.recv
	if h.stopped || h.over {
		return c.failed()
	}
	h.stopped, h.stopCode = true, code&wire.MaxVarint
	s.due &^= dueWindow
	c.consume(s, h.clear(&c.blocks))
	switch {
	case h.ended && h.window.received >= h.goal:
		c.finish(s)
	case c.cause == nil:
		c.want(s, dueStop)
	}
	return c.failed()
}

// finish notes that the program knows the half's end, or has stopped it.
func (c *Conn) finish(s *stream) {
	s.recv.over = true
	s.due &^= dueStop | dueWindow
	c.retire(s)
}

// consume gives credit back for bytes that need no memory any more.
func (c *Conn) consume(s *stream, n uint64) {
	h := &s.recv
	h.window.consumed += n
	c.window.consumed += n
	if h.window.low() && !h.ended && !h.stopped {
		c.want(s, dueWindow)
	}
	c.raiseData = c.raiseData || c.window.low()
}

// receiveStream handles STREAM.
func (c *Conn) receiveStream(now Time, f *wire.Frame) error {
	s, err := c.admit(now, f, uint64(len(f.Data)))
	if s != nil {
		c.deliver(s, f.Data)
	}
	return err
}

// admit takes in the fields of STREAM, with data of size bytes, which deliver
// takes then. It returns nil if they are to be dropped.
func (c *Conn) admit(now Time, f *wire.Frame, size uint64) (*stream, error) {
	s, err := c.half(now, f.Stream, true)
	if err != nil {
		return nil, err
	}
	if s == nil {
		c.wasted()
		return nil, nil
	}
	h := &s.recv
	end, fin := f.Offset+size, f.Type.Fin()
	switch {
	case h.ended && (end > h.final || fin && end != h.final):
		return nil, errFinalSize
	case h.ended && h.window.received >= h.goal && (h.reset || size == 0):
		c.wasted()
		return nil, nil
	case f.Offset != h.window.received:
		return nil, errGap
	case end > h.window.limit:
		return nil, errStreamCredit
	case !h.ended && size > c.window.limit-c.window.received:
		return nil, errCredit
	}
	if !h.ended {
		c.window.received += size
	}
	h.window.received = end
	c.counters.DataReceived += size
	if size == 0 && !fin {
		c.wasted()
	}
	if fin && !h.ended {
		h.ended, h.final, h.goal = true, end, end
		s.due &^= dueWindow
	}
	return s, nil
}

// deliver takes data that arrived in order, and looks whether it was the last.
func (c *Conn) deliver(s *stream, data []byte) {
	h := &s.recv
	if !h.stopped {
		arrived := len(data)
		if h.unread.size == 0 && len(h.lent) > 0 {
			n := copy(h.lent[h.got:], data)
			h.got += n
			data = data[n:]
		}
		h.unread.write(data, &c.blocks)
		if arrived > 0 || h.ended {
			c.queueStreamEvent(s, EventReadable)
		}
		return
	}
	c.consume(s, uint64(len(data)))
	if h.ended && h.window.received >= h.goal {
		c.finish(s)
	}
}

// receiveReset handles RESET_STREAM and RESET_STREAM_AT. The first has a
// reliable size of 0.
func (c *Conn) receiveReset(now Time, f *wire.Frame) error {
	s, err := c.half(now, f.Stream, true)
	if err != nil {
		return err
	}
	if f.Type == wire.TypeResetStreamAt && !c.cfg.Draft.ResetStreamAt() {
		return errUnnegotiated
	}
	if s == nil {
		c.wasted()
		return nil
	}
	h := &s.recv
	switch {
	case h.ended && f.FinalSize != h.final || f.FinalSize < h.window.received:
		return errFinalSize
	case h.reset && f.Code != h.resetCode:
		return errResetCode
	case f.FinalSize > h.window.limit:
		return errStreamCredit
	case !h.ended && f.FinalSize-h.window.received > c.window.limit-c.window.received:
		return errCredit
	case h.ended && (!h.reset || max(f.ReliableSize, h.window.received) >= h.goal):
		c.wasted() // all had arrived before, or the promise does not shrink
		return nil
	}
	if !h.ended {
		c.window.received += f.FinalSize - h.window.received
		h.ended, h.final, h.goal = true, f.FinalSize, f.FinalSize
	}
	h.reset, h.resetCode = true, f.Code
	if f.ReliableSize == 0 {
		c.consume(s, h.clear(&c.blocks))
	}
	goal := max(f.ReliableSize, h.window.received)
	c.window.consumed += h.goal - goal // will never come
	c.raiseData = c.raiseData || c.window.low()
	h.goal = goal
	s.due &^= dueWindow
	c.deliver(s, nil)
	return nil
}
