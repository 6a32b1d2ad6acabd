package qmux

// Leads reports whether a Read of the stream reads the byte stream itself.
func (s *Stream) Leads() bool {
	s.receive.c.mu.Lock()
	defer s.receive.c.mu.Unlock()
	return s.receive.c.incoming.turn.leader == s.receive.id
}
