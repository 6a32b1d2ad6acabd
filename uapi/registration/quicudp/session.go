package quicudp

import (
	"context"
	"errors"
	"net"

	"github.com/quic-go/quic-go"

	"github.com/rdmashim/rdmashim/uapi/qmux"
	"github.com/rdmashim/rdmashim/uapi/registration"
)

// session is a quic.Conn with registration's faces.
type session struct {
	conn *quic.Conn
	ctx  context.Context
}

var _ registration.Session = (*session)(nil)

func newSession(conn *quic.Conn) *session { return &session{conn, mirror(conn.Context())} }

func (s *session) OpenStreamSync(ctx context.Context) (registration.Stream, error) {
	opened, err := s.conn.OpenStreamSync(ctx)
	return bidirectional(opened, within(ctx, err))
}

func (s *session) OpenUniStreamSync(ctx context.Context) (registration.SendStream, error) {
	opened, err := s.conn.OpenUniStreamSync(ctx)
	if err != nil {
		return nil, translate(within(ctx, err))
	}
	return sendStream{opened}, nil
}

func (s *session) AcceptStream(ctx context.Context) (registration.Stream, error) {
	accepted, err := s.conn.AcceptStream(ctx)
	return bidirectional(accepted, within(ctx, err))
}

func (s *session) AcceptUniStream(ctx context.Context) (registration.ReceiveStream, error) {
	accepted, err := s.conn.AcceptUniStream(ctx)
	if err != nil {
		return nil, translate(within(ctx, err))
	}
	return receiveStream{accepted}, nil
}

func (s *session) SendDatagram(p []byte) error {
	if !s.conn.ConnectionState().SupportsDatagrams.Remote {
		return errNoDatagrams
	}
	return translate(s.conn.SendDatagram(p))
}

func (s *session) ReceiveDatagram(ctx context.Context) ([]byte, error) {
	p, err := s.conn.ReceiveDatagram(ctx)
	return p, translate(within(ctx, err))
}

// CloseWithError returns when the peer was told.
func (s *session) CloseWithError(code qmux.ApplicationErrorCode, reason string) error {
	err := s.conn.CloseWithError(quic.ApplicationErrorCode(code), reason)
	<-s.ctx.Done()
	return err
}

// Context ends with the connection, with its error as cause.
func (s *session) Context() context.Context { return s.ctx }

func (s *session) LocalAddr() net.Addr { return s.conn.LocalAddr() }

func (s *session) RemoteAddr() net.Addr { return s.conn.RemoteAddr() }

func (s *session) ConnectionState() (state registration.ConnectionState) {
	now := s.conn.ConnectionState()
	state.TLS, state.Protocol = now.TLS, now.TLS.NegotiatedProtocol
	state.Datagrams = now.SupportsDatagrams
	return state
}

// Counters are those of quic-go's events.
func (s *session) Counters() registration.Counters { return s.conn.QlogTrace().(*trace).read() }

// within is err, or why the caller's context ended, if it did.
func within(ctx context.Context, err error) error {
	if err != nil && errors.Is(err, ctx.Err()) {
		return context.Cause(ctx)
	}
	return err
}
