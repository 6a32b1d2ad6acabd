package soak

import (
	"fmt"
	"slices"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/engine"
	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tests/virtual"
)

// restartPlan is a connection that is given up and made anew, while packets of
// its former life are under way and, if one side does not know yet, are still
// being sent.
type restartPlan struct {
	at    engine.Time
	conn  int
	kind  restartKind
	dead  int           // the end whose process dies
	delay engine.Time   // from the end of the former life until the next
	num   [2]numberKind // of the queue pairs of the next life
	next  connPlan
}

type restartKind uint8

const (
	bothReset restartKind = iota // both programs reset their queue pairs at the same time
	peerDies                     // a process dies and the other one is told
	peerGone                     // a process dies, and the other side has to find out
	restartKinds
)

var restartNames = [restartKinds]string{"both ends reset", "peer restarted", "peer restarted unnoticed"}

// numberKind is which number a queue pair of the next life has.
type numberKind uint8

const (
	sameNumber    numberKind = iota // the number that it had
	anyNumber                       // a new one
	foreignNumber                   // one that another queue pair had
	numberKinds
)

var numberNames = [numberKinds]string{"with the same number", "with a new number", "with another's former number"}

// drawRestarts draws restarts of some connections.
func (p *plan) drawRestarts(r *virtual.Rand) {
	for i := range p.conns {
		if !r.Hit(0.5) {
			continue
		}
		for again := true; again; again = r.Hit(0.3) {
			x := restartPlan{
				at: engine.Time(r.Between(1, int(p.chaos))), conn: i,
				kind: restartKind(r.Intn(int(restartKinds))), dead: r.Intn(2),
				num:  [2]numberKind{numberKind(r.Intn(int(numberKinds))), numberKind(r.Intn(int(numberKinds)))},
				next: p.drawConn(r),
			}
			if r.Hit(0.5) {
				x.delay = engine.Time(r.Intn(300)) * us
			}
			p.restarts = append(p.restarts, x)
		}
	}
}

// restart ends a life of a connection.
func (r *run) restart(p *restartPlan) {
	c := r.conns[p.conn]
	if r.world.Failure() != nil || c.leaving {
		return
	}
	c.leaving = true
	r.restarts++
	for _, e := range c.ends {
		n := e.out.packets()
		r.former = append(r.former, psnRange{e.plan.psn, n}, psnRange{e.plan.psn.Add(forgedAhead), n + forgedSpread})
	}
	r.tally["restart: "+restartNames[p.kind]]++
	r.world.Logf("connection %d: %s", p.conn, restartNames[p.kind])
	if p.kind == bothReset {
		r.abandon(c.ends[0], false)
		r.abandon(c.ends[1], false)
		r.rebuild(c, p)
		return
	}
	dead := c.ends[p.dead]
	r.abandon(dead, true)
	r.bury(dead)
	if p.kind == peerDies {
		r.breakEnd(dead.peer)
	}
	limit := r.world.Now() + 50*ms
	if dead.peer.plan.timeout != 0 {
		limit += dead.peer.wait()
	}
	r.survive(dead.peer, p, limit)
}

// abandon takes an end out of its connection: it completes nothing any more.
func (r *run) abandon(e *end, destroy bool) {
	r.fail(e.in.settle(0))
	r.fail(e.checkCounters())
	e.look()
	if e.failedAt < 0 {
		e.failedAt = r.world.Now()
	}
	e.gone = true
	if destroy {
		e.node.Remove(e.qp)
		r.numbers[e.node.Index] = append(r.numbers[e.node.Index], e.qp.Num)
		return
	}
	e.qp.Receives.Clear()
	r.fail(e.qp.Modify(abi.QPSReset, &engine.Attr{}, 0))
}

// bury deregisters what a dead process had registered for its connection.
func (r *run) bury(e *end) {
	for _, g := range e.regions {
		if g.handle != nil && !g.gone {
			r.fail(g.deregister(r.world.Now()))
		}
	}
}

// survive waits until the other side of a dead process has noticed, with what
// it has outstanding, or is told at last; then the connection is made anew.
func (r *run) survive(e *end, p *restartPlan, limit engine.Time) {
	now := r.world.Now()
	switch {
	case r.world.Failure() != nil:
		return
	case e.failedAt < 0 && now < limit:
		r.world.At(min(limit, now+max(ms, e.wait()/8)), func() { r.survive(e, p, limit) })
		return
	case e.failedAt < 0:
		r.breakEnd(e)
	case !e.broken:
		r.tally["restart: dead peer noticed"]++
	}
	r.world.At(now, func() { // behind what it still had to do
		e.out.closing = true
		if e.out.completed != e.out.posted || e.in.recvDone != e.in.recvReady {
			r.fail(fmt.Errorf("%s in %s keeps requests or receives: %s", e, e.qp.State(), e.describe()))
			return
		}
		r.abandon(e, p.num[e.index] != sameNumber)
		r.rebuild(e.conn, p)
	})
}

