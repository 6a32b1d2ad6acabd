package rnic

import (
	"sync"
	"sync/atomic"
)

// deviceLock is the token of whoever runs a device's engine. Who must not wait
// for it tries, and leaves a note: it is served when the lock is given up.
type deviceLock struct {
	sync.Mutex
	d     *Device
	notes noteList
}

// Unlock first does what was left for who has the lock.
func (l *deviceLock) Unlock() {
	for {
		if !l.notes.empty() {
			l.d.takeNotes()
			l.d.settle(doorbellBatches)
		}
		l.Mutex.Unlock()
		if l.notes.empty() || !l.Mutex.TryLock() {
			return // who has the lock now sees the note when it gives it up
		}
	}
}

// noteList holds queue pairs whose doorbell found the lock taken: a stack that
// needs no lock. A note stands for everything that was published before it.
type noteList struct{ top atomic.Pointer[QP] }

func (l *noteList) empty() bool { return l.top.Load() == nil }

// leave puts q in the list, unless it is in.
func (l *noteList) leave(q *QP) {
	if q.noted.Swap(true) {
		return // who takes it clears noted before it looks at the ring
	}
	for {
		top := l.top.Load()
		q.nextNote = top
		if l.top.CompareAndSwap(top, q) {
			return
		}
	}
}

// takeNotes does what doorbells would have done that found the lock taken.
// Preconditions: mu is held.
func (d *Device) takeNotes() {
	if d.mu.notes.empty() {
		return
	}
	for q := d.mu.notes.top.Swap(nil); q != nil; {
		next := q.nextNote
		q.nextNote = nil
		q.noted.Store(false)
		q.stream.waiting.Store(0)
		if !q.gone {
			for q.pull(d.now()) {
			}
			d.touch(q)
		}
		q = next
	}
}
