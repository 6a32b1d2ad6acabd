package session

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/rdmashim/rdmashim/uapi/rpc/session/wire"
)

// How a call ends that has no answer of its handler, beside the context's
// error, net.ErrClosed and EMSGSIZE.
var (
	// ErrFateUnknown ends a call that was sent, and of which nothing was heard
	// before the server lost the session.
	ErrFateUnknown = fmt.Errorf("rpc session: the session ended before the answer: the call was executed once or not at all; ask the server before calling again: %w", syscall.ECONNRESET)
	// ErrExecuted ends a call that was executed, and whose answer is lost: the
	// server keeps a bounded number of bytes of answers.
	ErrExecuted = fmt.Errorf("rpc session: the call was executed, but its answer is lost; ask the server for its outcome: %w", syscall.EIO)
	// ErrUnavailable ends a call that was not executed, for there is no
	// connection, or the server is going away. The error's other part says why.
	ErrUnavailable = errors.New("rpc session: the call was not executed, for the server is not available")
	// ErrNotSent is in the error of a call that its context or Close ended
	// before it was sent: it was not executed.
	ErrNotSent = errors.New("rpc session: the call was not sent, and so not executed")
	// ErrBroken ends a stream whose connection broke.
	ErrBroken = fmt.Errorf("rpc session: the stream's connection broke; its handler is told; open another one: %w", syscall.ECONNRESET)
	// ErrTooLong ends a call whose answer is longer than the caller takes. The
	// call was executed.
	ErrTooLong = fmt.Errorf("rpc session: the call was executed, but its answer is longer than Call.MaxReply: %w", syscall.EMSGSIZE)
)

// Call is a unary call.
type Call struct {
	Method   string // 1 … 1,024 bytes
	Metadata []byte // at most 65,535 bytes
	Body     Body   // nil for none, which is like an empty one
	// Reply takes the answer, in the caller's goroutine; nil drops it. Its
	// error is Client.Call's.
	Reply func(*Answer) error
	// WaitForReady has the call wait for a connection until its context ends.
	// Else it ends with ErrUnavailable when an attempt to connect fails.
	WaitForReady bool
	// MaxReply bounds the answer's body in bytes (ClientConfig.MaxReply).
	MaxReply int
}

// Status is how a handler ended; Code 0 is success, and has neither text nor
// details.
type Status struct {
	Code    uint32
	Text    string // at most 65,535 bytes
	Details []byte // at most 65,535 bytes
}

// Answer is a handler's answer. Its bytes are lent until Call.Reply returns.
type Answer struct {
	Status   Status
	Metadata []byte // at most 65,535 bytes
	Body     []byte // nil for none, which differs from an empty one
}

// pending is a call, or a stream's opening, that has not ended. The client's
// lock guards it until done.
type pending struct {
	client       *Client
	ctx          context.Context
	method       string
	metadata     []byte
	payload      payload
	waitForReady bool
	maxReply     int
	stream       *stream // nil of a call

	slot    uint16
	hasSlot bool // slot is one
	ended   bool
	done    chan struct{} // has an element when it ended, or the stream was opened; then answer, slab and err are final

	scratch *scratch // nil of a stream's opening
	answer  Answer
	slab    *slab // that has the answer's body
	err     error
}

// pend returns a call that has not ended.
func (c *Client) pend(ctx context.Context, call *Call) *pending {
	p, ok := c.spare.Get().(*pending)
	if !ok {
		p = &pending{done: make(chan struct{}, 1)}
	}
	p.client = c
	p.ctx, p.method, p.metadata, p.waitForReady = ctx, call.Method, call.Metadata, call.WaitForReady
	return p
}

// spend gives a call back that has its answer: no other goroutine knows it
// then.
func (c *Client) spend(p *pending) {
	if p.err != nil || p.stream != nil {
		return
	}
	select {
	case <-p.done: // the caller's context has ended, too
	default:
	}
	p.scratch.free()
	*p = pending{done: p.done}
	c.spare.Put(p)
}

// end ends the call. Preconditions: the client's lock is held.
func (p *pending) end(err error) {
	if !p.ended {
		p.ended, p.err = true, err
		p.client.pending--
		p.done <- struct{}{}
	}
}

// take ends the call with a REPLY, whose bytes it copies; a body that was READ
// lies in the slab, which passes to the call.
func (p *pending) take(m *wire.Message, x *slab) {
	if p.ended {
		if x != nil {
			x.drop()
		}
		return
	}
	a, err := answerOf(m)
	switch {
	case err != nil:
	case x != nil:
		a.Body, p.slab = x.bytes(), x
	case m.Flags&wire.Bare == 0 && len(m.Body) > p.maxReply:
		err = ErrTooLong
	case m.Flags&wire.Bare == 0:
		a.Body = append(p.scratch.room(len(m.Body)), m.Body...)
	}
	p.answer = a
	p.end(err)
}

// answerOf is the answer in a REPLY or STREAM_END without its body, or how the
// session ended the call in the handler's place.
func answerOf(m *wire.Message) (a Answer, err error) {
	if m.Flags&wire.Session != 0 {
		switch m.Code {
		case wire.Unavailable:
			return a, ErrUnavailable
		case wire.Cancelled:
			return a, context.Canceled
		case wire.DataLoss:
			return a, ErrExecuted
		}
	}
	return Answer{
		Status:   Status{Code: m.Code, Text: string(m.Text), Details: clone(m.Details)},
		Metadata: clone(m.Metadata),
	}, nil
}

// check reports a call that no message of at most so many bytes carries.
func (p *pending) check(longest int) error {
	m := wire.Message{
		Type: wire.Request, Flags: wire.Define, Sequence: 1,
		Name: []byte(p.method), Metadata: p.metadata, Body: p.payload.bytes,
	}
	if p.payload.slab != nil {
		m.Flags |= wire.Offered
		m.Offer.Length = uint32(p.payload.length)
	}
	if p.stream != nil {
		m.Type, m.Stream = wire.StreamOpen, 1
	}
	if err := m.Check(); err != nil {
		return fmt.Errorf("rpc session: call of %.40q: %w", p.method, err)
	}
	return fits(&m, longest)
}

// fits reports a message that is longer than a connection carries.
func fits(m *wire.Message, longest int) error {
	if n := m.Length(); n > longest {
		return fmt.Errorf("rpc session: a message of %d bytes; the rings carry %d, of which metadata and a body of up to %d are part: %w", n, longest, copyLimit, syscall.EMSGSIZE)
	}
	return nil
}
