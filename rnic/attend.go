package rnic

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"
)

// Leader/followers: a program that waits for completion after completion does
// the listener's work itself (it is the attendant), so that a packet wakes it
// without a goroutine between them. The listener is parked meanwhile, as it is
// for a program that polls.
const (
	// prompt bounds the time from the end of a wait to the next one of a
	// streak. With 100 µs a stream of 1 MiB messages through a ring of 256 KiB
	// waited for events, and had 0.6 of its bandwidth.
	prompt = time.Millisecond
	// attendAfter is the number of prompt waits in a row before a program may
	// attend.
	attendAfter = 8
	// eager caps the streak of prompt waits; a late wait subtracts late from
	// it.
	eager = 4 * attendAfter
	late  = 8
	// rivalry is the number of waits without an attendant after two programs
	// wanted to attend: with several, events are fairer.
	rivalry = 128
)

// attendance is the state that the attendant, the listener and the writers of
// completions share.
type attendance struct {
	busy    atomic.Bool   // there is an attendant
	blocked atomic.Int32  // the attendant's wait, which Rouse interrupts: forNothing …
	news    atomic.Uint32 // completions
	last    atomic.Int64  // engine.Time of the last end of a wait
	told    atomic.Uint64 // events that were raised
	quick   atomic.Int32  // how many times in a row a program was prompt
	armed   atomic.Bool   // a program waits for an event that was not raised yet

	asleep  atomic.Bool   // the listener is parked until a call of unpark
	listens chan struct{} // a token: the listener has decided whether to park

	// ends is the Done channel of the attendant's context; closing it wakes the
	// attendant. A program keeps one context as a rule, so that follow seldom
	// changes it. Both belong to the attendant.
	ends   <-chan struct{}
	forget func() bool
	spin   spinner // the attendant's
}

// The waits of an attendant.
const (
	forNothing = iota
	forLink
	forListener // to leave the link
)

// attention holds the conditions that end an Attend, besides trouble.
type attention struct {
	ctx   context.Context
	news  uint32
	wakes *atomic.Uint32
	seen  uint32
}

func (w *attention) due(a *attendance) bool {
	return a.news.Load() != w.news || w.wakes.Load() != w.seen || w.ctx.Err() != nil
}

// News counts completions; see kshim.Attender.
func (d *Device) News() uint32 { return d.attendance.news.Load() }

// Attend drives the device in place of the listener until the completion count
// differs from news, wakes differs from seen, or ctx is done; see
// kshim.Attender.
func (d *Device) Attend(ctx context.Context, news uint32, wakes *atomic.Uint32, seen uint32) bool {
	a := &d.attendance
	if !a.busy.CompareAndSwap(false, true) {
		a.quick.Store(-rivalry)
		d.Rouse()
		return false
	}
	w := attention{ctx, news, wakes, seen}
	did := w.due(a)
	if !did && d.mayAttend() {
		a.follow(ctx, d)
		a.armed.Store(false)
		did = d.takeOver(&w) && d.attend(&w) || w.due(a)
		a.last.Store(int64(d.now()))
	}
	a.busy.Store(false)
	if a.asleep.Load() {
		d.unpark()
	}
	return did
}

// mayAttend reports whether the program waits promptly, completion after
// completion.
func (d *Device) mayAttend() bool {
	a := &d.attendance
	if d.down.Load() { // Arm says so
		return false
	}
	// A rival changes quick as well, and wins.
	q := a.quick.Load()
	if time.Duration(int64(d.now())-a.last.Load()) > prompt {
		if q > 0 {
			a.quick.CompareAndSwap(q, max(q-late, 0))
		}
		return false
	}
	if q < eager {
		a.quick.CompareAndSwap(q, q+1)
	}
	return a.quick.Load() >= attendAfter
}

// attended reports whether a program attends at present, or has just done so
// and does not wait for an event instead.
func (d *Device) attended() bool {
	a := &d.attendance
	return a.quick.Load() >= attendAfter &&
		(a.busy.Load() || !a.armed.Load() && time.Duration(int64(d.now())-a.last.Load()) < pollPause)
}

// takeOver waits until the listener has left the link, which may take long
// while packets come. It returns false when waiting is no longer worth it. busy
// keeps the listener away.
func (d *Device) takeOver(w *attention) bool {
	a := &d.attendance
	a.blocked.Store(forListener)
	defer a.blocked.Store(forNothing)
	for !d.polling.parked.Load() {
		// A rival came, or the listener has ended: each calls decided.
		if w.due(a) || a.quick.Load() < attendAfter || d.down.Load() {
			return false
		}
		d.link.Interrupt()
		select {
		case <-a.listens:
		case <-d.quit:
			return false
		}
	}
	d.calm()
	return true
}

// decided tells takeOver to look again: the listener has parked, or not.
func (a *attendance) decided() {
	select {
	case a.listens <- struct{}{}:
	default:
	}
}

func (d *Device) attend(w *attention) bool {
	a := &d.attendance
	for {
		if a.news.Load() == w.news {
			d.catchUp() // the program has had its turn
		}
		if a.spin.worth() {
			var err error
			did := d.spin(func() bool {
				err = d.attendLink(w)
				return a.news.Load() != w.news || err != nil
			})
			if a.spin.paid(did); err != nil {
				a.quick.Store(0)
				return false
			}
		}
		// A writer of news or wakes looks at blocked afterwards.
		a.blocked.Store(forLink)
		done := w.due(a)
		var err error
		if !done && a.quick.Load() >= attendAfter {
			err = d.link.Wait()
		}
		a.blocked.Store(forNothing)
		if done {
			return true
		}
		if err == nil {
			err = d.attendLink(w)
		}
		if err != nil {
			a.quick.Store(0) // the listener meets it too, and deals with it
		}
		if a.quick.Load() < attendAfter {
			return false
		}
	}
}

// follow makes the end of ctx call Rouse.
func (a *attendance) follow(ctx context.Context, d *Device) {
	if ctx.Done() == a.ends {
		return
	}
	if a.forget != nil {
		a.forget()
	}
	if a.ends, a.forget = ctx.Done(), nil; a.ends != nil {
		a.forget = context.AfterFunc(ctx, d.Rouse)
	}
}

// end lets go of the context when the link is closed. No program attends after
// that.
func (a *attendance) end() {
	for !a.busy.CompareAndSwap(false, true) {
		runtime.Gosched() // the attendant is on its way out
	}
	if a.forget != nil {
		a.forget()
	}
	a.ends, a.forget = nil, nil
}

// attendLink receives until there are completions, or nothing is left.
func (d *Device) attendLink(w *attention) error {
	d.rx.Lock()
	defer d.rx.Unlock()
	for d.attendance.news.Load() == w.news {
		if n, err := d.receive(); n == 0 || err != nil {
			return err
		}
	}
	return nil
}

// Rouse makes the attendant look again; see kshim.Attender.
func (d *Device) Rouse() {
	switch d.attendance.blocked.Load() {
	case forLink:
		d.link.Interrupt()
	case forListener:
		d.attendance.decided()
	}
}

// announce follows every completion; event tells whether an event was raised
// for it.
func (a *attendance) announce(d *Device, event bool) {
	a.news.Add(1)
	if event {
		a.armed.Store(false)
		a.last.Store(int64(d.now()))
		a.told.Add(1)
	}
	d.Rouse()
}

// rests reports whether the attendant has been waiting for so long that the
// listener need not look after it any more.
func (d *Device) rests() bool {
	a := &d.attendance
	return a.blocked.Load() == forLink && time.Duration(int64(d.now())-a.last.Load()) >= pollPause
}
