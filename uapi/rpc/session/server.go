package session

import (
	"cmp"
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/msgring"
	"github.com/rdmashim/rdmashim/uapi/rpc/session/core"
	"github.com/rdmashim/rdmashim/uapi/rpc/session/wire"
)

// ServerConfig says how to make a server; a zero field is the default in
// parentheses. Bounds of the server are shared among addresses: see the
// package's part on strangers.
type ServerConfig struct {
	// Unary answers the calls of all methods. Its context ends with the
	// caller's deadline or cancel, and with the session: a call goes on when
	// its connection breaks (every call is answered UNIMPLEMENTED).
	Unary func(ctx context.Context, r *Request) Reply
	// Stream answers the streams of all methods, with trailers as the reply's
	// metadata and no body. Its context ends with the connection, too (every
	// stream is answered UNIMPLEMENTED).
	Stream func(ctx context.Context, s *ServerStream) Reply

	// ConnContext makes the context below which the handlers of a connection's
	// calls have theirs; nil adds nothing to the one that it would be given.
	ConnContext func(ctx context.Context, conn uapi.ConnInfo) context.Context

	Ring          int           // as msgring.Config.Ring
	Service       string        // that clients ask for (any)
	MaxConcurrent int           // handlers that run; other calls wait (1,024)
	MaxRequest    int           // bytes of a call's body, or a stream's message; longer ones are refused (64 MiB)
	Sessions      int           // others make idle ones end, or are told BUSY (4,096)
	Slots         int           // of a session: calls under way (256)
	Kept          int64         // bytes of answers kept for all sessions (1 GiB)
	SessionKept   int64         // bytes of answers kept for a session (16 MiB)
	InFlight      int           // bytes of bodies that are READ at a time for a session, but for one (64 MiB)
	Bodies        int64         // bytes of bodies of all sessions' calls, and as many of answers that clients READ; at least 129 MiB (512 MiB)
	Loans         int           // bytes of a session's Memory that are lent at a time (64 MiB)
	Lifetime      time.Duration // of a session without a connection, in whole seconds (60 s)
}

// Request is a call that a handler answers.
type Request struct {
	Method   string
	Metadata []byte // lent to the handler and its Reply
	Body     []byte // lent until Release, or the handler returns

	slab   *slab
	memory *slabs
}

// Release ends the loan of the body.
func (r *Request) Release() {
	if r.slab != nil {
		r.slab.drop()
		r.slab = nil
	}
	r.Body = nil
}

// Reply is a handler's answer.
type Reply struct {
	Status   Status
	Metadata []byte // at most 65,535 bytes
	Body     Body   // nil for none, which differs from an empty one
}

// Server answers the calls of clients.
type Server struct {
	config ServerConfig
	life   context.Context // ends with Stop
	stop   context.CancelFunc
	accept context.Context // ends with GracefulStop
	refuse context.CancelFunc
	began  time.Time
	all    sync.WaitGroup
	ended  func()          // ends over
	over   context.Context // ends when Stop is about to return
	offers offers
	paces  paces
	owed   atomic.Int64 // loans of sessions that have ended

	mu       sync.Mutex
	closed   bool // no more connections
	core     *core.Server
	sessions map[*core.Session]*session
	expiry   *time.Timer
	seats    seats
	budget   *budget
	idle     sync.Cond // on mu: a session may be quiet
	cutOff   uint64
}

// ServerStats count a server's work.
type ServerStats struct {
	Sessions   int    // now
	Executed   uint64 // calls whose handler was started
	Replays    uint64 // answers that were sent again
	Attaches   uint64 // repeats of calls that ran
	Resumed    uint64 // connections of sessions that went on
	Voids      uint64 // calls that were given up before they arrived
	Tombstones uint64 // answers that were not kept
	KeptBytes  int64  // of answers, now
	CutOff     uint64 // connections whose client broke the protocol
	Dropped    uint64 // messages of older connections or calls
	Loans      int64  // of Memory, not released though their session has ended
}

