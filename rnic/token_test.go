package rnic

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A goroutine that unlocks serves the notes that come meanwhile, but leaves
// them to the worker where they do not end.
func TestUnlockServesSoManyNotes(t *testing.T) {
	for _, c := range []struct{ notes, served, rests int }{{0, 0, 0}, {1, 1, 0}, {noteRounds, noteRounds, 0}, {100, noteRounds, 1}} {
		var l deviceLock
		left, served, rests := c.notes, 0, 0
		leave := func() {
			if left > 0 {
				left--
				l.notes.leave(&QP{})
			}
		}
		l.serve = func() {
			require.False(t, l.Mutex.TryLock(), "with the lock")
			l.notes.top.Store(nil)
			served++
			leave()
		}
		l.rest = func() {
			require.True(t, l.Mutex.TryLock(), "without the lock")
			require.False(t, l.notes.empty())
			rests++
		}
		l.Mutex.Lock()
		leave()
		l.Unlock()
		require.Equal(t, c.served, served, "%+v", c)
		require.Equal(t, c.rests, rests, "%+v", c)
	}
}
