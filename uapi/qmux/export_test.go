package qmux

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
