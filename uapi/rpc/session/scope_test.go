package session

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestScope: a scope ends as a context of package context would, whether or not
// its end was asked for before, and contexts below it end with it.
func TestScope(t *testing.T) {
	type key struct{}
	for name, c := range map[string]struct {
		timeout time.Duration
		end     func(s *scope, stop context.CancelFunc)
		err     error
	}{
		"cancelled":           {0, func(s *scope, _ context.CancelFunc) { s.cancel() }, context.Canceled},
		"with its parent":     {0, func(_ *scope, stop context.CancelFunc) { stop() }, context.Canceled},
		"at its deadline":     {time.Second, func(*scope, context.CancelFunc) { time.Sleep(time.Second) }, context.DeadlineExceeded},
		"before its deadline": {time.Hour, func(s *scope, _ context.CancelFunc) { s.cancel() }, context.Canceled},
	} {
		for _, asked := range []string{"before", "after"} {
			t.Run(name+", asked "+asked, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					parent, stop := context.WithCancel(context.WithValue(t.Context(), key{}, 7))
					defer stop()
					s := &scope{parent: parent}
					if c.timeout > 0 {
						s.by = time.Now().Add(c.timeout)
					}
					_, has := s.Deadline()
					require.Equal(t, c.timeout > 0, has)
					require.NoError(t, s.Err())
					require.Equal(t, 7, s.Value(key{}))
					var below context.Context
					told := make(chan struct{})
					if asked == "before" {
						below = context.WithValue(s, key{}, 8)
						unhook := context.AfterFunc(below, func() { close(told) })
						defer unhook()
						require.NoError(t, below.Err())
					}
					c.end(s, stop)
					synctest.Wait()
					require.Equal(t, c.err, s.Err())
					if below == nil {
						below = context.WithValue(s, key{}, 8)
						context.AfterFunc(below, func() { close(told) })
					}
					<-s.Done()
					<-told
					require.Equal(t, c.err, s.Err())
					require.Equal(t, c.err, below.Err())
					require.Equal(t, c.err, context.Cause(s))
					require.Equal(t, 7, s.Value(key{}))
					s.cancel()
					require.Equal(t, c.err, s.Err())
				})
			})
		}
	}
}