// NewServer makes a server. The error is EINVAL for a configuration that is not
// one.
func NewServer(config ServerConfig) (*Server, error) {
	ring := config.ring()
	if err := ring.Check(); err != nil {
		return nil, err
	}
	c := &config
	if min(c.MaxConcurrent, c.MaxRequest, c.Sessions, c.Slots, c.InFlight, c.Loans) < 0 || min(c.Kept, c.SessionKept, int64(c.Lifetime)) < 0 ||
		c.Bodies != 0 && c.Bodies < 2*wire.MaxBody || c.Slots > core.MaxSlots || c.Unary == nil && c.Stream == nil {
		return nil, errConfig("ServerConfig")
	}
	c.MaxRequest = cmp.Or(c.MaxRequest, wire.MaxBody)
	c.Bodies = cmp.Or(c.Bodies, 512<<20)
	c.InFlight = cmp.Or(c.InFlight, wire.MaxBody)
	c.Loans = cmp.Or(c.Loans, defaultLoans)
	c.Lifetime = max(cmp.Or(c.Lifetime, time.Duration(core.Lifetime)).Truncate(time.Second), time.Second)
	s := &Server{
		config: config, began: time.Now(), sessions: map[*core.Session]*session{},
		budget: newBudget(config.Bodies),
		seats:  seats{places: core.NewShares(int64(cmp.Or(config.MaxConcurrent, 1024))), room: core.NewShares(waitingRoom)},
		core: core.NewServer(core.ServerConfig{
			Instance: rand.Uint64(), Slots: c.Slots, Sessions: c.Sessions,
			Kept: c.Kept, SessionKept: c.SessionKept, Lifetime: core.Time(c.Lifetime),
		}),
	}
	s.idle.L = &s.mu
	s.life, s.stop = context.WithCancel(context.Background())
	s.accept, s.refuse = context.WithCancel(s.life)
	s.over, s.ended = context.WithCancel(context.Background())
	return s, nil
}

func (c *ServerConfig) ring() msgring.Config {
	return msgring.Config{Mode: msgring.Messages, Ring: c.Ring, Service: c.Service, Linger: linger}
}

func (s *Server) now() core.Time { return core.Time(time.Since(s.began)) }

// Stats returns what the server has done so far.
func (s *Server) Stats() ServerStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.core
	return ServerStats{
		Sessions: c.Sessions(), Executed: c.Executed, Replays: c.Replays, Attaches: c.Attaches, Resumed: c.Resumed,
		Voids: c.Voids, Tombstones: c.Tombstones, KeptBytes: c.Kept(), CutOff: s.cutOff, Dropped: c.Dropped, Loans: s.owed.Load(),
	}
}

// Serve answers the clients that connect to l, until Stop or GracefulStop has
// ended all connections, when it returns nil: a program whose main function
// ends with Serve has answered its calls. It also ends when l fails. The
// listener remains the caller's.
func (s *Server) Serve(l *uapi.Listener) error {
	for {
		request, err := l.Accept(s.accept)
		switch {
		case s.accept.Err() != nil:
			if err == nil {
				_ = request.Reject(0, nil)
			}
			<-s.over.Done()
			return nil
		case err != nil:
			return err
		}
		if !s.begin(request) {
			_ = request.Reject(0, nil) // and accept has ended
		}
	}
}

// begin answers a client in a goroutine of its own. It returns false when the
// server takes no more.
func (s *Server) begin(request *uapi.Request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.all.Add(1)
	go func() {
		defer s.all.Done()
		s.answer(request)
	}()
	return true
}

// Cut breaks a random connection off, for tests of programs that stand on
// sessions. It returns false if there is none.
func (s *Server) Cut() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.sessions { // in an order of Go's choice
		if x.link != nil {
			x.link.cut()
			return true
		}
	}
	return false
}

// GracefulStop takes no more connections and calls, waits until the handlers
// that run have answered, and stops.
func (s *Server) GracefulStop() {
	s.refuse()
	s.mu.Lock()
	s.closed = true
	for _, x := range s.sessions {
		x.core.GoAway()
		x.wake()
	}
	for !s.quiet() {
		s.idle.Wait()
	}
	s.mu.Unlock()
	s.Stop()
}

// quiet reports whether no handler runs, and no answer waits to be sent.
func (s *Server) quiet() bool {
	for _, x := range s.sessions {
		if !x.core.Quiet() || x.link != nil && x.link.writing {
			return false
		}
	}
	return true
}

// Stop ends all sessions, which cancels the handlers, and returns when all
// connections and handlers have ended. Answers of cancelled handlers are
// dropped.
func (s *Server) Stop() {
	s.refuse()
	s.mu.Lock()
	s.closed = true
	for c, x := range s.sessions {
		if x.link != nil {
			_ = x.link.conn.CloseWrite() // the client then closes
		}
		s.end(c)
	}
	s.offers.freed(s.core.Freed)
	s.idle.Broadcast()
	s.mu.Unlock()
	timer := time.AfterFunc(linger, s.stop)
	s.all.Wait()
	timer.Stop()
	s.stop()
	defer s.ended()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.expiry != nil {
		s.expiry.Stop()
	}
}
