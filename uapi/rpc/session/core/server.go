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
// Invariants: kept is the sum of the sessions' kept bytes, and old has an entry
// for each reply that counts in it, oldest first, beside entries of replies
// that are gone.
type Server struct {
	config   ServerConfig
	sessions map[[16]byte]*Session
	made     uint64 // sessions
	kept     int64
	serial   uint64 // of the last reply kept
	old      fifo[keptReply]
	live     int // entries of old whose replies are there
	freed    fifo[Slab]

	Executed   uint64 // calls whose handler was started
	Replays    uint64 // replies that were asked for again
	Attaches   uint64 // repeats of calls that run
	Voids      uint64 // calls that were given up before they arrived
	Tombstones uint64 // replies that were not kept
	Resumed    uint64 // connections of sessions that went on
	Dropped    uint64 // messages of another connection or call
}

// keptReply names a reply that counts, unless the slot's serial is another.
type keptReply struct {
	session *Session
	slot    uint16
	serial  uint64
}

// NewServer makes a server.
func NewServer(c ServerConfig) *Server {
	c.Slots = min(cmp.Or(max(c.Slots, 0), DefaultSlots), MaxSlots)
	c.Sessions = cmp.Or(max(c.Sessions, 0), MaxSessions)
	c.Kept = cmp.Or(max(c.Kept, 0), MaxKept)
	c.SessionKept = cmp.Or(max(c.SessionKept, 0), SessionKept)
	c.Lifetime = cmp.Or(max(c.Lifetime, 0), Lifetime)
	return &Server{config: c, sessions: map[[16]byte]*Session{}}
}

// Admit checks a client's attempt to connect to the session id with so many
// slots, and raises the session's epoch if it returns no error: ErrSlots,
// ErrBusy, ErrStale. The caller then destroys the session's older queue pair,
// calls Disconnected for it, accepts, and calls Connected; or Disconnected if
// accepting failed. The answer says the state, Session.Instance and
// Session.Slots.
func (s *Server) Admit(now Time, id [16]byte, epoch uint32, slots int) (*Session, SessionState, error) {
	x, state := s.sessions[id], Resumed
	switch {
	case slots < 1 || slots > MaxSlots || x != nil && slots < x.most:
		return nil, 0, ErrSlots
	case x == nil && (len(s.sessions) >= s.config.Sessions || s.kept >= s.config.Kept):
		return nil, 0, ErrBusy
	case epoch == 0 || x != nil && epoch <= x.epoch:
		return nil, 0, ErrStale
	case x != nil:
		s.Resumed++
	default:
		s.made++
		x = &Session{server: s, id: id, instance: s.config.Instance + s.made, most: min(slots, s.config.Slots)}
		s.sessions[id] = x
		if state = Unknown; epoch == 1 {
			state = New
		}
	}
	x.epoch, x.open, x.idleSince = epoch, true, now
	return x, state, nil
}

// Expire ends the sessions that have had neither a connection nor a handler for
// their lifetime, and returns when to call it again; ok is false if no session
// waits for its end.
func (s *Server) Expire(now Time, yield func(*Session)) (next Time, ok bool) {
	for _, x := range s.sessions {
		if x.open || x.handlers > 0 {
			continue
		}
		switch end := x.idleSince + s.config.Lifetime; {
		case end <= now:
			x.End(func(Event) {})
			yield(x)
		case !ok || end < next:
			next, ok = end, true
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

// keep counts n more bytes for the slot's reply, and gives up the oldest
// replies beyond the bounds: those of the session first.
func (s *Server) keep(x *Session, slot uint16, n int64) {
	y := &x.slots[slot]
	if n == 0 {
		return
	}
	if y.kept == 0 {
		s.serial++
		y.serial = s.serial
		s.old.push(keptReply{x, slot, s.serial})
		s.live++
	}
	y.kept += n
	x.kept += n
	s.kept += n
	for x.kept > s.config.SessionKept {
		x.entomb(x.oldest())
	}
	for s.kept > s.config.Kept {
		if k := *s.old.at(0); k.there() {
			k.session.entomb(k.slot)
		}
		s.old.pop(1)
	}
	if s.old.len() > 2*s.live+64 {
		left := s.old.items[:0]
		for _, k := range s.old.items[s.old.head:] {
			if k.there() {
				left = append(left, k)
			}
		}
		clear(s.old.items[len(left):])
		s.old = fifo[keptReply]{items: left}
	}
}

func (k keptReply) there() bool {
	y := &k.session.slots[k.slot]
	return y.kept > 0 && y.serial == k.serial
}

// unkeep no longer counts the slot's reply.
func (s *Server) unkeep(x *Session, y *serverSlot) {
	if y.kept > 0 {
		x.kept -= y.kept
		s.kept -= y.kept
		s.live--
		y.kept = 0
	}
}
