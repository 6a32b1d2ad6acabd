package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"syscall"
	"time"

	"github.com/rdmashim/rdmashim/kshim/parties"
	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/msgring"
	"github.com/rdmashim/rdmashim/uapi/rpc/session/core"
	"github.com/rdmashim/rdmashim/uapi/rpc/session/wire"
)

// session is the server's end of a session. The server's mu guards it.
//
// Invariants: link is its connection from Connect to Disconnected. calls has
// the handlers that run, and the calls that wait for one.
type session struct {
	server *Server
	core   *core.Session
	slabs  slabs
	life   context.Context // of the handlers
	stop   context.CancelFunc
	link   *link // nil without one
	calls  map[uint16]*running

	seated       int         // handlers that run
	queue        []*running  // wait for a place
	places, room *core.Share // of the server's seats
}

// running is a handler that was started, or a call whose body is being READ.
type running struct {
	scope
	session *session
	slot    uint16
	longest int   // bytes of a message
	waits   int64 // bytes of seats.room, 0 if it does not wait for its place
	late    bool  // it has waited

	request Request  // of a call
	scratch *scratch // has the request's bytes
	pace    *pace    // nil if it is not looked at
	inline  bool     // the handler runs in the reader, which flushes soon

	stream   *stream // nil of a call
	incoming *ServerStream
}

// answer admits a client, and answers it until its connection ends.
func (s *Server) answer(request *uapi.Request) {
	from, asked := share(request.RemoteAddr), msgring.Session{}
	config := s.config.ring()
	config.Admit = func(q msgring.Session) (msgring.Session, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.closed {
			return msgring.Session{}, &msgring.Refusal{Reason: msgring.ReasonBusy, Text: "the server is going away"}
		}
		a, err := s.core.Admit(from, q.ID, q.Epoch, int(q.Slots))
		if err != nil {
			return msgring.Session{}, refusal(err)
		}
		asked = q
		return msgring.Session{
			Slots: uint16(a.Slots), Instance: a.Instance, State: msgring.SessionState(a.State),
			Lifetime: uint32(s.config.Lifetime / time.Second),
		}, nil
	}
	conn, err := msgring.Accept(s.life, request, config)
	if asked.Epoch == 0 {
		return
	}
	var x *session
	var l *link
	if err == nil {
		l = newLink(nil, conn, asked.Epoch, s.config.InFlight)
		x = s.connect(from, asked, l)
	}
	s.mu.Lock()
	s.core.Leave(asked.ID)
	s.mu.Unlock()
	switch {
	case x != nil:
		x.converse(l)
	case l != nil:
		_ = conn.Abort()
		_ = conn.CloseContext(context.Background())
	}
}

// connect makes a connection that stands its session's: a new one's, or that of
// the one that was asked for, whose older connection has ended then. It returns
// nil for a session that may not have it.
func (s *Server) connect(from core.Address, asked msgring.Session, l *link) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		if s.closed {
			return nil
		}
		x := s.sessions[s.core.Find(asked.ID)]
		if x == nil || x.link == nil || x.link.epoch > l.epoch {
			break
		}
		older := x.link
		older.cut()
		s.mu.Unlock()
		<-older.over
		s.mu.Lock()
	}
	c, err := s.core.Connect(from, asked.ID, l.epoch, s.end)
	if err != nil {
		return nil
	}
	x := s.sessions[c]
	if x == nil {
		x = &session{server: s, core: c, calls: map[uint16]*running{}}
		x.slabs.offers, x.slabs.owed, x.slabs.most = &s.offers, &s.owed, s.config.Loans
		x.slabs.account = s.budget.open(from)
		x.places, x.room = s.seats.places.Join(from), s.seats.room.Join(from)
		x.life, x.stop = context.WithCancel(context.Background())
		s.sessions[c] = x
	}
	x.link, l.end = l, x
	return x
}

// share is whose a client is, as shares count it.
func share(at netip.AddrPort) core.Address { return parties.Of(at.Addr()).Addr().As16() }

// refusal tells the client why the core does not admit it.
func refusal(err error) *msgring.Refusal {
	switch {
	case errors.Is(err, core.ErrBusy):
		return &msgring.Refusal{Reason: msgring.ReasonBusy, Text: "too many sessions"}
	case errors.Is(err, core.ErrStale):
		return &msgring.Refusal{Reason: msgring.ReasonStale, Text: "the session has a later connection"}
	}
	return &msgring.Refusal{Reason: msgring.ReasonSlots, Text: "no such number of slots"}
}

