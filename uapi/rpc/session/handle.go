package session

import (
	"fmt"
	"runtime"
	"time"

	"github.com/rdmashim/rdmashim/uapi/rpc/session/core"
	"github.com/rdmashim/rdmashim/uapi/rpc/session/wire"
)

// ServerStream is the server's end of a stream. One goroutine sends and one
// receives, both before the handler returns.
type ServerStream struct {
	Method   string
	Metadata []byte

	stream *stream
}

// Send is Stream.Send; the error after the client's end is the context's.
func (s *ServerStream) Send(metadata []byte, b Body) error { return s.stream.send(metadata, b) }

// Recv is Stream.Recv. It returns io.EOF behind the client's CloseSend, and
// EMSGSIZE for a message longer than ServerConfig.MaxRequest, which is not
// READ.
func (s *ServerStream) Recv(take func(metadata, body []byte, has bool) error) error {
	return s.stream.receive(take)
}

// start starts the handler of a call or stream, whose body lies in the slab if
// it was READ. Preconditions: mu is held.
func (x *session) start(method string, m *wire.Message, stream bool, body *slab) {
	r := &running{session: x, slot: m.Slot, longest: x.link.longest, scope: scope{parent: x.link.life}}
	if m.Timeout > 0 {
		r.by = time.Now().Add(time.Duration(m.Timeout) * 10 * time.Microsecond)
	}
	x.calls[m.Slot] = r
	x.server.all.Add(1)
	if stream {
		r.stream = newStream(&r.scope, x)
		r.stream.link, r.stream.slot = x.link, m.Slot
		r.incoming = &ServerStream{Method: method, Metadata: clone(m.Metadata), stream: r.stream}
		x.seat(r)
		return
	}
	r.scratch = scratches.Get().(*scratch)
	r.request = Request{Method: method, Metadata: r.scratch.copy(m.Metadata), slab: body, memory: &x.slabs}
	if body != nil {
		r.request.Body = body.bytes()
		x.seat(r)
		return
	}
	r.request.Body = r.scratch.copy(m.Body)
	r.pace = x.server.paces.of(method)
	x.seat(r)
}

// seat runs a handler, when there is a place for it.
func (x *session) seat(r *running) {
	switch now, ok := x.server.seats.seat(r); {
	case !ok:
		r.refused(wire.ResourceExhausted, tooManyWait)
	case now && r.pace != nil && r.pace.brief():
		r.inline, x.link.started = true, r
	case now:
		go r.run()
	}
}

// unimplemented is the code of gRPC's.
const unimplemented = 12

// run runs the handler, which has its place, and has its answer sent.
func (r *running) run() {
	x, s := r.session, r.session.server
	defer s.all.Done()
	defer r.cancel()
	reply, took := r.answer()
	p, err := x.slabs.load(&r.scope, reply.Body, r.scratch)
	if err != nil {
		reply = Reply{Status: Status{Code: wire.ResourceExhausted, Text: fmt.Sprintf("the handler's answer: %v", err)}}
	}
	s.mu.Lock()
	r.end(&reply, p)
	s.seats.rise(x)
	s.offers.freed(s.core.Freed)
	s.idle.Broadcast()
	l, others := x.link, len(x.calls) > 0
	s.mu.Unlock()
	switch {
	case l == nil || r.inline && took < briefTime/4: // the reader flushes
		return
	case others && !r.inline:
		runtime.Gosched() // their answers go with this one
	}
	l.flush()
}

// answer is the handler's, and how long that took.
func (r *running) answer() (reply Reply, took time.Duration) {
	s := r.session.server
	if r.stream == nil && s.config.Unary == nil || r.stream != nil && s.config.Stream == nil {
		return Reply{Status: Status{Code: unimplemented, Text: "the server has no handler of this kind"}}, 0
	}
	defer r.request.Release()
	if r.late && r.Err() != nil {
		return Reply{Status: Status{Code: wire.Cancelled, Text: endedBefore}}, 0
	}
	if r.stream != nil {
		return s.config.Stream(&r.scope, r.incoming), 0
	}
	began := time.Now()
	reply = s.config.Unary(&r.scope, &r.request)
	took = time.Since(began)
	if r.pace != nil {
		r.pace.countRun(took)
	}
	return reply, took
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
		m.Offer.Length = uint32(p.length)
	}
	if err := m.Check(); err != nil || m.Length() > longest {
		text := fmt.Sprintf("the handler's answer does not fit into a message of %d bytes", longest)
		m, p = wire.Message{Flags: wire.Error | wire.Bare, Code: wire.ResourceExhausted, Text: []byte(text)}, payload{}
	}
	r := core.Reply{Flags: m.Flags &^ wire.Offered, Code: m.Code, Text: m.Text, Details: m.Details, Metadata: m.Metadata, Body: p.bytes}
	r.Slab, r.Length = x.slabs.offers.add(p)
	x.core.Finish(slot, &r)
}
