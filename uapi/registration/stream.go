package registration

import (
	"context"
	"io"
	"time"

	"github.com/rdmashim/rdmashim/uapi/qmux"
)

// SendStream is the sending half of a stream; its methods do what those of
// qmux.SendStream do.
type SendStream interface {
	StreamID() qmux.StreamID
	Write(p []byte) (int, error)
	Close() error
	CancelWrite(qmux.StreamErrorCode)
	SetWriteDeadline(time.Time) error
	Context() context.Context
}

// ReceiveStream is the receiving half of a stream; its methods do what those of
// qmux.ReceiveStream do.
type ReceiveStream interface {
	StreamID() qmux.StreamID
	Read(p []byte) (int, error)
	CancelRead(qmux.StreamErrorCode)
	SetReadDeadline(time.Time) error
}

// Stream is a bidirectional stream. Close closes its sending half.
type Stream interface {
	SendStream
	ReceiveStream
	SetDeadline(time.Time) error
}

// These put the connection's names on the errors of a session's streams.
type (
	sendStream struct {
		SendStream
		c *Conn
	}
	receiveStream struct {
		ReceiveStream
		c *Conn
	}
	stream struct {
		Stream
		c *Conn
	}
)

func (s *sendStream) Write(p []byte) (int, error) {
	n, err := s.SendStream.Write(p)
	return n, s.c.failed("write", err)
}

func (s *sendStream) Close() error { return s.c.failed("close", s.SendStream.Close()) }

func (s *receiveStream) Read(p []byte) (int, error) {
	n, err := s.ReceiveStream.Read(p)
	return n, s.c.failed("read", err)
}

func (s *stream) Write(p []byte) (int, error) {
	n, err := s.Stream.Write(p)
	return n, s.c.failed("write", err)
}

func (s *stream) Close() error { return s.c.failed("close", s.Stream.Close()) }

func (s *stream) Read(p []byte) (int, error) {
	n, err := s.Stream.Read(p)
	return n, s.c.failed("read", err)
}

var (
	_ io.ReadWriter = Stream(nil)
	_ Stream        = (*qmux.Stream)(nil)
	_ SendStream    = (*qmux.SendStream)(nil)
	_ ReceiveStream = (*qmux.ReceiveStream)(nil)
)
