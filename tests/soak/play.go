package soak

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/engine"
	"github.com/rdmashim/rdmashim/tests/virtual"
)

// A run must come to its end within this time after the network has healed, and
// within so many events.
const (
	patience  = 60 * 1000 * ms
	maxEvents = 3_000_000
)

// at makes an event at a time of the plan.
func (r *run) at(t engine.Time, do func()) { r.world.At(r.base+t, do) }

// arrange makes events of a lane's program.
func (r *run) arrange(b *builder) {
	l, p := b.lane, b.prog
	if r.calm { // a late life, without disturbances of its own
		l.wanted = len(l.ops)
		l.postReceives(len(l.receives))
		l.post()
		return
	}
	for _, post := range p.posts {
		r.soon(post.at, func() { l.wanted += post.count; l.post() })
	}
	l.offerReceives()
	if p.revokeAt > 0 {
		r.soon(p.revokeAt, func() { r.revoke(b.victim, l) })
	}
	if p.dropAt > 0 {
		r.soon(p.dropAt, func() { r.revoke(b.outVictim, l) })
	}
	e := l.from
	if e.plan.breakAt > 0 {
		r.soon(e.plan.breakAt, func() { r.breakEnd(e) })
	}
	for _, at := range e.plan.pauses {
		r.soon(at, func() { r.pause(e) })
	}
}

// soon makes an event a time from now, unless the network has healed by then.
func (r *run) soon(t engine.Time, do func()) {
	r.world.At(r.world.Now()+t, func() {
		if !r.calm {
			do()
		}
	})
}

// disturb makes events of what happens to the network, and of the end of it.
func (r *run) disturb() {
	w := r.world
	for _, c := range r.plan.cuts {
		r.countCut(c)
		cut := func(on bool) func() {
			return func() {
				a, b := r.nodes[0], r.nodes[1]
				if c.reverse {
					a, b = b, a
				}
				w.Cut(a, b, on)
				if c.both {
					w.Cut(b, a, on)
				}
			}
		}
		r.at(c.from, cut(true))
		r.at(c.until, cut(false))
	}
	for _, b := range r.plan.bursts {
		r.at(b.from, func() {
			if !r.calm {
				w.SetFaults(b.faults)
			}
		})
		r.at(b.until, func() {
			if !r.calm {
				w.SetFaults(r.plan.world.Faults)
			}
		})
	}
	for _, s := range r.plan.sleeps {
		r.at(s.from, func() {
			r.tally["fault: a node slept"]++
			w.Freeze(r.nodes[s.node], r.base+s.until)
			r.sleeps(r.nodes[s.node], r.base+s.until)
		})
	}
	for i := range r.plan.restarts {
		p := &r.plan.restarts[i]
		r.at(p.at, func() { r.restart(p) })
	}
	r.at(r.plan.chaos, r.heal)
}

// countCut counts a partition by whether some queue pair must give up over it.
func (r *run) countCut(c cut) {
	short, long := true, true
	for _, l := range r.lanes {
		wait := l.from.wait()
		if l.from.plan.timeout == 0 {
			wait = math.MaxInt64
		}
		short, long = short && c.until-c.from < wait, long && c.until-c.from > wait
	}
	if short {
		r.tally["fault: a partition that healed in time"]++
	}
	if long {
		r.tally["fault: a partition beyond all retries"]++
	}
}

// sleeps notes that until then a host is to blame for what does not arrive, and
// that its queue pairs may be late.
func (r *run) sleeps(n *virtual.Node, until engine.Time) {
	r.trouble = max(r.trouble, until)
	r.slept[n.Index] = max(r.slept[n.Index], until)
	for _, l := range r.lanes {
		l.from.inheritSleep()
	}
}

func (e *end) inheritSleep() {
	e.flow.trouble = max(e.flow.trouble, e.run.trouble)
	e.slept = max(e.slept, e.run.slept[e.node.Index])
}

// heal ends the disturbances: no more faults, and every receive is posted.
func (r *run) heal() {
	r.calm = true
	r.world.Logf("the network heals")
	r.world.SetFaults(virtual.Faults{})
	for _, l := range r.lanes {
		l.wanted = len(l.ops)
		l.postReceives(len(l.receives) - l.recvReady)
		l.post()
	}
	r.letGo()
}

