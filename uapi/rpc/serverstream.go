package rpc

import (
	"context"
	"errors"
	"io"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/rdmashim/rdmashim/uapi/rpc/session"
)

// exchange is a call or stream at the server. It is the
// grpc.ServerTransportStream that grpc.SetHeader and its like find in the
// context.
type exchange struct {
	method  string
	request *session.Request      // nil for a stream
	stream  *session.ServerStream // nil for a call
	memory  session.Memory
	codec   codec
	watch   *watch
	reply   body // of a call

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
	defer x.request.Release()
	return x.codec.unmarshal(x.memory, x.request.Body, m, most, x.watch)
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
	return sessionStatus(x.stream.Send(b, nil), 0)
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
	return encodeMetadata("", headers, nil)
}

// end ends a call or stream with the handler's answer: its status, the
// trailers, and the headers if no message took them.
func (x *exchange) end(err error) session.Reply {
	x.mu.Lock()
	headers, trailers := x.headers, x.trailers
	if x.sent && x.stream != nil {
		headers = nil
	}
	x.mu.Unlock()
	md, mdErr := encodeMetadata("", headers, trailers)
	if mdErr != nil {
		err = mdErr
	}
	r := session.Reply{Status: packStatus(err), Metadata: md}
	x.watch.outTrailer(trailers)
	x.watch.end(trailers, unpackStatus(r.Status))
	return r
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
	b, err := s.codec.marshal(m, s.maxSend)
	if err != nil {
		return err
	}
	defer b.free()
	md, err := s.takeHeaders()
	if err != nil {
		return err
	}
	if err := s.stream.Send(md, &b); err != nil {
		return sessionStatus(err, s.maxReceive)
	}
	s.watch.outPayload(m, b.size)
	return nil
}

// RecvMsg waits for a message; io.EOF is the end of the client's direction.
func (s *serverStream) RecvMsg(m any) error {
	for took := false; !took; {
		err := s.stream.Recv(func(_, b []byte, has bool) error {
			took = has
			if !has {
				return nil
			}
			return s.codec.unmarshal(s.memory, b, m, s.maxReceive, s.watch)
		})
		if errors.Is(err, io.EOF) {
			return io.EOF
		}
		if err != nil {
			return sessionStatus(err, s.maxReceive)
		}
	}
	return nil
}

// arrive reads the metadata of a call or stream, which has its codec, and
// returns the context for its handler.
func (s *Server) arrive(ctx context.Context, x *exchange, md []byte, desc *grpc.StreamDesc) (context.Context, error) {
	headers, _, err := parseMetadata(md)
	if err != nil {
		return ctx, err
	}
	if len(headers) > 0 {
		ctx = metadata.NewIncomingContext(ctx, headers)
	}
	x.watch, ctx = newWatch(ctx, s.config.StatsHandlers, nil, x.method, false)
	x.watch.inHeader(headers, len(md))
	x.watch.begin(false, desc.ClientStreams, desc.ServerStreams)
	x.codec, err = codecOf(contentSubtype(headers))
	return grpc.NewContextWithServerTransportStream(ctx, x), err
}
