package virtual

import (
	"testing"

	scripts "github.com/rdmashim/rdmashim/tests/script"
)

// TestScripts plays testdata/*.txt.
func TestScripts(t *testing.T) {
	scripts.Play(t, func(*testing.T) scripts.Player { return new(script) })
}

// Do carries out a command.
func (s *script) Do(command string) error { return s.do(command) }

// Results returns what the commands led to, and why the world failed.
func (s *script) Results() ([]string, error) {
	out := s.out
	s.out = nil
	if s.w == nil {
		return out, nil
	}
	return out, s.w.Failure()
}