// rebuild retires a connection's lanes and makes the next life.
func (r *run) rebuild(c *conn, p *restartPlan) {
	for _, e := range c.ends {
		r.fail(e.out.retire())
	}
	if r.world.Failure() != nil {
		return
	}
	r.world.At(r.world.Now()+p.delay, func() {
		r.fail(r.revive(c, p))
		r.restarts--
	})
}

// revive makes the next life of a connection.
func (r *run) revive(c *conn, p *restartPlan) error {
	if err := r.world.Failure(); err != nil {
		return err
	}
	var heirs [2]heir
	p.next.loopback = c.plan.loopback
	for k, e := range c.ends {
		next := &p.next.ends[k]
		kind := p.num[k]
		r.tally["restart: revived "+numberNames[kind]]++
		alive := e.node.Lookup(e.qp.Num) == e.qp
		switch {
		case kind == sameNumber && alive:
			heirs[k].qp = e.qp
			next.inherit(e.plan)
		case kind == sameNumber:
			heirs[k].num = e.qp.Num
		case kind == foreignNumber && len(r.numbers[e.node.Index]) > 0:
			heirs[k].num = r.numbers[e.node.Index][r.rand.Intn(len(r.numbers[e.node.Index]))]
		}
		if alive && heirs[k].qp == nil {
			e.node.Remove(e.qp)
			r.numbers[e.node.Index] = append(r.numbers[e.node.Index], e.qp.Num)
		}
		next.psn = r.freshPSN(p.next.ends[k].program.packets(r.plan.mtu))
	}
	again, err := r.connect(c.index, &p.next, heirs)
	if err != nil {
		return err
	}
	r.conns[c.index] = again
	return r.equip(again)
}

// inherit keeps what a queue pair that lives on was made with.
func (e *endPlan) inherit(before *endPlan) {
	e.depth, e.sigAll, e.inline, e.tuning = before.depth, before.sigAll, before.inline, before.tuning
}

// psnRange is n PSNs from the first on.
type psnRange struct {
	first wire.PSN
	n     int
}

func (a psnRange) overlaps(b psnRange) bool {
	d := int((b.first - a.first) & wire.MaxPSN)
	return d < a.n || d+b.n > 1<<24
}

// freshPSN draws the PSN of a queue pair's first request so that none of its n
// packets, nor one that a responder would keep beyond a gap, has one that a
// former life used: the time-wait state (IBA 12.9.8.4) guards against those,
// and there is none here.
func (r *run) freshPSN(n int) wire.PSN {
	const margin, kept = 4, 1024
	for {
		psn := drawPSN(&r.rand)
		mine := psnRange{psn.Add(-margin), n + margin + kept}
		if !slices.ContainsFunc(r.former, func(f psnRange) bool {
			return mine.overlaps(psnRange{f.first.Add(-margin), f.n + 2*margin})
		}) {
			return psn
		}
	}
}

// packets is how many PSNs a program takes at most.
func (g *programPlan) packets(mtu int) int {
	n := 0
	for i := range g.requests {
		n += packetsOf(g.requests[i].length, mtu)
	}
	return n
}

func (l *lane) packets() int { return l.from.plan.program.packets(l.mtu) }

func packetsOf(n, mtu int) int { return max(1, (n+mtu-1)/mtu) }

// retire checks a lane whose ends are both gone, as far as it came, and leaves
// it with other contents: a late packet for it must change nothing.
func (l *lane) retire() error {
	if err := l.settle(0); err != nil {
		return err
	}
	for _, o := range l.ops[l.completed:l.posted] {
		if o.answered() {
			if err := l.checkPartialAnswer(o); err != nil {
				return err
			}
		}
	}
	if l.recvDone < len(l.receives) {
		if err := l.checkPartialReceive(l.receives[l.recvDone]); err != nil {
			return err
		}
	}
	if err := l.checkArenas("at the end of its life"); err != nil {
		return err
	}
	for _, a := range l.arenas() {
		a.scribble(&l.run.rand, 0, min(len(a.mem), maxScribble))
	}
	r := l.run
	r.lanes = slices.DeleteFunc(slices.Clone(r.lanes), func(x *lane) bool { return x == l })
	r.retired = append(r.retired, l)
	return nil
}

// maxScribble bounds what a seed with large messages costs.
const maxScribble = 256 << 10

func (l *lane) arenas() []*arena { return []*arena{l.target, l.source, l.sink, l.inbox} }

// checkArenas: all memory is what it must be.
func (l *lane) checkArenas(when string) error {
	for _, a := range l.arenas() {
		if at := a.diff(0, len(a.mem)); at >= 0 {
			return fmt.Errorf("%s: %s byte %d of %d is not what it should be", l.name, when, at, len(a.mem))
		}
	}
	return nil
}

// checkRetired: no packet wrote to the memory of a former life.
func (l *lane) checkRetired() error { return l.checkArenas("after it was given up") }
