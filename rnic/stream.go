package rnic

import (
	"sync/atomic"
	"time"

	"github.com/rdmashim/rdmashim/rnic/engine"
)

// A program that posts one work request after the other makes a stream: it
// would pay a system call for each. Packets of one send cost a fraction of
// that. So while packets of the queue pair are under way, whose acknowledgement
// or timeout will come in any case, doorbells only leave a note: until there
// are streamMost of them, somebody works on the device, or the program looks
// for completions that are not there yet.
const (
	// streamGap is how soon a doorbell follows the one before in a stream.
	streamGap = 5 * time.Microsecond
	// streamAfter is how many more such doorbells than four times the others
	// make a stream, and streamEver is where the count ends.
	streamAfter = 8
	streamEver  = 64
	streamPause = 4
	// streamMost is how many notes wait at most.
	streamMost = 32
)

// stream is what a queue pair's doorbells know of each other.
type stream struct {
	last    atomic.Int64 // engine.Time of the end of the last one
	quick   atomic.Int32
	waiting atomic.Int32 // notes that nobody took
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
