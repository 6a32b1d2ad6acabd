package rnic

import "sync"

// deviceLock is the token of the goroutine that runs a device's engine. A
// caller that must not block uses TryLock and, on failure, leaves a note;
// Unlock serves the notes (flat combining).
type deviceLock struct {
	sync.Mutex
	notes noteList
	serve func() // does the work of the notes; with the lock
	rest  func() // lets another goroutine take the lock, and give it up
}

// noteRounds is how many times a goroutine that gives the device up serves the
// notes of others; then the worker does.
const noteRounds = 4

// Unlock serves the notes before it gives the lock up. It does so noteRounds
// times at most, since they may come as fast as it serves them.
func (l *deviceLock) Unlock() {
	for rounds := 0; ; rounds++ {
		if !l.notes.empty() {
			if rounds == noteRounds {
				l.Mutex.Unlock()
				l.rest()
				return
			}
			l.serve()
		}
		l.Mutex.Unlock()
		if l.notes.empty() || !l.Mutex.TryLock() {
			return // the new holder sees the note at its Unlock
		}
	}
}

// serveNotes is the device's deviceLock.serve.
func (d *Device) serveNotes() {
	d.takeNotes()
	d.serveChanged(doorbellBatches)
}

// takeNotes does the work of the doorbells that found the lock taken.
// Preconditions: mu is held.
func (d *Device) takeNotes() {
	if d.mu.notes.empty() {
		return
	}
	d.mu.notes.take(func(q *QP) {
		if q.gone { // and its ring perhaps another's
			return
		}
		now := d.now()
		q.served(now)
		for q.pull(now) {
		}
		d.schedule(q)
	})
}
