package rpc

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// exchange is a call or stream at the server. It is the
// grpc.ServerTransportStream that grpc.SetHeader and its like find in the
// context.
type exchange struct {
	incoming
	codec  codec
	watch  *watch
	stream side // nil for a call
	answer answer
	reply  body // of a call

	mu       sync.Mutex
	headers  metadata.MD // guarded by mu
	trailers metadata.MD // guarded by mu
	sent     bool        // headers are; guarded by mu
}

var _ grpc.ServerTransportStream = (*exchange)(nil)

// errSent answers headers that come too late.
var errSent = status.Error(codes.Internal, "rpc: the headers were sent already")

// decode reads a call's message, and ends the loan of its body.
func (x *exchange) decode(m any, most int) error {
	if x.loan != nil {
		defer x.loan.Release()
	}
	if len(x.body) > most {
		return tooLong("received", len(x.body), most)
	}
	if err := x.codec.unmarshal(x.memory, x.body, m); err != nil {
		return err
	}
	x.watch.inPayload(m, len(x.body))
	return nil
}

// Method is the full name, "/service/method".
func (x *exchange) Method() string { return x.method }

// SetHeader adds to the headers, which go with the first message.
func (x *exchange) SetHeader(md metadata.MD) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.sent {
		return errSent
	}
	x.headers = metadata.Join(x.headers, md)
	return nil
}

// SendHeader sends the headers now: those of a call go with its answer all the
// same, but are final.
func (x *exchange) SendHeader(md metadata.MD) error {
	if err := x.SetHeader(md); err != nil {
		return err
	}
	b, err := x.takeHeaders()
	if err != nil || x.stream == nil {
		return err
	}
	return sessionStatus(x.stream.send(b, nil))
}

// SetTrailer adds to the trailers, which go with the status.
func (x *exchange) SetTrailer(md metadata.MD) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.trailers = metadata.Join(x.trailers, md)
	return nil
}

// takeHeaders closes the headers, and returns them for the message that is sent
// next; nil if they are on their way.
func (x *exchange) takeHeaders() ([]byte, error) {
	x.mu.Lock()
	first, headers := !x.sent, x.headers
	x.sent = true
	x.mu.Unlock()
	if !first {
		return nil, nil
	}
	x.watch.outHeader(headers)
	if x.stream == nil {
		return nil, nil
	}
	return appendMetadata(nil, "", headers, nil)
}

// end is the handler's answer: its status, the trailers, and the headers if no
// message took them.
func (x *exchange) end(err error) *answer {
	x.mu.Lock()
	defer x.mu.Unlock()
	headers := x.headers
	if x.sent && x.stream != nil {
		headers = nil
	}
	md, mdErr := appendMetadata(nil, "", headers, x.trailers)
	if mdErr != nil {
		err = mdErr
	}
	a := &x.answer
	a.metadata = md
	a.code, a.text, a.details = packStatus(err)
	return a
}

// serverStream is a server's stream: a grpc.ServerStream.
type serverStream struct {
	*exchange
	ctx                 context.Context
	maxReceive, maxSend int
}

func (s *serverStream) Context() context.Context { return s.ctx }

// SetTrailer adds to the trailers.
func (s *serverStream) SetTrailer(md metadata.MD) { _ = s.exchange.SetTrailer(md) }

// SendMsg sends a message, and the headers with the first.
func (s *serverStream) SendMsg(m any) error {
	b, err := s.codec.marshal(m)
	if err != nil {
		return err
	}
	defer b.free()
	if b.size > s.maxSend {
		return tooLong("sent", b.size, s.maxSend)
	}
	md, err := s.takeHeaders()
	if err != nil {
		return err
	}
	if err := s.stream.send(md, &b); err != nil {
		return sessionStatus(err)
	}
	s.watch.outPayload(m, b.size)
	return nil
}

// RecvMsg waits for a message; io.EOF is the end of the client's direction.
func (s *serverStream) RecvMsg(m any) error {
	for took := false; !took; {
		err := s.stream.receive(func(_, b []byte, has bool) error {
			took = has
			if !has {
				return nil
			}
			return s.take(b, m)
		})
		if errors.Is(err, io.EOF) {
			return io.EOF
		}
		if err != nil {
			return sessionStatus(err)
		}
	}
	return nil
}

func (s *serverStream) take(b []byte, m any) error {
	if len(b) > s.maxReceive {
		return tooLong("received", len(b), s.maxReceive)
	}
	if err := s.codec.unmarshal(s.memory, b, m); err != nil {
		return err
	}
	s.watch.inPayload(m, len(b))
	return nil
}

// connContext is the context below which the handlers of a connection's calls
// have theirs: it names the peer, and has no metadata.
func connContext(ctx context.Context, local, remote net.Addr) context.Context {
	ctx = peer.NewContext(ctx, &peer.Peer{Addr: remote, LocalAddr: local})
	return metadata.NewIncomingContext(ctx, metadata.MD{})
}

// arrive reads the beginning of a call or stream: its metadata, its codec, and
// the context for its handler.
func (s *Server) arrive(in incoming, stream side, clientStreams, serverStreams bool) (*exchange, context.Context, error) {
	x := &exchange{incoming: in, stream: stream}
	headers, _, err := parseMetadata(in.metadata)
	if err != nil {
		return x, in.ctx, err
	}
	ctx := in.ctx
	if len(headers) > 0 {
		ctx = metadata.NewIncomingContext(ctx, headers)
	}
	x.watch, ctx = newWatch(ctx, s.config.StatsHandlers, false, in.method, false, &x.incoming)
	x.watch.inHeader(headers, len(in.metadata))
	x.watch.begin(false, clientStreams, serverStreams)
	x.codec, err = codecOf(contentSubtype(headers))
	return x, grpc.NewContextWithServerTransportStream(ctx, x), err
}
