package qmux

import (
	"context"
	"time"
)

// Stream is a bidirectional stream. Its halves end apart.
type Stream struct {
	send    SendStream
	receive ReceiveStream
}

// stream makes the program's face of a stream. The core is locked.
func (c *Conn) stream(id StreamID) *Stream {
	s := &Stream{
		send:    SendStream{c: c, id: id, ready: make(chan struct{}, 1), deadline: newDeadline()},
		receive: ReceiveStream{c: c, id: id, ready: make(chan struct{}, 1), deadline: newDeadline()},
	}
	c.streams[id] = s
	return s
}

// StreamID is the stream's number.
func (s *Stream) StreamID() StreamID { return s.send.id }

// Read is [ReceiveStream.Read].
func (s *Stream) Read(p []byte) (int, error) { return s.receive.Read(p) }

// CancelRead is [ReceiveStream.CancelRead].
func (s *Stream) CancelRead(code StreamErrorCode) { s.receive.CancelRead(code) }

// SetReadDeadline is [ReceiveStream.SetReadDeadline].
func (s *Stream) SetReadDeadline(t time.Time) error { return s.receive.SetReadDeadline(t) }

// Write is [SendStream.Write].
func (s *Stream) Write(p []byte) (int, error) { return s.send.Write(p) }

// Close is [SendStream.Close]: the receiving half stays.
func (s *Stream) Close() error { return s.send.Close() }

// CancelWrite is [SendStream.CancelWrite].
func (s *Stream) CancelWrite(code StreamErrorCode) { s.send.CancelWrite(code) }

// SetWriteDeadline is [SendStream.SetWriteDeadline].
func (s *Stream) SetWriteDeadline(t time.Time) error { return s.send.SetWriteDeadline(t) }

// SetReliableBoundary is [SendStream.SetReliableBoundary].
func (s *Stream) SetReliableBoundary() { s.send.SetReliableBoundary() }

// SetPriority is [SendStream.SetPriority].
func (s *Stream) SetPriority(urgency int8, incremental bool) {
	s.send.SetPriority(urgency, incremental)
}

// Context is [SendStream.Context].
func (s *Stream) Context() context.Context { return s.send.Context() }

// SetDeadline sets both deadlines. The error is always nil.
func (s *Stream) SetDeadline(t time.Time) error {
	_ = s.receive.SetReadDeadline(t)
	return s.send.SetWriteDeadline(t)
}