// converse takes calls in on a connection until it ends.
func (x *session) converse(l *link) {
	s := x.server
	if l.life = x.life; s.config.ConnContext != nil {
		l.life = s.config.ConnContext(x.life, l.conn.Info().ConnInfo)
	}
	err := l.converse(s.life)
	s.mu.Lock()
	defer s.mu.Unlock()
	defer close(l.over)
	for _, f := range l.fetches.queue {
		s.seats.room.Give(x.room, f.waits)
	}
	l.forget()
	x.link = nil
	x.core.Disconnected(s.now(), l.epoch, x.event)
	if breach(err) {
		s.cutOff++
	}
	if breach(err) || err == io.EOF || x.core.Ended() {
		s.end(x.core)
	}
	s.offers.freed(s.core.Freed)
	s.expireLater(s.config.Lifetime)
	s.idle.Broadcast()
}

// end ends a session, and cancels its handlers. Preconditions, here and below:
// mu is held.
func (s *Server) end(c *core.Session) {
	x := s.sessions[c]
	c.End(x.event)
	if x.link == nil { // else converse comes here
		delete(s.sessions, c)
		s.seats.places.Leave(x.places)
		s.seats.room.Leave(x.room)
		x.stop()
		x.slabs.close()
	}
	s.idle.Broadcast()
}

// expireLater ends the sessions whose time is over after a while, unless that
// is to be done sooner.
func (s *Server) expireLater(after time.Duration) {
	if s.expiry != nil {
		return
	}
	s.expiry = time.AfterFunc(after, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.expiry = nil
		now := s.now()
		next, ok := s.core.Expire(now, s.end)
		s.offers.freed(s.core.Freed)
		if ok {
			s.expireLater(time.Duration(next - now))
		}
	})
}

// A session is the end of its connection.
func (x *session) Lock()          { x.server.mu.Lock() }
func (x *session) Unlock()        { x.server.mu.Unlock() }
func (x *session) memory() *slabs { return &x.slabs }
func (x *session) flow() flow     { return x.core }
func (x *session) demand() demand { return many } // strangers' messages have no caller here

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
		f := &fetch{message: copyOffer(m), method: e.Method}
		if f.running = x.calls[m.Slot]; f.running != nil && m.Type == wire.StreamData {
			f.entry = f.running.stream.expect(m)
			if int(m.Offer.Length) > s.config.MaxRequest {
				f.refused = "the message is longer than the server takes"
			}
		} else {
			x.bound(f)
		}
		l.fetch(f)
	default:
		x.event(e)
	}
	return err // and the reader flushes
}

// bound takes room for a call that waits for its READ, or refuses it.
func (x *session) bound(f *fetch) {
	waits := waitingCall + int64(len(f.message.Metadata))
	switch s := x.server; {
	case int(f.message.Offer.Length) > s.config.MaxRequest:
		f.refused = "the call's body is longer than the server takes"
	case !s.seats.room.Take(x.room, waits):
		f.refused, f.message.Metadata = tooManyWait, nil
	default:
		f.waits = waits
	}
}

func (x *session) wanted(l *link, f *fetch) bool {
	return f.refused == "" && x.core.FetchWanted(l.epoch, f.message.Slot)
}

// fetched hands a body over that was READ.
func (x *session) fetched(l *link, f *fetch) {
	e := x.core.Fetched(l.epoch, f.message.Slot)
	x.server.seats.room.Give(x.room, f.waits)
	switch {
	case e.Kind == core.Execute && f.refused != "":
		x.finish(f.message.Slot, &Reply{Status: Status{Code: wire.ResourceExhausted, Text: f.refused}}, payload{}, l.longest)
	case e.Kind == core.StreamMessage && f.refused != "":
		f.entry.ready, f.entry.err = true, fmt.Errorf("rpc session: %s: %w", f.refused, syscall.EMSGSIZE)
		wake(f.running.stream.arrived)
	case f.slab == nil:
	case e.Kind == core.Execute:
		x.start(f.method, &f.message, false, f.slab)
		f.slab = nil
	case e.Kind == core.StreamMessage:
		f.running.stream.complete(f)
	}
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
		switch {
		case r.waits > 0:
			r.withdraw()
		case r.stream != nil:
			r.stream.breakOff(context.Canceled)
		}
	case core.StreamMessage:
		r.stream.take(e.Message)
	case core.StreamRoom:
		if x.link != nil {
			x.link.speak(r.stream)
		}
	}
}
