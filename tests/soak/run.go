package soak

import (
	"fmt"
	"net/netip"
	"runtime/debug"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/engine"
	"github.com/rdmashim/rdmashim/rnic/mem"
	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tests/virtual"
)

// Report is the result of a run.
type Report struct {
	Seed  uint64
	Trace virtual.Trace  // equal for equal runs
	Tally map[string]int // see tally
	Err   error          // the oracle's finding, nil if none
}

// Run plays a seed. log gets a line for every event; it may be nil.
func Run(seed uint64, log func(string)) Report {
	r := &run{seed: seed, plan: newPlan(seed), tally: tally{}, rand: virtual.NewRand(seed ^ 0x5eed)}
	err := r.live(log)
	if err != nil {
		r.world.Logf("FAILED: %v", err)
	}
	r.count()
	return Report{Seed: seed, Trace: r.world.Trace(), Tally: r.tally, Err: err}
}

// live makes the world, plays the plan in it, and perhaps another one on the
// same queue pairs. A panic is a failure of the seed.
func (r *run) live(log func(string)) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic at %d ns: %v\n%s", int64(r.world.Now()), p, debug.Stack())
		}
	}()
	r.makeWorld(log)
	if err := r.generation(); err != nil || !r.plan.again {
		return err
	}
	r.plan = r.plan.sequel(r.seed, r.conns)
	r.world.SetFaults(r.plan.world.Faults)
	return r.generation()
}

// generation plays a plan from its connections to the end of them.
func (r *run) generation() error {
	if err := r.build(); err != nil {
		return err
	}
	return r.play()
}

// run is one run.
type run struct {
	seed  uint64
	plan  *plan
	rand  virtual.Rand // of the program's memory
	world *virtual.World
	tally tally

	nodes    []*virtual.Node // a, b, and a stranger
	base     engine.Time     // when the plan began
	conns    []*conn         // by their place in the plan
	lanes    []*lane         // of conns
	retired  []*lane         // of connections that were given up
	restarts int             // that are going on

	passed   [3][3]wire.PrivateMTU // the longest packets from a node that came to another
	ends     map[*virtual.QP]*end
	numbers  [][]wire.QPN // by node: of queue pairs that are gone
	former   []psnRange   // that packets of former lives may have
	counters []*counters
	regions  []*region
	iova     uint64
	trouble  engine.Time   // the last time that a host sleeps
	slept    []engine.Time // and each node
	calm     bool          // the disturbances are over
	before   uint64        // the counts of the arriving packet's queue pair
}

// makeWorld makes the network of the plan, and its nodes.
func (r *run) makeWorld(log func(string)) {
	opts := r.plan.world
	opts.Watch, opts.Log = r, log
	r.world = virtual.New(opts)
	for i, name := range []string{"a", "b", "stranger"} {
		n := r.world.AddNode(name, netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}))
		if i < 2 && r.plan.goBackN[i] {
			n.Stash = nil
		}
		r.nodes = append(r.nodes, n)
	}
}

// build makes the connections of the plan, with their memory and programs. In a
// second generation the queue pairs are there.
func (r *run) build() error {
	old := r.conns
	r.base, r.calm = r.world.Now(), false
	r.conns, r.lanes, r.retired, r.counters, r.regions = nil, nil, nil, nil, nil
	r.trouble, r.slept = -1, make([]engine.Time, len(r.nodes))
	r.ends, r.numbers, r.former = map[*virtual.QP]*end{}, make([][]wire.QPN, len(r.nodes)), nil
	for _, n := range r.nodes {
		c, err := newCounters(r, n)
		if err != nil {
			return err
		}
		r.counters = append(r.counters, c)
	}
	for i := range r.plan.conns {
		var before [2]heir
		if i < len(old) {
			before = [2]heir{{qp: old[i].ends[0].qp}, {qp: old[i].ends[1].qp}}
		}
		c, err := r.connect(i, &r.plan.conns[i], before)
		if err != nil {
			return err
		}
		r.conns = append(r.conns, c)
	}
	for _, c := range r.conns {
		if err := r.equip(c); err != nil {
			return err
		}
	}
	r.world.SetQueue(r.plan.queue)
	r.world.SetMark(r.plan.queue / 2)
	r.world.SetMTU(r.plan.carries)
	r.disturb()
	return nil
}

// equip gives a connection its memory and programs.
func (r *run) equip(c *conn) error {
	for _, e := range c.ends {
		b := &builder{lane: e.out, prog: &e.plan.program, r: &r.rand}
		if err := b.build(); err != nil {
			return fmt.Errorf("%s: %w", e.out.name, err)
		}
		r.arrange(b)
	}
	return nil
}

// heir says which queue pair an end gets: one that was before, or a new one
// with a number, or with any.
type heir struct {
	qp  *virtual.QP
	num wire.QPN // 0: any
}

