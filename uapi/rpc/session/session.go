package session

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/rdmashim/rdmashim/uapi/msgring"
	"github.com/rdmashim/rdmashim/uapi/rpc/session/core"
	"github.com/rdmashim/rdmashim/uapi/rpc/session/wire"
)

// session is the server's end of a session. The server's mu guards it.
//
// Invariants: attempt is the newest that was admitted; the one before it had
// ended when the client got its answer. calls has the handlers that run.
type session struct {
	server  *Server
	core    *core.Session
	slabs   slabs
	life    context.Context // of the handlers
	stop    context.CancelFunc
	attempt *attempt // nil without one
	link    *link    // the attempt's connection, nil without one
	calls   map[uint16]*running
}

// attempt is an attempt of a client to connect, and then its connection.
type attempt struct {
	cancel context.CancelFunc
	over   chan struct{} // closed when nothing of it is left
}

// running is a handler that was started, or a call whose body is being READ.
type running struct {
	scope
	session *session
	slot    uint16
	longest int  // bytes of a message
	tooLong bool // the body is not READ

	request Request  // of a call
	scratch *scratch // has the request's bytes
	pace    *pace    // nil if it is not looked at
	inline  bool     // the handler runs in the reader, which flushes soon

	stream   *stream // nil of a call
	incoming *ServerStream
}

// answer admits a client, and answers it until its connection ends.
func (s *Server) answer(accept func(context.Context, msgring.Config) (*msgring.Conn, error)) {
	ctx, cancel := context.WithCancel(s.life)
	defer cancel()
	a := &attempt{cancel: cancel, over: make(chan struct{})}
	var x *session
	var epoch uint32
	config := s.config.ring()
	config.Admit = func(asked msgring.Session) (answer msgring.Session, err error) {
		epoch = asked.Epoch
		x, answer, err = s.admit(a, asked)
		return answer, err
	}
	conn, err := accept(ctx, config)
	if x == nil {
		return
	}
	if err == nil {
		err = x.converse(ctx, a, newLink(x, conn, epoch, s.config.InFlight))
	}
	s.mu.Lock()
	x.core.Disconnected(s.now(), epoch, x.event)
	if breach(err) {
		s.cutOff++
	}
	if breach(err) || err == io.EOF {
		x.core.End(x.event)
	}
	if x.attempt == a {
		x.attempt = nil
	}
	s.tidy()
	s.idle.Broadcast()
	s.mu.Unlock()
	close(a.over)
}

// admit decides about the session that a client asks for. Its older connection
// has ended when it returns.
func (s *Server) admit(a *attempt, asked msgring.Session) (*session, msgring.Session, error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, msgring.Session{}, &msgring.Refusal{Reason: msgring.ReasonBusy, Text: "the server is going away"}
	}
	c, state, err := s.core.Admit(s.now(), asked.ID, asked.Epoch, int(asked.Slots))
	if err != nil {
		s.mu.Unlock()
		return nil, msgring.Session{}, refusal(err)
	}
	x := s.sessions[c]
	if x == nil {
		x = &session{server: s, core: c, calls: map[uint16]*running{}}
		x.slabs.offers, x.slabs.owed, x.slabs.most = &s.offers, &s.owed, s.config.Loans
		x.life, x.stop = context.WithCancel(context.Background())
		s.sessions[c] = x
	}
	older := x.attempt
	x.attempt = a
	answer := msgring.Session{
		Slots: uint16(c.Slots()), Instance: c.Instance(), State: msgring.SessionState(state),
		Lifetime: uint32(s.config.Lifetime / time.Second),
	}
	s.mu.Unlock()
	if older != nil {
		older.cancel()
		<-older.over
	}
	return x, answer, nil
}

// refusal tells the client why the core does not admit it.
func refusal(err error) *msgring.Refusal {
	r := &msgring.Refusal{Reason: msgring.ReasonSlots, Text: err.Error()}
	switch {
	case errors.Is(err, core.ErrBusy):
		r.Reason, r.Text = msgring.ReasonBusy, "too many sessions"
	case errors.Is(err, core.ErrStale):
		r.Reason, r.Text = msgring.ReasonStale, "the session has a later connection"
	default:
		r.Text = "no such number of slots"
	}
	return r
}

