package registration

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"

	"github.com/rdmashim/rdmashim/uapi/qmux"
)

// Conn is a connection of a registration. Its methods do what those of
// qmux.Conn do, and may be called concurrently. Errors are *Error.
type Conn struct {
	registration *Registration
	session      Session
	ctx          context.Context
	cancel       context.CancelCauseFunc
	gone         chan struct{} // closed when its counters are the registration's
}

// ConnectionState tells where a connection runs and what its ends agreed on.
type ConnectionState struct {
	Registration string
	Transport    string // the kind: "soft"
	Device       string // "soft0"; "" without RDMA
	// The numbers of the queue pairs; 0 without RDMA.
	LocalQPN, RemoteQPN uint32
	// Protocol is what ALPN agreed on, or Config.Protocol.
	Protocol string
	TLS      tls.ConnectionState // zero without TLS
	// Datagrams is whether each end takes them. The remote one's is unknown,
	// false, until its parameters are here.
	Datagrams struct{ Remote, Local bool }
}

// Error is the error of a registration, a listener or a connection: which
// transport failed, at which call, and why. errors.Is and errors.As find in it
// the errno, and the errors of package qmux.
type Error struct {
	Op           string // "open", "listen", "dial", "accept", "read", "write"
	Registration string
	Transport    string // the kind: "soft"
	Addr         string // of the peer, or of the listener; "" if there is none
	Err          error
}

// Error is one line.
func (e *Error) Error() string {
	text := "registration"
	if e.Registration != "" {
		text += " " + e.Registration
	}
	if e.Transport != e.Registration {
		text += " (" + e.Transport + ")"
	}
	text += ": " + e.Op
	if e.Addr != "" {
		text += " " + e.Addr
	}
	return text + ": " + e.Err.Error()
}

// Unwrap gives the reason.
func (e *Error) Unwrap() error { return e.Err }

// Timeout reports whether a deadline passed, as net.Error does.
func (e *Error) Timeout() bool {
	var t interface{ Timeout() bool }
	return errors.As(e.Err, &t) && t.Timeout()
}

// Temporary is false, as of a net.Error.
func (e *Error) Temporary() bool { return false }

var _ net.Error = (*Error)(nil)

// failed is the error of a call; nil and io.EOF stay.
func (c *Conn) failed(op string, err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	return c.registration.failed(op, c.session.RemoteAddr().String(), err)
}

// settle ends the connection's context when its session has ended, and leaves
// the session's counters to the registration when its last frame was counted.
func (c *Conn) settle() {
	r := c.registration
	c.cancel(c.failed("connection", context.Cause(c.session.Context())))
	_ = c.session.CloseWithError(closedCode, closedReason) // waits, and changes nothing
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stats.Add(c.session.Counters())
	delete(r.conns, c)
	close(c.gone)
}

// OpenStreamSync opens a bidirectional stream. It waits for the peer's grant.
func (c *Conn) OpenStreamSync(ctx context.Context) (Stream, error) {
	s, err := c.session.OpenStreamSync(ctx)
	return c.stream("open stream", s, err)
}

// OpenUniStreamSync opens a unidirectional stream, as OpenStreamSync.
func (c *Conn) OpenUniStreamSync(ctx context.Context) (SendStream, error) {
	s, err := c.session.OpenUniStreamSync(ctx)
	if err != nil {
		return nil, c.failed("open stream", err)
	}
	return &sendStream{s, c}, nil
}

// AcceptStream waits for the next bidirectional stream of the peer.
func (c *Conn) AcceptStream(ctx context.Context) (Stream, error) {
	s, err := c.session.AcceptStream(ctx)
	return c.stream("accept stream", s, err)
}

// AcceptUniStream waits for the next unidirectional stream of the peer.
func (c *Conn) AcceptUniStream(ctx context.Context) (ReceiveStream, error) {
	s, err := c.session.AcceptUniStream(ctx)
	if err != nil {
		return nil, c.failed("accept stream", err)
	}
	return &receiveStream{s, c}, nil
}

func (c *Conn) stream(op string, s Stream, err error) (Stream, error) {
	if err != nil {
		return nil, c.failed(op, err)
	}
	return &stream{s, c}, nil
}

// SendDatagram queues a datagram, and waits while too many are queued.
func (c *Conn) SendDatagram(p []byte) error {
	return c.failed("send datagram", c.session.SendDatagram(p))
}

// ReceiveDatagram waits for the next datagram.
func (c *Conn) ReceiveDatagram(ctx context.Context) ([]byte, error) {
	p, err := c.session.ReceiveDatagram(ctx)
	return p, c.failed("receive datagram", err)
}

// CloseWithError closes the connection, and returns when the peer was told or
// cannot be told. Bytes that a Write has not sent are lost.
func (c *Conn) CloseWithError(code qmux.ApplicationErrorCode, reason string) error {
	return c.failed("close", c.session.CloseWithError(code, reason))
}

// Context ends when the connection has. Its cause is the error, an *Error.
func (c *Conn) Context() context.Context { return c.ctx }

// LocalAddr is the address of this end.
func (c *Conn) LocalAddr() net.Addr { return c.session.LocalAddr() }

// RemoteAddr is the address of the peer.
func (c *Conn) RemoteAddr() net.Addr { return c.session.RemoteAddr() }

// ConnectionState tells where the connection runs.
func (c *Conn) ConnectionState() ConnectionState {
	s := c.session.ConnectionState()
	s.Registration, s.Transport = c.registration.Name(), c.registration.Kind()
	return s
}

// Counters are the connection's.
func (c *Conn) Counters() Counters { return c.session.Counters() }
