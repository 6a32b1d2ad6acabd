package rnic

import (
	"sync/atomic"
	"time"

	"github.com/rdmashim/rdmashim/kshim/ring"
	"github.com/rdmashim/rdmashim/rnic/engine"
)

// Doorbell batching: a program that posts one work request after the other
// makes a stream, and would pay a system call for each. Packets of one send
// cost a fraction of that. So while packets of the queue pair are under way,
// whose acknowledgement or timeout will come in any case, doorbells only leave
// a note. The notes are served when there are streamMost of them, when another
// goroutine works on the device, or when the program looks for completions that
// are not there yet.

// streamMost is the most notes that wait, and streamBytes about the bytes of
// their messages.
const (
	streamMost  = 64
	streamBytes = 256 << 10
)

// stream is the state that a queue pair's doorbells share.
type stream struct {
	last  atomic.Int64 // engine.Time of the end of the last one, or of serving it
	quick atomic.Bool  // it came soon after the one before
	size  atomic.Int64 // bytes of the last message that was taken from the ring
	from  atomic.Int64 // 1 + the producer's index when the bell was spared; 0: it is not
}

// streams reports whether a doorbell may wait. It needs no lock.
func (q *QP) streams(now engine.Time) bool {
	s := &q.stream
	from := s.from.Load()
	full := from != 0 && q.sq.Since(uint32(from-1)) >= s.most()
	soon := full || time.Duration(int64(now)-s.last.Load()) <= ring.StreamGap(int(s.size.Load()))
	if quick := s.quick.Swap(soon); full || !quick || !soon {
		return false
	}
	if !q.flying.Load() || !q.bell.Load() || q.d.down.Load() {
		return false
	}
	s.last.Store(int64(now))
	return true
}

// took notes the length of a message that was taken from the ring.
func (s *stream) took(bytes uint32) {
	if n := int64(bytes); n != s.size.Load() { // a load costs less than a store
		s.size.Store(n)
	}
}

// most returns how many notes may wait.
func (s *stream) most() int {
	return max(min(streamBytes/max(int(s.size.Load()), 1), streamMost), 1)
}

// leaveNote leaves the work of a doorbell to the next holder of the lock, and
// that of those to come.
func (q *QP) leaveNote() {
	if s := &q.stream; s.from.Load() == 0 {
		s.from.Store(1 + int64(q.sq.Spare(s.most()-1)))
	}
	q.d.mu.notes.leave(q)
}

// served follows leaveNote: work requests that are published from now on need a
// doorbell. Next: pull. Preconditions: the note was taken out of the list, d.mu
// is held.
func (q *QP) served(now engine.Time) {
	q.sq.Ring()
	if s := &q.stream; s.from.Swap(0) != 0 {
		s.last.Store(int64(now))
	}
}
