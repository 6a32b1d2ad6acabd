package rnic

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"
)

// A program that waits for completions, one after the other, stands in for the
// listener: the packet itself wakes it, not a goroutine that the packet woke.
// The listener is parked meanwhile, as it is for a program that polls.
const (
	// prompt is how soon after a completion a program must wait again.
	prompt = 100 * time.Microsecond
	// attendAfter is how many times in a row it must, before it may attend.
	attendAfter = 8
	// eager bounds that count, and late is what one that was not costs.
	eager = 4 * attendAfter
	late  = 8
	// rivalry is for how many waits nobody attends after two wanted to: with
	// several, events are fairer.
	rivalry = 128
)

// attendance is what the one who attends, the listener and those who write
// completions know of each other.
type attendance struct {
	busy    atomic.Bool   // somebody attends
	blocked atomic.Int32  // and waits for this: what Rouse interrupts
	news    atomic.Uint32 // completions
	last    atomic.Int64  // engine.Time of the last end of a wait
	told    atomic.Uint64 // events that were raised
	quick   atomic.Int32  // how many times in a row a program was prompt

	asleep  atomic.Bool   // the listener is parked until somebody calls unpark
	listens chan struct{} // a token: the listener has decided whether to park

	// Whose end rouses who attends: a program's context, of which it has but
	// one as a rule. With whoever attends.
	ends   <-chan struct{}
	forget func() bool
	spin   spinner // with whoever attends
}

// What who attends may wait for.
const (
	forNothing = iota
	forLink
	forListener // to leave the link
)

// attention is what ends an Attend, besides trouble.
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

// Attend works in place of the listener until there is something for a program
// that waits to look at; see kshim.Attender.
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
		did = d.takeOver(&w) && d.attend(&w) || w.due(a)
		a.last.Store(int64(d.now()))
	}
	a.busy.Store(false)
	if a.asleep.Load() {
		d.unpark()
	}
	return did
}

// mayAttend reports whether the program is one that waits all the time.
func (d *Device) mayAttend() bool {
	a := &d.attendance
	if d.down.Load() { // Arm says so
		return false
	}
	// Besides who attends, a rival changes quick, and wins.
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

// attended reports whether a program attends at present, or has just done so.
func (d *Device) attended() bool {
	a := &d.attendance
	return a.quick.Load() >= attendAfter &&
		(a.busy.Load() || time.Duration(int64(d.now())-a.last.Load()) < pollPause)
}

// takeOver waits until the listener has left the link, which may take long
// while packets come: false when that is not worth it any more. busy keeps it
// away.
func (d *Device) takeOver(w *attention) bool {
	a := &d.attendance
	a.blocked.Store(forListener)
	defer a.blocked.Store(forNothing)
	for !d.polling.parked.Load() {
		// A rival came, or the listener has gone: then it has said so.
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
		// Who changes what is looked at here looks at blocked afterwards.
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

// follow sees to it that the end of ctx rouses.
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

// end lets go of the context when the link is closed. Nobody attends after
// that.
func (a *attendance) end() {
	for !a.busy.CompareAndSwap(false, true) {
		runtime.Gosched() // who attends is on its way out
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

// Rouse lets who attends look again; see kshim.Attender.
func (d *Device) Rouse() {
	switch d.attendance.blocked.Load() {
	case forLink:
		d.link.Interrupt()
	case forListener:
		d.attendance.decided()
	}
}

// announce follows every completion; event tells that who waits for it is told.
func (a *attendance) announce(d *Device, event bool) {
	a.news.Add(1)
	if event {
		a.last.Store(int64(d.now()))
		a.told.Add(1)
	}
	d.Rouse()
}

// rests reports whether who attends has been waiting for so long that the
// listener need not look after it any more.
func (d *Device) rests() bool {
	a := &d.attendance
	return a.blocked.Load() == forLink && time.Duration(int64(d.now())-a.last.Load()) >= pollPause
}
