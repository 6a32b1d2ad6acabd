package rnic

import (
	"sync/atomic"
	"time"

	"github.com/rdmashim/rdmashim/rnic/engine"
)

// Doorbell batching: a program that posts one work request after the other
// makes a stream, and would pay a system call for each. Packets of one send
// cost a fraction of that. So while packets of the queue pair are under way,
// whose acknowledgement or timeout will come in any case, doorbells only leave
// a note. The notes are served when there are streamMost of them, when another
// goroutine works on the device, or when the program looks for completions that
// are not there yet.

// stream is the state that a queue pair's doorbells share.
type stream struct {
	last    atomic.Int64 // engine.Time of the end of the last one
	quick   atomic.Int32
	waiting atomic.Int32 // notes not served yet
}

// streams reports whether a doorbell may wait. It needs no lock.
func (q *QP) streams(now engine.Time) bool {
	s := &q.stream
	quick := s.quick.Load()
	if time.Duration(int64(now)-s.last.Load()) > streamGap {
		s.quick.Store(max(quick-streamPause, 0))
		return false
	}
	s.quick.Store(min(quick+1, streamEver))
	if quick < streamAfter || !q.flying.Load() || !q.bell.Load() || q.d.down.Load() || s.waiting.Add(1) >= streamMost {
		return false
	}
	s.last.Store(int64(now))
	return true
}
