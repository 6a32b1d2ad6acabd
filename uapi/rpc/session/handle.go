package session

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/rpc/session/core"
	"github.com/rdmashim/rdmashim/uapi/rpc/session/wire"
)

// ServerStream is the server's end of a stream. One goroutine sends and one
// receives, both before the handler returns.
type ServerStream struct {
	Method   string
	Metadata []byte
	Conn     uapi.ConnInfo // of the connection

	stream *stream
}

// Send is Stream.Send; the error after the client's end is the context's.
func (s *ServerStream) Send(metadata []byte, b Body) error { return s.stream.send(metadata, b) }

// Recv is Stream.Recv. It returns io.EOF behind the client's CloseSend.
func (s *ServerStream) Recv(take func(metadata, body []byte, has bool) error) error {
	return s.stream.receive(take)
}

// start starts the handler of a call or stream, whose body lies in the slab if
// it was READ. Preconditions: mu is held.
func (x *session) start(method string, m *wire.Message, stream bool, body *slab) {
	s := x.server
	ctx, cancel := context.WithCancel(x.life)
	if m.Timeout > 0 {
		ctx, cancel = context.WithTimeout(x.life, time.Duration(m.Timeout)*10*time.Microsecond)
	}
	r := &running{cancel: cancel}
	x.calls[m.Slot] = r
	conn := x.link.conn.Info().ConnInfo
	longest := x.link.longest
	var handler func() Reply
	if stream {
		r.stream = newStream(ctx, x)
		r.stream.link, r.stream.slot = x.link, m.Slot
		incoming := &ServerStream{Method: method, Metadata: clone(m.Metadata), Conn: conn, stream: r.stream}
		if s.config.Stream != nil {
			handler = func() Reply { return s.config.Stream(ctx, incoming) }
		}
	} else {
		request := &Request{Method: method, Metadata: clone(m.Metadata), Conn: conn, slab: body}
		if body != nil {
			request.Body = body.bytes()
		} else {
			request.Body = clone(m.Body)
		}
		if s.config.Unary != nil {
			handler = func() Reply {
				defer request.Release()
				return s.config.Unary(ctx, request)
			}
		}
	}
	slot := m.Slot
	s.all.Add(1)
	run := func() {
		defer s.all.Done()
		defer cancel()
		x.handle(ctx, slot, r, handler, longest)
	}
	if !stream && body == nil {
		if r.pace = s.paces.of(method); r.pace != nil && r.pace.brief() {
			r.inline, x.link.brief = true, run
			return
		}
	}
	go run()
}

// unimplemented is the code of gRPC's.
const unimplemented = 12

// handle runs a handler when there is room, and has its answer sent.
func (x *session) handle(ctx context.Context, slot uint16, r *running, handler func() Reply, longest int) {
	s := x.server
	var reply Reply
	var took time.Duration
	switch {
	case handler == nil:
		reply.Status = Status{Code: unimplemented, Text: "the server has no handler of this kind"}
	default:
		select {
		case s.room <- struct{}{}:
			began := time.Now()
			reply = handler()
			if r.pace != nil {
				took = time.Since(began)
				r.pace.note(took)
			}
			<-s.room
		case <-ctx.Done():
			reply.Status = Status{Code: wire.Cancelled, Text: "the call ended before its handler could start"}
		}
	}
	p, err := x.slabs.load(reply.Body)
	if err != nil {
		reply = Reply{Status: Status{Code: wire.ResourceExhausted, Text: fmt.Sprintf("the handler's answer: %v", err)}}
	}
	s.mu.Lock()
	delete(x.calls, slot)
	if r.stream != nil {
		r.stream.close()
	}
	x.finish(slot, &reply, p, longest)
	p.drop()
	if x.attempt == nil {
		s.tidy()
	}
	s.offers.freed(s.core.Freed)
	s.idle.Broadcast()
	l, others := x.link, len(x.calls) > 0
	s.mu.Unlock()
	switch {
	case l == nil || r.inline && took < brief/4: // the reader flushes
		return
	case others && !r.inline:
		runtime.Gosched() // their answers go with this one
	}
	l.flush()
}

// finish has an answer sent, or a status that says that it is longer than a
// message. Preconditions: mu is held.
func (x *session) finish(slot uint16, reply *Reply, p payload, longest int) {
	m := wire.Message{Type: wire.Reply, Sequence: 1, Metadata: reply.Metadata, Body: p.bytes}
	if !p.has {
		m.Flags |= wire.Bare
	}
	if reply.Status.Code != 0 {
		m.Flags |= wire.Error
		m.Code, m.Text, m.Details = reply.Status.Code, []byte(reply.Status.Text), reply.Status.Details
	}
	if p.slab != nil {
		m.Flags |= wire.Offered
		m.Offer.Length = uint32(p.slab.used)
	}
	if err := m.Check(); err != nil || m.Length() > longest {
		text := fmt.Sprintf("the handler's answer does not fit into a message of %d bytes", longest)
		m, p = wire.Message{Flags: wire.Error | wire.Bare, Code: wire.ResourceExhausted, Text: []byte(text)}, payload{}
	}
	r := core.Reply{Flags: m.Flags &^ wire.Offered, Code: m.Code, Text: m.Text, Details: m.Details, Metadata: m.Metadata, Body: p.bytes}
	if p.slab != nil {
		r.Slab, r.Length = x.slabs.offers.add(p.slab), uint32(p.slab.used)
	}
	x.core.Finish(x.server.now(), slot, &r)
}