// converse takes calls in on a connection until it ends. The error is
// link.converse's.
func (x *session) converse(ctx context.Context, a *attempt, l *link) error {
	s := x.server
	if l.life = x.life; s.config.ConnContext != nil {
		l.life = s.config.ConnContext(x.life, l.conn.Info().ConnInfo)
	}
	s.mu.Lock()
	if x.attempt == a {
		x.link = l
		x.core.Connected(l.epoch)
	} else {
		l.cut() // a later one is waiting for the end of this one
	}
	s.mu.Unlock()
	err := l.converse(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	l.forget()
	if x.link == l {
		x.link = nil
	}
	return err
}

// tidy ends the sessions whose time is over, lets go of those that have ended,
// and comes again when the next one's time is over. Preconditions: mu is held.
func (s *Server) tidy() {
	next, ok := s.core.Expire(s.now(), func(*core.Session) {})
	s.offers.freed(s.core.Freed)
	for c, x := range s.sessions {
		if c.Ended() && x.attempt == nil {
			delete(s.sessions, c)
			x.stop()
			x.slabs.close()
		}
	}
	if s.expiry != nil {
		s.expiry.Stop()
	}
	if ok && !s.closed {
		s.expiry = time.AfterFunc(time.Duration(next-s.now()), func() {
			s.mu.Lock()
			s.tidy()
			s.mu.Unlock()
		})
	}
}

// Lock, Unlock and memory are a connection's end.
func (x *session) Lock()          { x.server.mu.Lock() }
func (x *session) Unlock()        { x.server.mu.Unlock() }
func (x *session) memory() *slabs { return &x.slabs }
func (x *session) flow() flow     { return x.core }
func (x *session) alone() bool    { return false } // strangers' messages have no caller here

// wake has the session's connection look for messages. Preconditions: mu is
// held.
func (x *session) wake() {
	if x.link != nil {
		x.link.wake()
	}
}

// next appends the next message to send to b, if there is one.
func (x *session) next(l *link, b []byte) []byte {
	s := x.server
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() { s.offers.freed(s.core.Freed) }()
	if x.link != l {
		return b
	}
	m, ok := x.core.Next()
	if !ok {
		m, ok = l.spoken()
	}
	if l.writing = ok || len(b) > 0; ok {
		return l.append(b, &m)
	}
	if len(b) == 0 {
		s.idle.Broadcast()
	}
	return b
}

// receive takes in a message of the client.
func (x *session) receive(l *link, m *wire.Message) error {
	s := x.server
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() { s.offers.freed(s.core.Freed) }()
	e, err := x.core.Receive(l.epoch, m)
	switch e.Kind {
	case core.Execute, core.Open:
		x.start(e.Method, m, e.Kind == core.Open, nil)
	case core.Fetch:
		f := &fetch{message: keep(m), method: e.Method}
		if f.running = x.calls[m.Slot]; f.running != nil && m.Type == wire.StreamData {
			f.entry = f.running.stream.expect(m)
		} else {
			f.running = &running{tooLong: int(m.Offer.Length) > s.config.MaxRequest}
		}
		l.fetch(f)
	default:
		x.event(e)
	}
	return err // and the reader flushes
}

func (x *session) wanted(l *link, f *fetch) bool {
	return !f.running.tooLong && x.core.FetchWanted(l.epoch, f.message.Slot)
}

// fetched hands a body over that was READ.
func (x *session) fetched(l *link, f *fetch) {
	e := x.core.Fetched(l.epoch, f.message.Slot)
	switch {
	case e.Kind == core.Execute && f.running.tooLong:
		x.finish(f.message.Slot, &Reply{Status: Status{Code: wire.ResourceExhausted, Text: "the call's body is longer than the server takes"}}, payload{}, l.longest)
	case f.slab == nil:
	case e.Kind == core.Execute:
		x.start(f.method, &f.message, false, f.slab)
		f.slab = nil
	case e.Kind == core.StreamMessage:
		f.running.stream.complete(f)
	}
	if f.slab != nil {
		f.slab.drop()
		f.slab = nil
	}
	l.wake()
}

// event carries out an event. Preconditions: mu is held.
func (x *session) event(e core.Event) {
	r := x.calls[e.Slot]
	if r == nil {
		return
	}
	switch e.Kind {
	case core.CancelHandler:
		r.cancel()
		if r.stream != nil {
			r.stream.shatter(context.Canceled)
		}
	case core.StreamMessage:
		r.stream.take(e.Message)
	case core.StreamRoom:
		if x.link != nil {
			x.link.speak(r.stream)
		}
	}
}
