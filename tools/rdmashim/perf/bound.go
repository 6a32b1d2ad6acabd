package perf

import (
	"context"
	"errors"
	"time"
)

// A run with a duration ends whatever the path does: after the warm-up, the
// duration, and a while for what is still under way.
const (
	// warmest is how long such a run's warm-up takes at most.
	warmest = 2 * time.Second
	// patience is how long a side waits for requests that must complete at
	// once.
	patience = 5 * time.Second
)

// errOver ends a run with a duration although messages are under way.
var errOver = errors.New("the time for the run is over")

// longestRun is how long a run with a duration of d takes at most.
func longestRun(d time.Duration) time.Duration { return warmest + d + patience }

// bounded gives a run with a duration the time that it may take in all.
func (s *Side) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if d := s.Config.Duration; d > 0 {
		return context.WithTimeoutCause(ctx, longestRun(d), errOver)
	}
	return ctx, func() {}
}

// over makes the end of a run's time part of its result; other errors it
// returns.
func (s *Side) over(r *Result, err error) error {
	if !errors.Is(err, errOver) {
		return err
	}
	r.Unfinished, r.Unchecked = max(s.flying, 1), true
	return nil
}
