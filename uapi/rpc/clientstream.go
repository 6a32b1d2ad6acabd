package rpc

import (
	"bytes"
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

// clientStream is a client's stream: a grpc.ClientStream. RecvMsg receives, or
// Header while the headers have not come, and holds turn meanwhile. The first
// message has the headers, be they empty.
type clientStream struct {
	stream *session.Stream
	memory session.Memory
	ctx    context.Context
	cancel context.CancelFunc
	desc   *grpc.StreamDesc
	info   callInfo
	watch  *watch
	turn   chan struct{} // full while a goroutine receives
	early  []byte        // a message that came with the headers; under turn
	has    bool          // early is one

	headed   chan struct{} // closed when headers is set, or will not be
	finished chan struct{} // closed when err and trailers are set
	mu       sync.Mutex
	unhook   func() bool // of the context's end; guarded by mu
	headers  metadata.MD // guarded by mu until headed is closed
	trailers metadata.MD // guarded by mu until finished is closed
	err      error       // so, nil for status OK
}

// newStream opens a stream, within the interceptors.
func (c *ClientConn) newStream(ctx context.Context, desc *grpc.StreamDesc, _ *grpc.ClientConn, method string, options ...grpc.CallOption) (grpc.ClientStream, error) {
	s := &clientStream{
		desc: desc, memory: c.session.Memory(),
		turn: make(chan struct{}, 1), headed: make(chan struct{}), finished: make(chan struct{}),
	}
	info := &s.info
	if err := info.set(options); err != nil {
		info.ended(nil, err)
		return nil, err
	}
	s.watch, ctx = newWatch(ctx, c.config.StatsHandlers, c, method, !info.waitForReady)
	s.watch.begin(!info.waitForReady, desc.ClientStreams, desc.ServerStreams)
	s.ctx, s.cancel = context.WithCancel(ctx)
	md, err := info.outgoing(ctx, c.target, method)
	if err != nil {
		return nil, s.finish(nil, err)
	}
	call := session.Call{Method: method, WaitForReady: info.waitForReady}
	if call.Metadata, err = encodeMetadata(info.codec.subtype, md, nil); err != nil {
		return nil, s.finish(nil, err)
	}
	if s.stream, err = c.session.Open(s.ctx, &call); err != nil {
		return nil, s.finish(nil, sessionStatus(err, info.maxReceive))
	}
	s.watch.outHeader(md)
	info.begun(c)
	// A program that cancels need not receive until the end.
	s.mu.Lock()
	s.unhook = context.AfterFunc(s.ctx, func() { s.finish(nil, contextStatus(s.ctx.Err())) })
	s.mu.Unlock()
	return s, nil
}

// finish ends the stream, unless it has ended, and returns how it ended first;
// io.EOF is status OK.
func (s *clientStream) finish(trailers metadata.MD, err error) error {
	s.mu.Lock()
	first := !s.ended()
	if first {
		s.trailers, s.err = trailers, err
		close(s.finished)
	}
	unhook := s.unhook
	s.mu.Unlock()
	if first {
		s.head(nil)
		if unhook != nil {
			unhook()
		}
		s.cancel()
		s.watch.end(trailers, err)
		s.info.ended(trailers, err)
	}
	if s.err == nil {
		return io.EOF
	}
	return s.err
}

func (s *clientStream) ended() bool {
	select {
	case <-s.finished:
		return true
	default:
		return false
	}
}

// head sets the headers, unless they are set, and reports whether it did.
func (s *clientStream) head(md metadata.MD) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.headed:
		return false
	default:
	}
	s.headers = md
	s.info.headed(md)
	close(s.headed)
	return true
}

// Header waits for the server's headers. They are nil if the stream ended
// without any.
func (s *clientStream) Header() (metadata.MD, error) {
	select {
	case <-s.headed:
	case s.turn <- struct{}{}:
		s.receive(s.keep)
		<-s.turn
	}
	<-s.headed // receive returns with headers, or the end
	if s.headers == nil && s.ended() {
		return nil, s.err
	}
	return s.headers, nil
}

// Trailer is the server's metadata at the end, once RecvMsg has failed.
func (s *clientStream) Trailer() metadata.MD {
	if s.ended() {
		return s.trailers
	}
	return nil
}

func (s *clientStream) Context() context.Context { return s.ctx }

// CloseSend ends the client's direction. It never fails, as grpc-go's: RecvMsg
// tells how the stream ended.
func (s *clientStream) CloseSend() error {
	_ = s.stream.CloseSend()
	return nil
}

// SendMsg sends a message. io.EOF means that the stream has ended, and RecvMsg
// tells how.
func (s *clientStream) SendMsg(m any) error {
	b, err := s.info.codec.marshal(m, s.info.maxSend)
	if err != nil {
		return s.finish(nil, err)
	}
	defer b.free()
	if err := s.stream.Send(nil, &b); err != nil {
		if s.desc.ClientStreams {
			return io.EOF
		}
		return nil // as in grpc-go: RecvMsg tells
	}
	s.watch.outPayload(m, b.size)
	if !s.desc.ClientStreams {
		_ = s.stream.CloseSend()
	}
	return nil
}

// RecvMsg waits for a message; io.EOF is the end with status OK.
func (s *clientStream) RecvMsg(m any) error {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	err := s.next(func(b []byte) error {
		return s.info.codec.unmarshal(s.memory, b, m, s.info.maxReceive, s.watch)
	})
	if s.desc.ServerStreams {
		return err
	}
	if err == nil { // the one answer is good when the status is
		err = s.next(func([]byte) error {
			return status.Error(codes.Internal, "rpc: the server answered more than one message")
		})
		if errors.Is(err, io.EOF) {
			return nil
		}
	} else if errors.Is(err, io.EOF) {
		return status.Error(codes.Internal, "rpc: the server answered no message, and status OK")
	}
	return err
}

// next gives the next message to take: the one that came with the headers, or
// one to come. Preconditions: the caller holds turn.
func (s *clientStream) next(take func(b []byte) error) error {
	if s.has {
		err := take(s.early)
		s.early, s.has = nil, false
		if err != nil {
			return s.finish(nil, err)
		}
		return nil
	}
	for took := false; !took; {
		err := s.receive(func(b []byte) error {
			took = true
			return take(b)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// keep holds the message that came with the headers.
func (s *clientStream) keep(b []byte) error {
	s.early, s.has = bytes.Clone(b), true
	return nil
}

// receive takes headers, a message, or both. At the end it finishes the stream;
// io.EOF is status OK. Preconditions: the caller holds turn.
func (s *clientStream) receive(take func(b []byte) error) error {
	if s.ended() {
		return s.finish(nil, nil)
	}
	err := s.stream.Recv(func(metadata, b []byte, has bool) error {
		headers, _, err := parseMetadata(metadata)
		if err != nil {
			return err
		}
		if s.head(headers) {
			s.watch.inHeader(headers, len(metadata))
		}
		if !has {
			return nil
		}
		return take(b)
	})
	if err == nil {
		return nil
	}
	if !errors.Is(err, io.EOF) {
		return s.finish(nil, sessionStatus(err, s.info.maxReceive))
	}
	a := s.stream.End()
	headers, trailers, err := parseMetadata(a.Metadata)
	if err != nil {
		return s.finish(nil, err)
	}
	if s.head(headers) {
		s.watch.inHeader(headers, len(a.Metadata))
	}
	s.watch.inTrailer(trailers)
	return s.finish(trailers, unpackStatus(a.Status))
}
