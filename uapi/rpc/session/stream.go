package session

import (
	"context"
	"io"
	"slices"

	"github.com/rdmashim/rdmashim/uapi/rpc/session/core"
	"github.com/rdmashim/rdmashim/uapi/rpc/session/wire"
)

// stream is one end of a stream: the messages that came, and the one that is
// to be sent. The end's lock guards it.
//
// Invariants: in has the messages in the order in which they came; those whose
// bodies are being READ are not ready, and keep the ones behind them back.
type stream struct {
	end  end
	ctx  context.Context
	link *link // nil before the stream was opened on one, and after its end
	slot uint16

	in      []*entry
	ended   error         // behind in, once nothing more comes: io.EOF, or why
	arrived chan struct{} // tells the receiver to look

	out  *outgoing
	left chan struct{} // tells the sender to look
	over error         // why nothing more can be sent
}

// flow is the core's part of streams at either end.
type flow interface {
	Data(slot uint16, bytes int, slab core.Slab, length uint32) (core.Send, bool, error)
	Consumed(slot uint16, bytes int)
}

// entry is a message that came.
type entry struct {
	metadata []byte
	body     []byte
	has      bool  // there is a body
	slab     *slab // that has the body
	err      error // in place of a body that was not READ
	ready    bool
	bytes    int // of the window
}

// outgoing is a message that waits to be sent.
type outgoing struct {
	metadata []byte
	payload  payload
}

func newStream(ctx context.Context, e end) *stream {
	return &stream{end: e, ctx: ctx, arrived: make(chan struct{}, 1), left: make(chan struct{}, 1)}
}

// send sends metadata, a body, or both. It waits until the peer's window, and
// the connection, have room.
func (s *stream) send(metadata []byte, b Body) error {
	p, err := s.end.memory().load(s.ctx, b, nil)
	if err != nil {
		return err
	}
	defer p.drop()
	o := &outgoing{metadata: metadata, payload: p}
	if err := s.check(o); err != nil {
		return err
	}
	s.end.Lock()
	defer s.end.Unlock()
	for s.out = o; s.out == o && s.over == nil; {
		x := s.link
		if x != nil {
			x.speak(s)
		}
		s.end.Unlock()
		if x != nil {
			x.flush()
		}
		select {
		case <-s.left:
		case <-s.ctx.Done():
		}
		s.end.Lock()
		if err := s.ctx.Err(); err != nil && s.out == o {
			s.out = nil
			return err
		}
	}
	if s.out == o {
		s.out = nil
		return s.over
	}
	return nil
}

// check reports a message that no window has room for, or no connection.
func (s *stream) check(o *outgoing) error {
	m := wire.Message{Type: wire.StreamData, Sequence: 1, Stream: 1, Metadata: o.metadata, Body: o.payload.bytes}
	if err := m.Check(); err != nil {
		return err
	}
	s.end.Lock()
	defer s.end.Unlock()
	if s.link != nil {
		return fits(&m, s.link.longest)
	}
	return nil
}

// next returns the stream's message if there is one and the window has room.
// Preconditions: the end's lock is held.
func (s *stream) next() (m core.Send, ok bool) {
	o := s.out
	if o == nil || s.over != nil {
		return m, false
	}
	name, length := s.end.memory().offers.add(o.payload)
	m, ok, err := s.end.flow().Data(s.slot, len(o.metadata)+len(o.payload.bytes), name, length)
	if !ok && name != 0 {
		s.end.memory().offers.remove(name)
	}
	switch {
	case err != nil:
		s.silence(err)
		return m, false
	case !ok:
		return m, false // StreamRoom tells when
	}
	m.Metadata, m.Body = o.metadata, o.payload.bytes
	if !o.payload.has {
		m.Flags |= wire.Bare
	}
	s.out = nil
	wake(s.left)
	return m, true
}

// take takes a message in that has its body, or none.
func (s *stream) take(m *wire.Message) {
	if m.Type == wire.StreamHalf {
		s.finish(io.EOF)
		return
	}
	e := &entry{metadata: clone(m.Metadata), bytes: len(m.Metadata) + len(m.Body), ready: true}
	if m.Flags&wire.Bare == 0 {
		e.has, e.body = true, append([]byte{}, m.Body...)
	}
	s.in = append(s.in, e)
	wake(s.arrived)
}

// expect takes a message in whose body is to be READ.
func (s *stream) expect(m *wire.Message) *entry {
	e := &entry{metadata: clone(m.Metadata), bytes: len(m.Metadata), has: true}
	s.in = append(s.in, e)
	return e
}

// receive gives the next message to take, lent. It returns io.EOF behind the
// peer's last one.
func (s *stream) receive(take func(metadata, body []byte, has bool) error) error {
	s.end.Lock()
	for len(s.in) == 0 || !s.in[0].ready {
		err := s.ctx.Err()
		if len(s.in) == 0 && s.ended != nil {
			err = s.ended
		}
		if err != nil {
			s.end.Unlock()
			return err
		}
		s.end.Unlock()
		select {
		case <-s.arrived:
		case <-s.ctx.Done():
		}
		s.end.Lock()
	}
	e := s.in[0]
	s.in = s.in[1:]
	if s.link != nil {
		s.end.flow().Consumed(s.slot, e.bytes)
		s.link.wake()
	}
	s.end.Unlock()
	if e.err != nil {
		return e.err
	}
	err := take(e.metadata, e.body, e.has)
	if e.slab != nil {
		e.slab.drop()
	}
	return err
}

// finish tells that nothing more comes. Preconditions: the end's lock is held.
func (s *stream) finish(err error) {
	if s.ended == nil {
		s.ended = err
	}
	wake(s.arrived)
}

// silence tells that nothing more can be sent. Preconditions: the end's lock is
// held.
func (s *stream) silence(err error) {
	if s.over == nil {
		s.over = err
	}
	wake(s.left)
}

// breakOff ends the stream in both directions: its connection broke. Messages
// whose bodies were not READ are lost, and those behind them.
func (s *stream) breakOff(err error) {
	if i := slices.IndexFunc(s.in, func(e *entry) bool { return !e.ready }); i >= 0 {
		dropAll(s.in[i:])
		s.in, s.ended = s.in[:i], err
	}
	s.finish(err)
	s.silence(err)
	s.link = nil
}

// close lets go of messages that were not received.
func (s *stream) close() {
	dropAll(s.in)
	s.in = nil
	s.link = nil
}

// dropAll lets the slabs of messages go.
func dropAll(list []*entry) {
	for _, e := range list {
		if e.slab != nil {
			e.slab.drop()
		}
	}
}

// speak has the writer ask the stream for its message. Preconditions: the end's
// lock is held.
func (x *link) speak(s *stream) {
	if !slices.Contains(x.speakers, s) {
		x.speakers = append(x.speakers, s)
	}
	x.wake()
}

// spoken returns the next message of a stream, if there is one. Preconditions:
// the end's lock is held.
func (x *link) spoken() (m core.Send, ok bool) {
	for len(x.speakers) > 0 {
		s := x.speakers[0]
		x.speakers = x.speakers[1:]
		if m, ok = s.next(); ok {
			return m, true
		}
	}
	return m, false
}

// complete takes in that a message's body was READ.
func (s *stream) complete(f *fetch) {
	e := f.entry
	e.ready, e.slab, e.body = true, f.slab, f.slab.bytes()
	f.slab = nil
	wake(s.arrived)
}
