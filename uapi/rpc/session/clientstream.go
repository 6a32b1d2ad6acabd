package session

import (
	"context"

	"github.com/rdmashim/rdmashim/uapi/rpc/session/core"
)

// Stream is the client's end of a stream. One goroutine sends and one receives.
// It ends with Close, with the context that it was opened with, and when Recv
// returns an error of its own.
type Stream struct {
	client  *Client
	pending *pending
	stream  *stream
	unhook  func() bool
	closed  bool // guarded by the client's lock
}

// Open opens a stream, of which call has method, metadata and WaitForReady. It
// waits until the request is on its way. Errors are those of Call; a stream is
// never sent again.
func (c *Client) Open(ctx context.Context, call *Call) (*Stream, error) {
	if err := ctx.Err(); err != nil {
		return nil, notSent(err)
	}
	p := c.pend(ctx, call)
	p.stream = newStream(ctx, c)
	s := &Stream{client: c, pending: p, stream: p.stream}
	if err := c.wait(p); err != nil {
		return nil, err
	}
	s.unhook = context.AfterFunc(ctx, s.abandon)
	return s, nil
}

// Send sends metadata, a body, or both; b is nil for metadata alone. It waits
// until the server's window has room, 64 KiB and 16 messages, and the body of
// more than 32 KiB counts as nothing. It returns before the message has
// arrived.
//
// Errors: EPIPE after CloseSend or the server's end; ErrBroken; the context's;
// EMSGSIZE for a message that the window or the rings cannot carry.
func (s *Stream) Send(metadata []byte, b Body) error { return s.stream.send(metadata, b) }

// CloseSend ends this end's messages; the server's Recv returns io.EOF.
func (s *Stream) CloseSend() error {
	c := s.client
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.pending.hasSlot {
		c.core.CloseSend(s.pending.slot)
		s.stream.silence(core.ErrStreamOver)
		if c.link != nil {
			c.link.wake()
		}
	}
	return nil
}

// Recv gives the next message to take, whose bytes are lent until it returns;
// has is false for metadata alone. Its error is Recv's.
//
// Errors: io.EOF at the server's end, which End describes; ErrBroken;
// ErrUnavailable for a stream that was not opened; the context's.
func (s *Stream) Recv(take func(metadata, body []byte, has bool) error) error {
	taken := false
	err := s.stream.receive(func(metadata, body []byte, has bool) error {
		taken = true
		return take(metadata, body, has)
	})
	if err != nil && !taken {
		s.unhook()
		s.abandon()
	}
	return err
}

// End is how the handler ended, when Recv has returned io.EOF: its status, and
// trailers as metadata.
func (s *Stream) End() *Answer {
	c := s.client
	c.mu.Lock()
	defer c.mu.Unlock()
	a := s.pending.answer
	return &a
}

// Close ends the stream, and its handler's context if it still runs.
func (s *Stream) Close() error {
	s.unhook()
	s.abandon()
	return nil
}

func (s *Stream) abandon() {
	c := s.client
	c.mu.Lock()
	defer c.mu.Unlock()
	s.stream.close()
	if s.pending.hasSlot {
		c.abandon(s.pending)
	}
	if !s.closed {
		s.closed = true
		c.streams--
	}
}
