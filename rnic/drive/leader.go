package drive

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"
)

// Leader/followers: a program that waits for completion after completion does
// the listener's work itself (it is the leader), so that a packet wakes it
// without a goroutine between them. The listener is parked meanwhile, as it is
// for a program that polls.

// waiters is the state that programs which wait, the listener and the writers
// of completions share, besides the owner.
type waiters struct {
	news   atomic.Uint32 // completions
	last   atomic.Int64  // time of the last end of a wait
	events atomic.Uint64 // that were raised
	rival  atomic.Int32  // waits that are still to go without a leader: several programs wait
	armed  atomic.Bool   // a program waits for an event that was not raised yet
	attend atomic.Bool   // a program has waited for an event by Attend, and is expected back
	woke   atomic.Bool   // a goroutine that drives nothing, since the last Gosched
	summon atomic.Int64  // until when the listener does not wait for a leader to return
	ceded  atomic.Int64  // time of the last Gosched of a program that leads
	crowd  crowd

	// ends is the Done channel of the leader's context; closing it wakes the
	// leader. A program keeps one context as a rule, so that follow seldom
	// changes it. Both belong to the leader.
	ends   <-chan struct{}
	forget func() bool
}

// attention holds the conditions that end a Lead, besides trouble.
type attention struct {
	ctx   context.Context
	news  uint32
	wakes *atomic.Uint32
	seen  uint32
	until time.Duration // of the driver's clock; 0: for ever
}

func (d *Driver) due(w *attention) bool {
	return d.waiters.news.Load() != w.news || w.wakes.Load() != w.seen || w.ctx.Err() != nil ||
		w.until != 0 && d.now() >= w.until
}

// News counts completions; see kshim.Driven.
func (d *Driver) News() uint32 { return d.waiters.news.Load() }

// Lead drives the device in place of the listener until the completion count
// differs from news, wakes differs from seen, or ctx is done; see
// kshim.Driven.
func (d *Driver) Lead(ctx context.Context, news uint32, wakes *atomic.Uint32, seen uint32) bool {
	return d.drive(&attention{ctx, news, wakes, seen, 0})
}

// drive leads until one of w's conditions holds; see Lead.
func (d *Driver) drive(w *attention) bool {
	a := &d.waiters
	if d.due(w) {
		return true
	}
	if !d.mayLead() {
		return false
	}
	if !d.move(claim) { // another program leads
		a.rival.Store(rivalry)
		d.Rouse()
		return false
	}
	a.follow(w.ctx, d)
	did := d.granted(w)
	if did {
		d.cede()
		did = d.lead(w)
		a.last.Store(int64(d.now()))
		d.move(leave)
		if d.own.untimed.Load() || a.armed.Load() || d.summoned() {
			hint(d.own.unpark)
		}
	}
	return did || d.due(w)
}

// mayLead reports whether the program waits promptly, completion after
// completion.
func (d *Driver) mayLead() bool {
	a := &d.waiters
	if d.engine.Down() { // Arm says so
		return false
	}
	if n := a.rival.Load(); n > 0 {
		a.rival.CompareAndSwap(n, n-1) // a rival changes it as well, and wins
		return false
	}
	return time.Duration(int64(d.now())-a.last.Load()) <= prompt
}

// cede lets other goroutines run that are ready: what the program has just
// woken would have to wait for another thread while the leader spins. It also
// lets the Go scheduler in now and then. A program that leads sleeps in system
// calls only, so that the runtime would see one goroutine running on and on,
// and take its processor away. Preconditions: it leads, so that the listener is
// none of those that are ready.
func (d *Driver) cede() {
	a, now := &d.waiters, d.now()
	if a.woke.Swap(false) || a.crowd.waits() || time.Duration(int64(now)-a.ceded.Load()) > cedeEvery {
		a.ceded.Store(int64(now))
		runtime.Gosched()
		for tries := 1; tries < cedeMost && a.crowd.waits(); tries++ {
			runtime.Gosched()
		}
	}
}

// expected reports whether a program has led just now and does not wait for an
// event instead: it may be back soon.
func (d *Driver) expected() bool {
	a := &d.waiters
	return a.rival.Load() == 0 && !a.armed.Load() && !d.summoned() && time.Duration(int64(d.now())-a.last.Load()) < PollPause
}

// Summon has the listener resume as soon as no program drives the device, for a
// moment: a packet is expected for which no program leads, or none that has led
// will lead again.
func (d *Driver) Summon() {
	d.waiters.summon.Store(int64(d.now() + summonFor))
	if d.own.owner() == away {
		hint(d.own.unpark)
	}
}

