package drive

import (
	"context"
	"time"
)

// A program that waits for an event in the kernel, in a read of its completion
// channel, drives the device meanwhile, as one that leads does: its thread is
// there anyway, and another would have to be woken first.

// Attend drives the device while waits reports that the event is not there, for
// one or two times sleepFor, as its caller has signals blocked, or not at all:
// where others drive the device, or the program waits seldom. Then the listener
// does, and the caller waits for the event by other means.
func (d *Driver) Attend(waits func() bool) {
	a := &d.waiters
	until := d.now() + sleepFor
	for news := d.News(); waits(); news = d.News() {
		w := attention{context.Background(), news, &a.news, news, until}
		if !d.drive(&w) || d.now() >= w.until {
			a.attend.Store(false)
			d.enlist()
			return
		}
		a.attend.Store(true)
	}
}

// attends reports whether a program has just had an event by Attend and is
// expected back.
func (d *Driver) attends() bool {
	a := &d.waiters
	return a.attend.Load() && d.own.owner() == away && time.Duration(int64(d.now())-a.last.Load()) < PollPause
}
