package core

import (
	"errors"
	"strings"

	"github.com/rdmashim/rdmashim/uapi/qmux/wire"
)

// Close ends the connection with a code and a reason of the program, cut to
// 1 KiB. Ends and resets of streams that wait still go before it; lent bytes
// are the caller's again. The connection is over when the peer has ended its
// stream too, or after 3 s. On a connection that has ended it changes nothing.
func (c *Conn) Close(now Time, code uint64, reason string) {
	c.end(now, &Cause{Kind: Application, Code: code & wire.MaxVarint, Reason: reason})
}

// refuse ends the connection for a mistake of the peer.
func (c *Conn) refuse(now Time, t wire.FrameType, err error) {
	if c.cause != nil {
		return // frames behind a close are not judged
	}
	cause := &Cause{Kind: Transport, Code: uint64(wire.InternalError), Frame: t, Reason: strings.TrimPrefix(err.Error(), "qmux: ")}
	var e *wire.Error
	switch {
	case err == errTwice || err == errFirst:
		cause.Code = uint64(c.cfg.Draft.Misuse())
	case errors.As(err, &e):
		cause.Code = uint64(e.Code)
	}
	clear(c.control)
	c.control = c.control[:0]
	c.end(now, cause)
}

// end ends the connection from this side.
func (c *Conn) end(now Time, cause *Cause) {
	if c.cause != nil {
		return
	}
	cause.Reason = strings.ToValidUTF8(cause.Reason[:min(len(cause.Reason), maxReason)], "")
	f := wire.Frame{Type: wire.TypeConnectionClose, Code: cause.Code, Trigger: cause.Frame, Data: []byte(cause.Reason)}
	if cause.Kind == Application {
		f.Type = wire.TypeApplicationClose
	}
	c.closing = f
	c.markEnded(cause)
	c.timers.closed(c, now)
}

// markEnded sets the cause, and gives the program its memory back.
func (c *Conn) markEnded(cause *Cause) {
	c.cause = cause
	for _, s := range c.streams {
		s.send.drop()
		s.due &= dueFin | dueReset
	}
	c.queueEvent(EventClosed)
}

// cutOff ends the connection with nothing more to be sent or waited for.
func (c *Conn) cutOff(cause *Cause) {
	if c.cause == nil {
		c.markEnded(cause)
	}
	c.outEnded, c.over = true, true
}

// fillClose appends the CONNECTION_CLOSE, behind which nothing is sent.
func (c *Conn) fillClose(b []byte) []byte {
	b, ok := c.put(b, c.closing)
	c.outEnded = ok
	c.over = ok && c.inEnded
	return b
}

// receiveClose handles CONNECTION_CLOSE of either form. The peer has ended its
// stream behind it, and waits for our end only.
func (c *Conn) receiveClose(f *wire.Frame) {
	cause := &Cause{
		Kind: Transport, Remote: true, Code: f.Code, Frame: f.Trigger,
		Reason: strings.ToValidUTF8(string(f.Data[:min(len(f.Data), maxReason)]), ""),
	}
	if f.Type == wire.TypeApplicationClose {
		cause.Kind = Application
	}
	c.cutOff(cause)
}

// ReceiveEnd says that the peer's stream has ended.
func (c *Conn) ReceiveEnd() {
	c.inEnded = true
	if c.cause == nil || c.outEnded {
		c.cutOff(&Cause{Kind: Ended, Remote: true})
	}
}

// Abort says that the byte stream broke, in either direction.
func (c *Conn) Abort() { c.cutOff(&Cause{Kind: Lost}) }
