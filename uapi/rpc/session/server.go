package session

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/msgring"
	ringcore "github.com/rdmashim/rdmashim/uapi/msgring/core"
	"github.com/rdmashim/rdmashim/uapi/rpc/session/core"
	"github.com/rdmashim/rdmashim/uapi/rpc/session/wire"
)

// ServerConfig says how to make a server; a zero field is the default in
// parentheses.
type ServerConfig struct {
	// Unary answers the calls of all methods; it is needed. Its context ends
	// with the caller's deadline or cancel, and with the connection.
	Unary         func(ctx context.Context, r *Request) Answer
	Ring          int    // as msgring.Config.Ring
	Service       string // that clients ask for (any)
	MaxConcurrent int    // handlers that run; other calls wait (1,024)
	Sessions      int    // connections; others are refused (4,096)
}

// Request is a call that a handler answers. Its bytes are the handler's.
type Request struct {
	Method         string
	Metadata, Body []byte
}

// Server answers the calls of clients.
type Server struct {
	config ServerConfig
	life   context.Context // ends with Stop
	stop   context.CancelFunc
	began  time.Time
	room   chan struct{} // has an element for each handler that runs
	all    sync.WaitGroup

	mu     sync.Mutex
	closed bool
	core   *core.Server // guarded by mu, with its sessions
}

// NewServer makes a server. The error is EINVAL for a configuration that is not
// one.
func NewServer(config ServerConfig) (*Server, error) {
	ring := config.ring()
	if err := ring.Check(); err != nil {
		return nil, err
	}
	if config.Unary == nil || config.MaxConcurrent < 0 || config.Sessions < 0 {
		return nil, fmt.Errorf("rpc session: ServerConfig has no Unary, or a negative bound: %w", syscall.EINVAL)
	}
	s := &Server{
		config: config, began: time.Now(),
		room: make(chan struct{}, cmp.Or(config.MaxConcurrent, 1024)),
		core: core.NewServer(core.ServerConfig{Sessions: config.Sessions}),
	}
	s.life, s.stop = context.WithCancel(context.Background())
	return s, nil
}

func (c *ServerConfig) ring() msgring.Config {
	return msgring.Config{Mode: msgring.Messages, Ring: c.Ring, Service: c.Service, Linger: linger}
}

// Executed is how many calls had their handler started.
func (s *Server) Executed() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.core.Executed
}

// Serve answers the clients that connect to l, until Stop, when it returns nil,
// or l fails. The listener remains the caller's.
func (s *Server) Serve(l *uapi.Listener) error {
	for {
		request, err := l.Accept(s.life)
		switch {
		case s.life.Err() != nil:
			if err == nil {
				err = request.Reject(0, nil)
			}
			return nil
		case err != nil:
			return err
		}
		s.mu.Lock()
		closed := s.closed
		if !closed {
			s.all.Add(1)
		}
		s.mu.Unlock()
		if closed {
			return request.Reject(0, nil)
		}
		go func() {
			defer s.all.Done()
			s.accept(request)
		}()
	}
}

// Stop ends all connections, then cancels the handlers, and returns when both
// have ended. What a cancelled handler answers reaches nobody.
func (s *Server) Stop() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.stop()
	s.all.Wait()
}

func (s *Server) now() core.Time { return core.Time(time.Since(s.began)) }

// accept answers a client until its connection ends.
func (s *Server) accept(request *uapi.Request) {
	var id [16]byte
	_, _ = rand.Read(id[:])
	s.mu.Lock()
	session, _, err := s.core.Admit(s.now(), id, 1, core.DefaultSlots)
	s.mu.Unlock()
	if err != nil {
		refusal := msgring.Refusal{Reason: ringcore.ReasonBusy, Text: err.Error()}
		_ = request.Reject(uapi.RejectedByProgram, refusal.Append(nil))
		return
	}
	x := &link{server: s, core: session, work: make(chan struct{}, 1), cancels: map[uint16]context.CancelFunc{}}
	x.life, x.stop = context.WithCancel(context.Background())
	conn, err := msgring.Accept(s.life, request, s.config.ring())
	if err == nil {
		x.converse(conn)
	}
	s.mu.Lock()
	session.Disconnected(s.now(), 1, func(core.Event) {})
	session.End(func(core.Event) {})
	s.mu.Unlock()
	x.stop()
}

