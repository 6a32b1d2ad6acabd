package core

import "cmp"

// ServerConfig bounds a server; 0 is the default.
type ServerConfig struct {
	Instance    uint64 // random, so that no two servers have the same
	Slots       int    // of a session, at most MaxSlots: DefaultSlots
	Sessions    int    // MaxSessions
	Kept        int64  // bytes of replies in all sessions: MaxKept
	SessionKept int64  // bytes of replies in a session: SessionKept
	Lifetime    Time   // of a session without a connection: Lifetime
}

// Server is the server's end of all its sessions. The caller serialises all
// calls to a server and its sessions.
//
// Invariants: kept is the sum of the sessions' kept bytes.
type Server struct {
	config   ServerConfig
	sessions map[[16]byte]*Session
	attempts map[[16]byte]*attempts
	shares   *Shares // of sessions
	made     uint64  // instances
	kept     int64
	serial   uint64 // of the last reply kept
	freed    fifo[Slab]

	Executed   uint64 // calls whose handler was started
	Replays    uint64 // replies that were asked for again
	Attaches   uint64 // repeats of calls that run
	Voids      uint64 // calls that were given up before they arrived
	Tombstones uint64 // replies that were not kept
	Resumed    uint64 // connections of sessions that went on
	Dropped    uint64 // messages of another connection or call
}

// NewServer makes a server.
func NewServer(c ServerConfig) *Server {
	c.Slots = min(cmp.Or(max(c.Slots, 0), DefaultSlots), MaxSlots)
	c.Sessions = cmp.Or(max(c.Sessions, 0), MaxSessions)
	c.Kept = cmp.Or(max(c.Kept, 0), MaxKept)
	c.SessionKept = cmp.Or(max(c.SessionKept, 0), SessionKept)
	c.Lifetime = cmp.Or(max(c.Lifetime, 0), Lifetime)
	return &Server{config: c, sessions: map[[16]byte]*Session{}, attempts: map[[16]byte]*attempts{}, shares: NewShares(int64(c.Sessions))}
}

// Answer is what a client hears of the session that it asks for.
type Answer struct {
	State    SessionState
	Instance uint64
	Slots    int
}

// attempts are the clients' attempts to connect to a session that have not
// ended. Only the newest may stand: its client has given the others up.
type attempts struct {
	count  int
	epoch  uint32 // of the newest
	answer Answer // to it
	fresh  bool   // the answer's session has yet to begin
}

// Admit answers a client that asks for the session id with so many slots:
// ErrSlots, ErrBusy, ErrStale. It makes no session: a request costs its sender
// nothing, and names an address of its choice. The caller calls Connect if the
// connection stands, and Leave when the attempt has ended in either way.
func (s *Server) Admit(from Address, id [16]byte, epoch uint32, slots int) (Answer, error) {
	x, t := s.sessions[id], s.attempts[id]
	if t == nil {
		t = &attempts{}
	}
	a := Answer{Resumed, t.answer.Instance, t.answer.Slots}
	switch {
	case epoch == 0 || epoch <= t.epoch || x != nil && epoch <= x.epoch:
		return a, ErrStale
	case x != nil:
		a.Instance, a.Slots = x.instance, x.most
	case t.fresh:
	case s.shares.full(from) && s.longestIdle(from) == nil:
		return a, ErrBusy
	default:
		a = Answer{Unknown, s.config.Instance + s.made + 1, min(slots, s.config.Slots)}
		if epoch == 1 {
			a.State = New
		}
	}
	if slots < max(a.Slots, 1) || slots > MaxSlots {
		return a, ErrSlots
	}
	if a.State != Resumed {
		s.made++
		t.fresh = true
	}
	t.count, t.epoch, t.answer = t.count+1, epoch, a
	s.attempts[id] = t
	return a, nil
}

// Leave tells that an attempt which was admitted has ended.
func (s *Server) Leave(id [16]byte) {
	if t := s.attempts[id]; t.count > 1 {
		t.count--
	} else {
		delete(s.attempts, id)
	}
}

// Find is the session id; nil if there is none.
func (s *Server) Find(id [16]byte) *Session { return s.sessions[id] }

// Connect tells that the connection of an attempt stands: its session begins,
// or goes on. The session's older connection was Disconnected before. end calls
// Session.End of one that makes room. Errors: ErrStale for an attempt that is
// not the newest, or whose session has ended; ErrBusy.
func (s *Server) Connect(from Address, id [16]byte, epoch uint32, end func(*Session)) (*Session, error) {
	x, t := s.sessions[id], s.attempts[id]
	switch {
	case epoch != t.epoch || x == nil && !t.fresh:
		return nil, ErrStale
	case x != nil:
		s.Resumed++
	default:
		if s.shares.full(from) {
			idle := s.longestIdle(from)
			if idle == nil {
				return nil, ErrBusy
			}
			end(idle)
		}
		x = &Session{server: s, id: id, share: s.shares.Join(from), instance: t.answer.Instance, most: t.answer.Slots}
		s.sessions[id], t.fresh = x, false
		s.shares.take(x.share, 1)
	}
	x.epoch, x.live, x.tellAway = epoch, epoch, x.away
	return x, nil
}

// longestIdle is the session that makes room for another one of an address
// which has its share: that of its own without a connection for longest, or of
// any address if it has none. It is nil if all of these have connections.
func (s *Server) longestIdle(from Address) (idle *Session) {
	share := s.shares.by[from]
	for _, x := range s.sessions {
		if x.live == 0 && (share == nil || x.share == share) && (idle == nil || x.idleSince < idle.idleSince) {
			idle = x
		}
	}
	return idle
}

// Expire has end call Session.End of the sessions that had no connection for
// their lifetime, and returns when to call it again; ok is false if no session
// is without one.
func (s *Server) Expire(now Time, end func(*Session)) (next Time, ok bool) {
	for _, x := range s.sessions {
		if x.live != 0 {
			continue
		}
		switch over := x.idleSince + s.config.Lifetime; {
		case over <= now:
			end(x)
		case !ok || over < next:
			next, ok = over, true
		}
	}
	return next, ok
}

// Sessions is how many sessions there are.
func (s *Server) Sessions() int { return len(s.sessions) }

// Kept is how many bytes of replies are kept.
func (s *Server) Kept() int64 { return s.kept }

// Freed returns a slab that is the caller's again.
func (s *Server) Freed() (slab Slab, ok bool) { return take(&s.freed) }

// keepReply counts n more bytes for the slot's reply, and gives up the
// session's oldest replies beyond its bounds: it keeps no more than what is
// left for all others.
func (s *Server) keepReply(x *Session, slot uint16, n int64) {
	y := &x.slots[slot]
	if n == 0 {
		return
	}
	if y.kept == 0 {
		s.serial++
		y.serial = s.serial
	}
	y.kept += n
	x.kept += n
	s.kept += n
	for x.kept > min(s.config.SessionKept, s.config.Kept-s.kept) && x.kept > 0 {
		x.entomb(x.oldest())
	}
}

// unkeep no longer counts the slot's reply.
func (s *Server) unkeep(x *Session, y *serverSlot) {
	if y.kept > 0 {
		x.kept -= y.kept
		s.kept -= y.kept
		y.kept = 0
	}
}
