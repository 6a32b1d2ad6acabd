package link

import (
	"net"
	"sync"
	"time"
)

const (
	// holdTime is how long a packet held back waits for others to overtake it.
	holdTime = 500 * time.Microsecond
	// queueLimit bounds the packets that wait, as a router's buffer does.
	queueLimit = 8192
)

// faulty is a Link whose sending side misbehaves. A packet goes through Send →
// sendOne (loss, corruption) → held (reordering) → queue (delay) → out → the
// inner link; fire sends the packets that wait.
type faulty struct {
	Link
	delay time.Duration
	batch int

	mu     sync.Mutex // guards all below, and is held while inner sends
	decide decider
	held   []waiting      // reordered, oldest first
	queue  fifo           // delayed, in order
	out    []Packet       // packets for the next flush
	leave  []*parcel      // the memory of those in out that were copied
	free   []*parcel      // for use again
	timer  *time.Timer    // runs fire
	due    time.Time      // when it fires; zero while it does not run
	err    error          // of a send that the timer made
	closed bool           // no send, no timer any more
	timers sync.WaitGroup // one while the timer runs

	lost, reordered, duped, corrupted, delayed, overflowed uint64
}

// waiting is a packet that others shall overtake.
type waiting struct {
	p      *parcel
	behind int // so many more
}

// WithFaults returns l with the faults f on what it sends, or l itself if f
// holds none. Rates outside 0 … 1 are cut to that range. Close closes l, and
// packets that still wait are lost.
func WithFaults(l Link, f Faults) Link {
	if !f.Any() {
		return l
	}
	return &faulty{Link: l, decide: newDecider(f), delay: max(f.Delay, 0), batch: max(l.Caps().BatchSize, 1)}
}

// Send decides on each packet and passes on those that go now.
func (f *faulty) Send(batch []Packet) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return net.ErrClosed
	}
	if f.err != nil {
		return f.err
	}
	now := time.Now()
	for i := range batch {
		f.sendOne(&batch[i], now)
	}
	err := f.flush()
	f.arm(now)
	return err
}

func (f *faulty) sendOne(p *Packet, now time.Time) {
	d := f.decide.decide()
	if d.lose {
		f.lost++
		return
	}
	first := *p
	if d.corrupt {
		f.corrupted++
		first.Flip = d.flip
	}
	if d.behind > 0 && len(f.held) < queueLimit {
		f.reordered++
		f.held = append(f.held, waiting{f.copy(&first, now.Add(holdTime)), d.behind})
	} else {
		f.pass(&first, now)
	}
	if d.dup {
		// The second copy is whole: it is for its number that the receiver
		// must refuse it.
		f.duped++
		f.pass(p, now)
	}
}

// pass sends p on, or queues a copy of it if packets are delayed, and lets go
// the packets held back that have now been overtaken by enough.
func (f *faulty) pass(p *Packet, now time.Time) {
	switch {
	case f.delay == 0:
		f.out = append(f.out, *p)
	case f.queue.len() >= queueLimit:
		f.overflowed++
	default:
		f.enqueue(f.copy(p, now), now)
	}
	if len(f.held) == 0 {
		return
	}
	kept := f.held[:0]
	for _, w := range f.held {
		if w.behind--; w.behind > 0 {
			kept = append(kept, w)
		} else {
			f.release(w.p, now)
		}
	}
	clear(f.held[len(kept):])
	f.held = kept
}

// release sends on a packet that was held back.
func (f *faulty) release(p *parcel, now time.Time) {
	if f.delay > 0 {
		f.enqueue(p, now)
		return
	}
	f.out = append(f.out, p.pkt)
	f.leave = append(f.leave, p)
}

func (f *faulty) enqueue(p *parcel, now time.Time) {
	f.delayed++
	p.at = now.Add(f.delay)
	f.queue.push(p)
}

// flush sends what is in out and takes back the memory of the copies in it.
func (f *faulty) flush() error {
	if len(f.out) == 0 {
		return nil
	}
	err := f.Link.Send(f.out)
	clear(f.out)
	f.out = f.out[:0]
	f.free = append(f.free, f.leave...)
	clear(f.leave)
	f.leave = f.leave[:0]
	return err
}

// arm sets the timer for the first packet that waits. A timer that fires
// earlier is left alone: it arms itself again.
func (f *faulty) arm(now time.Time) {
	var first time.Time
	if len(f.held) > 0 {
		first = f.held[0].p.at
	}
	if p := f.queue.front(); p != nil && (first.IsZero() || p.at.Before(first)) {
		first = p.at
	}
	switch {
	case first.IsZero():
		return
	case f.due.IsZero():
		f.timers.Add(1)
	case !first.Before(f.due) || !f.timer.Stop():
		return
	}
	f.due = first
	if d := first.Sub(now); f.timer == nil {
		f.timer = time.AfterFunc(d, f.fire)
	} else {
		f.timer.Reset(d)
	}
}

// fire sends what is due.
func (f *faulty) fire() {
	defer f.timers.Done()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.due = time.Time{}
	if f.closed || f.err != nil {
		return
	}
	now := time.Now()
	n := 0
	for n < len(f.held) && !f.held[n].p.at.After(now) {
		f.release(f.held[n].p, now)
		n++
	}
	rest := copy(f.held, f.held[n:])
	clear(f.held[rest:])
	f.held = f.held[:rest]
	for f.err == nil {
		for p := f.queue.front(); p != nil && !p.at.After(now) && len(f.out) < f.batch; p = f.queue.front() {
			f.out = append(f.out, p.pkt)
			f.leave = append(f.leave, f.queue.pop())
		}
		if len(f.out) == 0 {
			f.arm(now)
			return
		}
		f.err = f.flush()
	}
}

// Caps implements Link: the faults lose packets.
func (f *faulty) Caps() Caps {
	c := f.Link.Caps()
	c.Lossless = false
	return c
}

// Counters adds the faults that were injected to the inner link's counters.
func (f *faulty) Counters(dst []Counter) []Counter {
	dst = f.Link.Counters(dst)
	f.mu.Lock()
	defer f.mu.Unlock()
	return append(dst,
		Counter{"fault_loss", f.lost},
		Counter{"fault_reorder", f.reordered},
		Counter{"fault_dup", f.duped},
		Counter{"fault_corrupt", f.corrupted},
		Counter{"fault_delay", f.delayed},
		Counter{"fault_overflow", f.overflowed},
	)
}

// Close closes the inner link first, which ends a Send that blocks, and waits
// for a timer that fires at this moment.
func (f *faulty) Close() error {
	err := f.Link.Close()
	f.mu.Lock()
	f.closed = true
	if !f.due.IsZero() && f.timer.Stop() {
		f.due = time.Time{}
		f.timers.Done()
	}
	f.held, f.queue, f.free = nil, fifo{}, nil
	f.mu.Unlock()
	f.timers.Wait()
	return err
}