// link is the connection of a session. The server's mu guards core and cancels.
type link struct {
	server  *Server
	core    *core.Session
	life    context.Context // of the handlers; ends after the connection
	stop    context.CancelFunc
	work    chan struct{}
	longest int // bytes of a message
	cancels map[uint16]context.CancelFunc
}

func (x *link) converse(conn *msgring.Conn) {
	x.longest = conn.Info().Longest
	x.server.mu.Lock()
	x.core.Connected(1)
	x.server.mu.Unlock()
	unhook := context.AfterFunc(x.server.life, func() { _ = conn.Abort() })
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		receive(conn, x.receive)
	}()
	send(conn, x.work, heard, x.next)
	unhook()
	_ = conn.Abort()
	<-heard
	_ = conn.CloseContext(context.Background())
}

// next appends the next message to send to b, if there is one.
func (x *link) next(b []byte) []byte {
	x.server.mu.Lock()
	defer x.server.mu.Unlock()
	if m, ok := x.core.Next(); ok {
		return m.Append(b)
	}
	return b
}

// receive takes in a message of the client. An error cuts the client off.
func (x *link) receive(m *wire.Message) error {
	s := x.server
	s.mu.Lock()
	defer s.mu.Unlock()
	e, err := x.core.Receive(1, m)
	switch e.Kind {
	case core.Execute:
		ctx, cancel := context.WithCancel(x.life)
		if m.Timeout > 0 {
			ctx, cancel = context.WithTimeout(x.life, time.Duration(m.Timeout)*10*time.Microsecond)
		}
		x.cancels[e.Slot] = cancel
		r := &Request{Method: e.Method, Metadata: clone(m.Metadata), Body: clone(m.Body)}
		s.all.Add(1)
		go func() {
			defer s.all.Done()
			x.handle(ctx, e.Slot, r)
			cancel()
		}()
	case core.CancelHandler:
		if cancel := x.cancels[e.Slot]; cancel != nil {
			cancel()
		}
	case core.Open:
		x.core.Finish(s.now(), e.Slot, &core.Reply{Flags: wire.Error, Code: unimplemented, Text: []byte("the server has no streams")})
	case core.Fetch:
		err = errors.Join(err, errOffered)
	}
	wake(x.work)
	return err
}

// unimplemented is the code of gRPC's.
const unimplemented = 12

// handle runs the handler of a call when there is room, and sends its answer.
func (x *link) handle(ctx context.Context, slot uint16, r *Request) {
	s := x.server
	var a Answer
	select {
	case s.room <- struct{}{}:
		a = s.config.Unary(ctx, r)
		<-s.room
	case <-ctx.Done():
		a.Status = Status{Code: wire.Cancelled, Text: "the call ended before its handler could start"}
	}
	reply := a.reply(x.longest)
	s.mu.Lock()
	delete(x.cancels, slot)
	x.core.Finish(s.now(), slot, &reply)
	s.mu.Unlock()
	wake(x.work)
}

// reply is the answer as a REPLY of at most so many bytes, else a status that
// says that it is longer.
func (a *Answer) reply(longest int) core.Reply {
	m := wire.Message{Type: wire.Reply, Sequence: 1, Metadata: a.Metadata, Body: a.Body}
	if a.Body == nil {
		m.Flags |= wire.Bare
	}
	if a.Status.Code != 0 {
		m.Flags |= wire.Error
		m.Code, m.Text, m.Details = a.Status.Code, []byte(a.Status.Text), a.Status.Details
	}
	if err := m.Check(); err != nil || m.Length() > longest {
		text := fmt.Sprintf("the handler's answer does not fit into a message of %d bytes", longest)
		return core.Reply{Flags: wire.Error | wire.Bare, Code: wire.ResourceExhausted, Text: []byte(text)}
	}
	return core.Reply{Flags: m.Flags, Code: m.Code, Text: m.Text, Details: m.Details, Metadata: m.Metadata, Body: m.Body}
}
