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
	// before its connection broke.
	ErrFateUnknown = fmt.Errorf("rpc session: the connection broke before the answer: the call was executed once or not at all; ask the server before calling again: %w", syscall.ECONNRESET)
	// ErrUnavailable ends a call that was not executed, for there is no
	// connection, or the server is going away.
	ErrUnavailable = fmt.Errorf("rpc session: the server cannot be reached, and has not executed the call; call again later: %w", syscall.EHOSTUNREACH)
)

// Call is a unary call.
type Call struct {
	Method   string // 1 … 1,024 bytes
	Metadata []byte // at most 65,535 bytes
	Body     []byte
	// Reply takes the answer, in the caller's goroutine; nil drops it. Its
	// error is Client.Call's.
	Reply func(*Answer) error
	// WaitForReady has the call wait for a connection until its context ends.
	// Else it ends with ErrUnavailable when an attempt to connect fails.
	WaitForReady bool
}

// Status is how a handler ended; Code 0 is success, and has neither text nor
// details.
type Status struct {
	Code    uint32
	Text    string // at most 65,535 bytes
	Details []byte // at most 65,535 bytes
}

// Answer is a handler's answer.
type Answer struct {
	Status   Status
	Metadata []byte // at most 65,535 bytes
	Body     []byte // nil for none, which differs from an empty one
}

// pending is a call that has not ended. The client's mu guards it until done.
type pending struct {
	*Call
	ctx    context.Context
	slot   uint16
	posted bool // slot is a slot
	ended  bool
	done   chan struct{} // closed when it ended; then answer and err are set
	answer Answer
	err    error
}

// end ends the call. Preconditions: the client's mu is held.
func (p *pending) end(err error) {
	if !p.ended {
		p.ended, p.err = true, err
		close(p.done)
	}
}

// take ends the call with a REPLY, whose bytes it keeps.
func (p *pending) take(m *wire.Message) {
	switch {
	case m.Flags&wire.Session != 0 && m.Code == wire.Unavailable:
		p.end(ErrUnavailable)
		return
	case m.Flags&wire.Session != 0 && m.Code == wire.Cancelled:
		p.end(context.Canceled)
		return
	}
	p.answer = Answer{
		Status:   Status{Code: m.Code, Text: string(m.Text), Details: clone(m.Details)},
		Metadata: clone(m.Metadata),
	}
	if m.Flags&wire.Bare == 0 {
		p.answer.Body = append([]byte{}, m.Body...)
	}
	p.end(nil)
}

func clone(b []byte) []byte { return append([]byte(nil), b...) }

// check reports a call that no REQUEST of at most so many bytes carries.
func (c *Call) check(longest int) error {
	m := wire.Message{
		Type: wire.Request, Flags: wire.Define, Sequence: 1,
		Name: []byte(c.Method), Metadata: c.Metadata, Body: c.Body,
	}
	if err := m.Check(); err != nil {
		return fmt.Errorf("rpc session: call of %.40q: %w", c.Method, err)
	}
	if n := m.Length(); n > longest {
		return fmt.Errorf("rpc session: call of %.40q has %d bytes; the rings carry %d: %w", c.Method, n, longest, syscall.EMSGSIZE)
	}
	return nil
}

var errOffered = errors.New("rpc session: the peer offers a body, which this end does not READ")
