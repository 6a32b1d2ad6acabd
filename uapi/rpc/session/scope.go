package session

import (
	"context"
	"sync"
	"time"
)

// scope is the context of a handler. The cancellable context is made when the
// handler, or a context below, first waits for its end: most handlers never do.
type scope struct {
	parent context.Context // the connection's, which has no deadline
	by     time.Time       // zero without a deadline

	mu   sync.Mutex
	over bool            // cancelled
	full context.Context // nil until it is made
	stop context.CancelFunc
}

// Deadline is the caller's.
func (s *scope) Deadline() (deadline time.Time, ok bool) { return s.by, !s.by.IsZero() }

// Done is closed at the scope's end.
func (s *scope) Done() <-chan struct{} { return s.made().Done() }

// Err is nil until the scope's end.
func (s *scope) Err() error {
	s.mu.Lock()
	full, over := s.full, s.over
	s.mu.Unlock()
	switch {
	case full == nil && over:
		return context.Canceled
	case full == nil && !s.by.IsZero() && !time.Now().Before(s.by):
		full = s.made()
	case full == nil:
		return s.parent.Err()
	}
	return full.Err()
}

// Value is the connection's.
func (s *scope) Value(key any) any {
	s.mu.Lock()
	full := s.full
	s.mu.Unlock()
	if full == nil {
		return s.parent.Value(key)
	}
	return full.Value(key) // package context finds what cancels it
}

// made returns the cancellable context, which it makes the first time.
func (s *scope) made() context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.full == nil {
		if s.by.IsZero() {
			s.full, s.stop = context.WithCancel(s.parent)
		} else {
			s.full, s.stop = context.WithDeadline(s.parent, s.by)
		}
		if s.over {
			s.stop()
		}
	}
	return s.full
}

// cancel ends the scope.
func (s *scope) cancel() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	if s.full != nil {
		s.stop()
	}
}
