package rpc

import (
	"cmp"
	"context"
	"net"

	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/rpc/session"
)

// Serve answers the clients that connect to l, until Stop or GracefulStop, when
// it returns nil, or l fails. It may be called for several listeners. The
// listener remains the caller's. The error is EINVAL for an invalid
// configuration.
func (s *Server) Serve(l *uapi.Listener) error {
	below, err := s.below()
	if err != nil {
		return err
	}
	return below.Serve(l)
}

// ServeOver is Serve for clients that share a channel, usually TCP, with the
// server and no connection manager: l accepts the channels, and Stop and
// GracefulStop close it. Clients set Session.Connect to msgring.DialOver over a
// channel to l.
func (s *Server) ServeOver(device *uapi.Context, l net.Listener) error {
	below, err := s.below()
	if err != nil {
		return err
	}
	return below.ServeOver(device, l)
}

// below returns the server of sessions, which its first call makes.
func (s *Server) below() (*session.Server, error) {
	s.once.Do(func() {
		c := s.config.Session
		c.MaxRequest = cmp.Or(c.MaxRequest, s.config.MaxReceive)
		c.ConnContext = func(ctx context.Context, conn uapi.ConnInfo) context.Context {
			return connContext(ctx, Addr{conn.LocalAddr}, Addr{conn.RemoteAddr})
		}
		c.Unary = func(ctx context.Context, r *session.Request) session.Reply {
			a, out := s.call(incoming{ctx: ctx, method: r.Method, metadata: r.Metadata, body: r.Body, loan: r, memory: r.Memory()})
			if out == nil {
				return a.reply(nil)
			}
			return a.reply(lastBody{out})
		}
		c.Stream = func(ctx context.Context, ss *session.ServerStream) session.Reply {
			return s.open(incoming{ctx: ctx, method: ss.Method, metadata: ss.Metadata, memory: ss.Memory()}, served{ss}).reply(nil)
		}
		s.sessions, s.err = session.NewServer(c)
	})
	return s.sessions, s.err
}

func (a *answer) reply(b session.Body) session.Reply {
	return session.Reply{Status: session.Status{Code: a.code, Text: a.text, Details: a.details}, Metadata: a.metadata, Body: b}
}

// lastBody is a body that is sent once, and then gives its memory back.
type lastBody struct{ *body }

func (b lastBody) Close() error {
	b.free()
	return nil
}

// served is a stream of a session at the server: a side.
type served struct{ stream *session.ServerStream }

func (s served) send(metadata []byte, b *body) error { return s.stream.Send(metadata, some(b)) }
func (s served) receive(take func(metadata, body []byte, has bool) error) error {
	return s.stream.Recv(take)
}

// Sessions returns the server of sessions, which does what gRPC has no words
// for. It is nil if the configuration is invalid.
func (s *Server) Sessions() *session.Server {
	below, _ := s.below()
	return below
}

// GracefulStop takes no more connections and calls, waits until the handlers
// that run have ended and their answers are sent, and stops.
func (s *Server) GracefulStop() {
	if below, err := s.below(); err == nil {
		below.GracefulStop()
	}
}

// Stop ends all connections and cancels the handlers' contexts, and returns
// when both have ended.
func (s *Server) Stop() {
	if below, err := s.below(); err == nil {
		below.Stop()
	}
}