func (d *Driver) summoned() bool { return int64(d.now()) < d.waiters.summon.Load() }

// granted waits until the listener has left the link, which may take long while
// packets come. It returns false when waiting is no longer worth it; then the
// claim is withdrawn.
func (d *Driver) granted(w *attention) bool {
	a := &d.waiters
	for d.own.owner() == claimed {
		// A rival came, or the listener has ended: each leaves a token.
		if d.due(w) || a.rival.Load() > 0 || d.engine.Down() {
			d.move(withdraw)
			return false
		}
		select {
		case <-d.own.decide:
		case <-d.quit:
		}
	}
	d.polling.stopped()
	return true
}

// lead receives until one of w's conditions holds. It returns false on
// trouble, and when a rival came.
func (d *Driver) lead(w *attention) bool {
	a := &d.waiters
	for slept := int64(-1); ; { // behind which packets, in vain
		if a.news.Load() == w.news {
			d.engine.CatchUp() // the program has had its turn
		}
		var err error
		d.spin(func() bool {
			err = d.leaderReceives(w)
			return a.news.Load() != w.news || err != nil
		})
		if err == nil && d.engine.InUse() { // it has not spun
			err = d.leaderReceives(w)
		}
		// A writer of news or wakes looks at the owner afterwards.
		d.move(sleep)
		done := d.due(w)
		if !done && err == nil && a.rival.Load() == 0 {
			arrived := d.arrived.Load()
			err = d.sleep(w, slept == arrived)
			slept = arrived
		}
		d.move(wake)
		if done {
			return true
		}
		if err == nil {
			err = d.leaderReceives(w)
		}
		if err != nil || a.rival.Load() > 0 {
			return false // of an error the listener hears too, and deals with it
		}
	}
}

// asleep counts the leaders of the process that sleep with their threads.
var asleep atomic.Int32

// sleep waits for the link, with a sleeping thread if another processor is left
// for the program's goroutines: a thread that sleeps in a system call keeps its
// processor until the Go runtime takes it, after 20 µs at best. To yield before
// would wake a thread to look for work, which costs more than the packet. A
// leader that has slept in vain, or may not, waits in the netpoller, and one
// that attends ends.
func (d *Driver) sleep(w *attention, slept bool) error {
	defer asleep.Add(-1)
	switch n, others := asleep.Add(1), int32(d.cores-1); {
	case slept:
	case n <= others:
		return d.link.Sleep(sleepFor, true)
	case n == 1:
		return d.link.Sleep(napFor, true)
	}
	if w.until != 0 {
		w.until = d.now()
		return nil
	}
	return d.link.Wait()
}

// follow makes the end of ctx call Rouse.
func (a *waiters) follow(ctx context.Context, d *Driver) {
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

// End lets go of the leader's context. No program leads after that.
// Preconditions: the link is closed and Listen has returned.
func (d *Driver) End() {
	for !d.move(end) {
		runtime.Gosched() // the leader is on its way out
	}
	a := &d.waiters
	if a.forget != nil {
		a.forget()
	}
	a.ends, a.forget = nil, nil
}

// leaderReceives receives until there are completions, or nothing is left.
func (d *Driver) leaderReceives(w *attention) error {
	d.Receiver.Lock()
	defer d.Receiver.Unlock()
	for d.waiters.news.Load() == w.news {
		if n, err := d.engine.Receive(); n == 0 || err != nil {
			return err
		}
	}
	return nil
}

// Rouse makes the leader look again; see kshim.Driven.
func (d *Driver) Rouse() { d.move(rouse) }

// Announce follows every completion; event tells whether an event was raised
// for it.
func (d *Driver) Announce(event bool) {
	a := &d.waiters
	a.news.Add(1)
	if event {
		a.armed.Store(false)
		a.last.Store(int64(d.now()))
		a.events.Add(1)
	}
	d.Rouse()
}

// Woke follows an event that has woken a goroutine which waits for no
// completion, but for a connection, say. That is ready to run on the processor
// of the goroutine that receives and drives the device, and gets it at once:
// another processor took it over after 60 to 200 µs.
func (d *Driver) Woke() {
	a := &d.waiters
	a.woke.Store(true)
	a.events.Add(1)
	a.news.Add(1) // ends the Lead
}

// leaderRests reports whether the leader has been waiting for so long that the
// listener need not look after it any more.
func (d *Driver) leaderRests() bool {
	return d.own.owner() == waiting && time.Duration(int64(d.now())-d.waiters.last.Load()) >= PollPause
}
