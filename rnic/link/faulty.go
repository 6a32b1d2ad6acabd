package link

import (
	"fmt"
	"math"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/rdmashim/rdmashim/rnic/crc"
	"github.com/rdmashim/rdmashim/rnic/link/rules"
	"github.com/rdmashim/rdmashim/rnic/wire"
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
	rules  *rules.Set
	held   []parcel       // reordered, or late by a rule
	queue  []parcel       // delayed, in order
	out    []Packet       // packets for the next flush
	timer  *time.Timer    // runs fire
	due    time.Time      // when it fires; zero while it does not run
	err    error          // of a send that the timer made
	closed bool           // no send, no timer any more
	timers sync.WaitGroup // one while the timer runs

	lost, reordered, duped, corrupted, delayed, overflowed uint64
}

// parcel is a copy of a packet that outlives the batch it came in.
type parcel struct {
	Packet
	at     time.Time // when it goes
	behind int       // of one that others shall overtake: so many more
}

func newParcel(p *Packet, at time.Time, behind int) parcel {
	q, _ := p.Copy(nil)
	return parcel{q, at, behind}
}

// WithFaults returns l with the faults f on what it sends, or l itself if f
// holds none. Rates outside 0 … 1 are cut to that range. Close closes l, and
// packets that still wait are lost.
func WithFaults(l Link, f Faults) Link {
	if !f.Any() {
		return l
	}
	return &faulty{Link: l, decide: newDecider(f), rules: f.Rules, delay: max(f.Delay, 0), batch: max(l.Caps().BatchSize, 1)}
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
	whole := *p
	whole.Frame = nil // it may leave twice, or changed
	d, first := f.decide.decide(), whole
	if f.rules != nil {
		f.obey(&d, &first, now)
	}
	if d.lose {
		f.lost++
		return
	}
	if d.corrupt {
		f.corrupted++
		first.Flip = d.flip
	}
	switch {
	case len(f.held) >= queueLimit:
		f.pass(&first, now)
	case d.late > 0:
		f.delayed++
		f.held = append(f.held, newParcel(&first, now.Add(d.late), math.MaxInt))
	case d.behind > 0:
		f.reordered++
		f.held = append(f.held, newParcel(&first, now.Add(holdTime), d.behind))
	default:
		f.pass(&first, now)
	}
	if d.dup {
		// The second copy is whole: it is for its number that the receiver
		// must refuse it.
		f.duped++
		f.pass(&whole, now)
	}
}

// obey adds the fate that the rules decide to a packet's. What they change is a
// copy: the packet's memory is the engine's.
func (f *faulty) obey(d *decision, p *Packet, now time.Time) {
	x := f.rules.See(now, netip.Addr{}, p.Peer.Addr().Unmap(), p.Head, p.Payload)
	d.lose, d.dup = d.lose || x.Drop, d.dup || x.Dup
	d.behind, d.late = max(d.behind, x.Behind), x.Delay
	if x.Corrupt {
		d.corrupt = true
		if x.Offset >= 0 {
			d.flip = 1 + 8*uint32(x.Offset)
		} else if d.flip == 0 {
			d.flip = 1 + uint32(draw(f.decide.seed, drawBit, f.decide.next)>>33)
		}
	}
	if x.NAK {
		p.Head, p.Payload, p.Elsewhere, p.Sum = rules.Refuse(p.Head, x.Syndrome), nil, wire.Elsewhere{}, crc.Sum{}
	}
	if x.Mark {
		p.Head = rules.Mark(p.Head)
	}
}

// pass sends p on, or queues a copy of it if packets are delayed, and lets go
// the packets held back that have now been overtaken by enough.
func (f *faulty) pass(p *Packet, now time.Time) {
	switch {
	case f.delay == 0:
		f.out = append(f.out, *p)
	case len(f.queue) >= queueLimit:
		f.overflowed++
	default:
		f.enqueue(newParcel(p, now, 0), now)
	}
	f.held = slices.DeleteFunc(f.held, func(w parcel) bool { return w.behind == 1 && f.release(w, now) })
	for i := range f.held {
		f.held[i].behind--
	}
}

// release sends on a packet that was held back, and returns true.
func (f *faulty) release(p parcel, now time.Time) bool {
	if f.delay > 0 {
		f.enqueue(p, now)
	} else {
		f.out = append(f.out, p.Packet)
	}
	return true
}

func (f *faulty) enqueue(p parcel, now time.Time) {
	f.delayed++
	p.at = now.Add(f.delay)
	f.queue = append(f.queue, p)
}

// flush sends what is in out.
func (f *faulty) flush() error {
	if len(f.out) == 0 {
		return nil
	}
	err := f.Link.Send(f.out)
	clear(f.out)
	f.out = f.out[:0]
	return err
}

// arm sets the timer for the first packet that waits. A timer that fires
// earlier is left alone: it arms itself again.
func (f *faulty) arm(now time.Time) {
	var first time.Time
	for i := range f.held {
		if at := f.held[i].at; i == 0 || at.Before(first) {
			first = at
		}
	}
	if len(f.queue) > 0 && (first.IsZero() || f.queue[0].at.Before(first)) {
		first = f.queue[0].at
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
	f.held = slices.DeleteFunc(f.held, func(w parcel) bool { return !w.at.After(now) && f.release(w, now) })
	for f.err == nil {
		for len(f.queue) > 0 && !f.queue[0].at.After(now) && len(f.out) < f.batch {
			f.out = append(f.out, f.queue[0].Packet)
			f.queue[0] = parcel{}
			f.queue = f.queue[1:]
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
	for i, n := range f.rules.Hits() {
		dst = append(dst, Counter{fmt.Sprintf("fault_rule_%d", i+1), n})
	}
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
	f.held, f.queue = nil, nil
	f.mu.Unlock()
	f.timers.Wait()
	return err
}
