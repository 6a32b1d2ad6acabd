package qmux

import "time"

// Leads reports whether a Read of the stream reads the byte stream itself.
func (s *Stream) Leads() bool {
	s.receive.c.mu.Lock()
	defer s.receive.c.mu.Unlock()
	return s.receive.c.incoming.turn.leader == s.receive.id
}

// Unsent is how many bytes of the Write that waits are in no record.
func (s *SendStream) Unsent() int {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	n, _ := s.c.core.Unsent(s.id)
	return n
}

// ExpireRead lets the deadline for Reads pass, as its timer does, behind what
// happens meanwhile, while no goroutine may lock the core.
func (s *Stream) ExpireRead(meanwhile func()) {
	r := &s.receive
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	meanwhile()
	r.deadline.set(time.Now(), nil)
	r.interrupt()
}