// connect makes the queue pairs of a connection, or uses those of one before,
// and takes them to RTS.
func (r *run) connect(i int, p *connPlan, heirs [2]heir) (*conn, error) {
	c := &conn{index: i, plan: p}
	nodes := [2]*virtual.Node{r.nodes[0], r.nodes[1]}
	if p.loopback {
		nodes[1] = nodes[0]
	}
	for k := range c.ends {
		e := &end{run: r, index: k, node: nodes[k], plan: &p.ends[k], conn: c, failedAt: -1}
		e.flow.trouble = -1
		e.inheritSleep()
		if h := heirs[k]; h.qp != nil {
			e.qp = h.qp
			e.before = *e.qp.Counters()
			r.tally["disturbance: queue pair revived"]++
		} else {
			e.qp = r.newQP(e, h.num)
		}
		r.ends[e.qp] = e
		e.mon = newMonitor(e.plan.psn)
		e.flow.una = e.mon.first
		c.ends[k] = e
	}
	selective := 0
	for k, e := range c.ends {
		if e.node.Stash != nil {
			selective++
		}
		e.peer = c.ends[1-k]
		e.out = &lane{run: r, name: fmt.Sprintf("lane %d%s", i, []string{">", "<"}[k]), mtu: r.plan.mtu, from: e, to: e.peer}
		e.peer.in = e.out
		e.out.next = e.mon.first
		r.tally[fmt.Sprintf("limit: %d READs and atomics", e.plan.rdAtomic)]++
		r.lanes = append(r.lanes, e.out)
	}
	r.tally[fmt.Sprintf("connection: with %d selective ends", selective)]++
	for _, e := range c.ends {
		if err := e.connect(); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (r *run) newQP(e *end, qpn wire.QPN) *virtual.QP {
	if qpn == 0 {
		qpn = wire.QPN(r.rand.Intn(1 << 24))
	}
	for e.node.Lookup(qpn) != nil || qpn < 2 {
		qpn = (qpn + 1) & wire.MulticastQPN
	}
	return e.node.AddQP(engine.Config{
		QPN: qpn, PD: pd, SigAll: e.plan.sigAll, SendDepth: e.plan.depth, Tuning: e.plan.tuning,
		MaxSendSGE: maxSGE, MaxRecvSGE: maxSGE, MaxInline: e.plan.inline,
	})
}

func (e *end) connect() error {
	return e.qp.Connect(engine.Attr{
		Access: e.plan.access, Peer: e.peer.qp.At(), DestQPN: e.peer.qp.Num, PathMTU: e.run.plan.mtuAbi,
		RQPSN: e.peer.plan.psn, SQPSN: e.plan.psn,
		MaxDestRdAtomic: e.plan.destRdAtomic, MaxRdAtomic: e.plan.rdAtomic,
		MinRNRTimer: e.plan.minRNR, Timeout: e.plan.timeout, RetryCnt: e.plan.retry, RNRRetry: e.plan.rnrRetry,
		Room: e.run.plan.room[e.node.Index],
	})
}

// newRegion makes a region at an address of its own. Some lie near the end of
// the address space.
func (r *run) newRegion(n *virtual.Node, a *arena, s span, d mem.PD, access abi.AccessFlags) *region {
	r.iova += 1 << 32
	base := r.iova
	if r.rand.Hit(0.05) {
		base = -(r.iova >> 8)
	}
	g := &region{span: s, node: n, arena: a, iova: base + uint64(s.at), access: access, pd: d}
	r.regions = append(r.regions, g)
	return g
}

// newRegion makes a region that the end's process owns.
func (e *end) newRegion(a *arena, s span, d mem.PD, access abi.AccessFlags) *region {
	g := e.run.newRegion(e.node, a, s, d, access)
	e.regions = append(e.regions, g)
	return g
}

// keyInUse reports whether a region of the node has this key, or its index.
func (r *run) keyInUse(n *virtual.Node, key uint32) bool {
	for _, g := range r.regions {
		if g.node == n && g.handle != nil && g.key>>8 == key>>8 {
			return true
		}
	}
	return false
}

// fail ends the run.
func (r *run) fail(err error) {
	if err != nil {
		r.world.Fail(err)
	}
}

func (r *run) count() {
	t, w := r.tally, r.world
	for f, n := range w.Hit {
		t.add("fault: "+virtual.Fault(f).String(), n)
	}
	t.add("fault: found by ICRC", w.Drops.ICRC)
	t.add("restart: packet for a queue pair that is gone", w.Drops.QPN)
	t.add("run: ns of virtual time", uint64(w.Now()))
	t[fmt.Sprintf("run: MTU %d", r.plan.mtu)]++
}
