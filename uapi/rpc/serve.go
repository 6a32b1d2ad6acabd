package rpc

import (
	"cmp"
	"context"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/rpc/session"
)

// Serve answers the clients that connect to l, until Stop or GracefulStop has
// ended all connections, when it returns nil, or l fails. It may be called for
// several listeners. The listener remains the caller's. The error is EINVAL for
// an invalid configuration.
func (s *Server) Serve(l *uapi.Listener) error {
	below, err := s.below()
	if err != nil {
		return err
	}
	return below.Serve(l)
}

// below returns the server of sessions, which its first call makes.
func (s *Server) below() (*session.Server, error) {
	s.once.Do(func() {
		c := s.config.Session
		c.MaxRequest = cmp.Or(c.MaxRequest, s.config.MaxReceive)
		c.ConnContext, c.Unary, c.Stream = connContext, s.call, s.open
		s.sessions, s.err = session.NewServer(c)
	})
	return s.sessions, s.err
}

// connContext is the context below which the handlers of a connection's calls
// have theirs: it names the peer, and has no metadata.
func connContext(ctx context.Context, conn uapi.ConnInfo) context.Context {
	ctx = peer.NewContext(ctx, &peer.Peer{Addr: Addr{conn.RemoteAddr}, LocalAddr: Addr{conn.LocalAddr}})
	return metadata.NewIncomingContext(ctx, metadata.MD{})
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