// play runs the events to their end and checks it.
func (r *run) play() error {
	w := r.world
	deadline := r.base + r.plan.chaos + patience
	for _, c := range r.plan.cuts {
		deadline = max(deadline, r.base+c.until+patience)
	}
	for events := 0; !r.done(); events++ {
		if !w.Step(deadline) {
			break
		}
		if events > maxEvents {
			w.Fail(virtual.ErrStuck)
		}
	}
	if err := w.Failure(); err != nil {
		return err
	}
	if !r.done() {
		return fmt.Errorf("not everything completed in %d s: %s", patience/(1000*ms), r.describe())
	}
	return r.finish()
}

// letGo breaks ends that would wait for a dead peer for ever, as they were told
// to: with an ACK timeout of 0, nothing else ends it.
func (r *run) letGo() {
	if r.done() {
		return
	}
	r.world.At(r.world.Now()+1000*ms, r.letGo)
	for _, l := range r.lanes {
		if l.from.plan.timeout == 0 && l.to.failedAt >= 0 && l.from.failedAt < 0 {
			r.breakEnd(l.from)
		}
	}
}

// done reports whether every request that will be posted has completed.
func (r *run) done() bool {
	if !r.calm || r.restarts > 0 {
		return false
	}
	for _, l := range r.lanes {
		if l.completed < len(l.ops) {
			return false
		}
	}
	return true
}

func (r *run) describe() string {
	var s []string
	for _, l := range r.lanes {
		s = append(s, l.from.describe())
	}
	return strings.Join(s, "; ")
}

// post posts what the program wants posted and the send queue has room for.
func (l *lane) post() {
	r := l.run
	if l.closing || l.from.gone {
		return
	}
	for l.posted < l.wanted && l.posted < len(l.ops) {
		full := l.posted-l.completed == l.from.plan.depth
		if full && !l.knocked {
			l.knocked = true // once: a full queue must say so, and stay as it is
			err := l.from.qp.QP.Post(r.world.Now(), l.ops[l.posted].wr())
			if !errors.Is(err, syscall.ENOMEM) {
				r.fail(fmt.Errorf("%s: post to a full queue of %d: %v", l.name, l.from.plan.depth, err))
			}
			r.tally["disturbance: post to a full queue"]++
		}
		if full || r.world.Failure() != nil {
			return
		}
		o := l.ops[l.posted]
		o.postedAt = r.world.Now()
		o.first = l.next
		o.mtu = l.mtu
		if o.length > l.mtu {
			o.mtu = max(o.mtu, l.from.qp.Gauges().MTU)
		}
		if o.inside > 0 {
			o.limit = o.inside / o.mtu * o.mtu
		}
		o.packets = packetsOf(o.length, o.mtu)
		l.next += uint64(o.packets)
		l.posted++
		r.world.Logf("%-12s %s %s id %d", "post", l.name, o, o.id)
		if err := l.from.qp.Post(o.wr()); err != nil {
			r.fail(fmt.Errorf("%s: post of %s in %s: %w", l.name, o, l.from.qp.State(), err))
		}
	}
}

// postReceives posts the next n receives.
func (l *lane) postReceives(n int) {
	for ; n > 0 && l.recvReady < len(l.receives) && !l.to.gone; n-- {
		l.to.qp.PostReceive(l.receives[l.recvReady].wr())
		l.recvReady++
	}
	// Also behind a failure that the program has not seen, for which
	// kshim/verbs asks.
	if l.to.failedAt >= 0 || !l.to.gone && l.to.qp.State() == abi.QPSErr {
		l.to.qp.Poke() // they are flushed
	}
}

// revoke deregisters a region, after the model has taken note of what happened
// to it so far.
func (r *run) revoke(g *region, l *lane) {
	if g.gone {
		return
	}
	r.tally["disturbance: region revoked"]++
	r.world.Logf("deregister key %#x of %s", g.key, g.node.Name)
	r.fail(l.settle(0))
	r.fail(g.deregister(r.world.Now()))
}

// breakEnd moves a queue pair to the error state.
func (r *run) breakEnd(e *end) {
	if e.gone || e.qp.State() == abi.QPSErr {
		return
	}
	if !r.calm {
		r.tally["disturbance: queue pair broken"]++
	}
	e.broken = true
	r.fail(e.qp.Modify(abi.QPSErr, &engine.Attr{}, 0))
	e.look()
}
