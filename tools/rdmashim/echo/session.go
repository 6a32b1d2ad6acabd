package echo

import (
	"context"
	"errors"
	"io"
	"net"

	"github.com/rdmashim/rdmashim/tools/rdmashim/stream"
	"github.com/rdmashim/rdmashim/uapi/qmux"
)

// Stream is a bidirectional stream. Close ends this side's direction.
type Stream interface {
	io.ReadWriteCloser
	CancelRead(qmux.StreamErrorCode)
	CancelWrite(qmux.StreamErrorCode)
}

// cancel gives a stream up in both directions.
func cancel(s Stream) {
	s.CancelRead(1)
	s.CancelWrite(1)
}

// leave closes a stream's connection, if it has one of its own. Preconditions:
// both directions have ended.
func leave(s Stream) {
	if s, ok := s.(*byteStream); ok {
		_ = s.Conn.Close()
	}
}

// Session is where a program's streams come from.
type Session struct {
	many         // nil: a stream is a connection of its own
	open, accept func(context.Context) (Stream, error)
	openUni      func(context.Context) (io.WriteCloser, error)
	acceptUni    func(context.Context) (io.Reader, error)

	opening *opening   // beneath QMux, else nil
	qmux    *qmux.Conn // nil: another protocol
	plain   Stream     // that was accepted, where streams are connections
}

// many is what a connection of many streams has besides them.
type many interface {
	SendDatagram([]byte) error
	ReceiveDatagram(context.Context) ([]byte, error)
	CloseWithError(qmux.ApplicationErrorCode, string) error
	Context() context.Context
	RemoteAddr() net.Addr
}

// newSession is that of a connection of package qmux or registration.
func newSession[S Stream, W io.WriteCloser, R io.Reader](c interface {
	many
	OpenStreamSync(context.Context) (S, error)
	AcceptStream(context.Context) (S, error)
	OpenUniStreamSync(context.Context) (W, error)
	AcceptUniStream(context.Context) (R, error)
}) *Session {
	return &Session{
		many: c, open: face[Stream](c.OpenStreamSync), accept: face[Stream](c.AcceptStream),
		openUni: face[io.WriteCloser](c.OpenUniStreamSync), acceptUni: face[io.Reader](c.AcceptUniStream),
	}
}

// face is a function that gives an S as one that gives the interface F of it.
func face[F, S any](give func(context.Context) (S, error)) func(context.Context) (F, error) {
	return func(ctx context.Context) (f F, err error) {
		s, err := give(ctx)
		if err == nil {
			f = any(s).(F)
		}
		return f, err
	}
}

// end closes the connection, and waits until its byte stream is closed: the
// end of the devices waits for closed streams.
func (s *Session) end(code qmux.ApplicationErrorCode, reason string) {
	if s.many != nil {
		_ = s.CloseWithError(code, reason)
	}
	s.opening.wait()
}

// ending is nil for a connection that its peer's program, or this one, closed
// with code 0.
func ending(err error) error {
	var closed *qmux.ApplicationError
	if errors.As(err, &closed) && closed.ErrorCode == 0 {
		return nil
	}
	return err
}

// byteStream is a connection as a stream.
type byteStream struct {
	net.Conn
	raw net.Conn // beneath TLS
}

// Close ends this side's direction. Of an error the reader learns.
func (s *byteStream) Close() error {
	_ = s.Conn.(stream.Stream).CloseWrite()
	return nil
}

// CancelRead resets the connection.
func (s *byteStream) CancelRead(qmux.StreamErrorCode) { stream.Reset(s.raw) }

// CancelWrite does nothing more.
func (s *byteStream) CancelWrite(qmux.StreamErrorCode) {}
