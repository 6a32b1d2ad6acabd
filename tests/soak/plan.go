package soak

import (
	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/engine"
	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tests/virtual"
)

const (
	us engine.Time = 1000
	ms engine.Time = 1000 * us
)

// plan holds a seed's decisions before the run.
type plan struct {
	world    virtual.Options
	chaos    engine.Time // when the disturbances end
	mtu      int
	mtuAbi   abi.MTU
	room     [2]int // bytes of UDP payload that each node's packets to soft devices may have; 0: the path MTU counts
	carries  int    // bytes of UDP payload that the path carries without telling; 0: any number
	large    bool   // requests of a MiB and more
	conns    []connPlan
	cuts     []cut
	bursts   []burst
	sleeps   []sleep
	stray    float64 // rate of packets that a stranger repeats from its own address
	forge    float64 // rate of packets that are made up, in the peer's name
	again    bool    // the queue pairs live a second time
	queue    int     // bytes that may wait for a wire; 0: any number
	restarts []restartPlan
	goBackN  [2]bool // the node does not repeat selectively
}

// cut is a partition of one or both ways.
type cut struct {
	from, until engine.Time
	both        bool
	reverse     bool
}

// sleep is a time in which a node does nothing: a host that is busy, or a
// virtual machine that does not run.
type sleep struct {
	from, until engine.Time
	node        int
}

// burst is a time of other fault rates.
type burst struct {
	from, until engine.Time
	faults      virtual.Faults
}

// connPlan is a connection: what both ends agree on, and each end.
type connPlan struct {
	loopback bool
	ends     [2]endPlan
}

type endPlan struct {
	psn          wire.PSN // of its first request
	timeout      wire.AckTimeout
	retry        uint8
	rnrRetry     uint8
	minRNR       wire.RNRTimer
	rdAtomic     uint8 // READs and atomics that it has outstanding
	destRdAtomic uint8 // and that it keeps for its peer
	depth        int
	sigAll       bool
	access       abi.AccessFlags
	inline       int
	breakAt      engine.Time // when the program moves it to the error state; 0: never
	tuning       engine.Tuning
	program      programPlan
	lateShare    float64 // of its receives, those that are posted late
	slow         slowPlan
	pauses       []engine.Time // when its send queue is drained and resumed
}

const allAccess = abi.AccessLocalWrite | abi.AccessRemoteWrite | abi.AccessRemoteRead | abi.AccessRemoteAtomic

// newPlan draws a plan.
func newPlan(seed uint64) *plan {
	r := virtual.NewRand(seed)
	mtu := abi.MTU(r.Between(int(abi.MTU256), int(abi.MTU4096)))
	p := &plan{mtu: mtu.Bytes(), mtuAbi: mtu}
	p.large = r.Hit(0.02)
	p.chaos = engine.Time(r.Between(1000, 20000)) * us
	p.world = virtual.Options{
		Seed:    r.Uint64(),
		Latency: engine.Duration(r.Between(1, 50)) * engine.Duration(us),
		Rate:    int64(r.Between(100, 5000)) << 20,
	}
	if r.Hit(0.6) {
		p.world.Batching = engine.Duration(r.Between(1, 40)) * engine.Duration(us)
	}
	p.world.Faults = drawFaults(&r, r.Intn(4))
	if paths := virtual.NewRand(seed ^ 0x9a7); paths.Hit(0.5) {
		p.world.PathLimit = paths.Between(1, 64) * (p.mtu + 256)
	}
	repeats := virtual.NewRand(seed ^ 0x5e1)
	p.goBackN = [][2]bool{{}, {}, {}, {true, true}, {true, true}, {true, false}, {false, true}}[repeats.Intn(7)]
	if private := virtual.NewRand(seed ^ 0x3717); private.Hit(0.5) {
		for i := range p.room {
			p.room[i] = private.Between(p.mtu, max(3*p.mtu, 1600))
		}
		if private.Hit(0.3) {
			p.carries = private.Between(p.mtu+100, max(3*p.mtu, 1600))
		}
	}
	if r.Hit(0.2) {
		from := engine.Time(r.Intn(int(p.chaos)))
		p.bursts = append(p.bursts, burst{from, from + engine.Time(r.Between(100, 3000))*us, drawFaults(&r, 3)})
	}
	if r.Hit(0.2) {
		for range r.Between(1, 3) {
			from := engine.Time(r.Intn(int(p.chaos)))
			lasts := engine.Time(r.Between(100, 20000)) * us
			if r.Hit(0.3) { // beyond what any retry count waits for
				lasts = engine.Time(r.Between(500, 1500)) * ms
			}
			p.cuts = append(p.cuts, cut{from, from + lasts, r.Hit(0.5), r.Hit(0.5)})
		}
	}
	if r.Hit(0.2) {
		p.queue = r.Between(4, 60) * (p.mtu + 100)
	}
	if r.Hit(0.1) {
		from := engine.Time(r.Intn(int(p.chaos)))
		p.sleeps = append(p.sleeps, sleep{from, from + engine.Time(r.Between(100, 50000))*us, r.Intn(2)})
	}
	if r.Hit(0.2) {
		p.stray = 0.05
	}
	if r.Hit(0.2) {
		p.forge = 0.05
	}
	p.again = r.Hit(0.2)
	conns := r.Between(1, 4)
	switch {
	case p.large:
		conns = 1
	case r.Hit(0.03):
		conns = r.Between(8, 16)
	}
	for range conns {
		p.conns = append(p.conns, p.drawConn(&r))
	}
	if r.Hit(0.25) {
		p.drawRestarts(&r)
	}
	return p
}

// drawFaults draws fault rates: 0 none, 1 light, 2 middling, 3 heavy.
func drawFaults(r *virtual.Rand, grade int) virtual.Faults {
	if grade == 0 {
		return virtual.Faults{}
	}
	top := []float64{0, 0.01, 0.05, 0.25}[grade]
	rate := func() float64 {
		if r.Hit(0.4) {
			return 0
		}
		return top * float64(r.Intn(1001)) / 1000
	}
	return virtual.Faults{
		Loss: rate(), Dup: rate(), Reorder: rate(), Corrupt: rate(), Delay: rate() / 4,
		MaxHold: engine.Duration(r.Between(10, 300)) * engine.Duration(us),
	}
}

func (p *plan) drawConn(r *virtual.Rand) connPlan {
	c := connPlan{loopback: r.Hit(0.1)}
	rdAtomic := uint8([]int{1, 2, r.Between(1, 16), 16}[r.Intn(4)])
	for i := range c.ends {
		e := &c.ends[i]
		*e = endPlan{
			psn:      drawPSN(r),
			timeout:  wire.AckTimeout(r.Between(9, 14)), // 2 … 67 ms
			retry:    7,
			rnrRetry: 7,
			minRNR:   wire.RNRTimer(r.Between(1, 18)), // 0.01 … 5 ms
			rdAtomic: rdAtomic, destRdAtomic: rdAtomic,
			depth:  r.Between(1, 32),
			sigAll: r.Hit(0.3),
			access: allAccess,
			inline: []int{0, 64, 256}[r.Intn(3)],
		}
		if r.Hit(0.15) {
			e.retry = uint8(r.Intn(7))
		}
		if r.Hit(0.15) {
			e.rnrRetry = uint8(r.Intn(7))
		}
		if r.Hit(0.03) {
			e.minRNR = 0 // 655 ms
		}
		if r.Hit(0.04) {
			e.timeout = 0 // believes in its peer for ever
		}
		if r.Hit(0.05) {
			e.breakAt = 1 + engine.Time(r.Intn(int(p.chaos)))
		}
		if r.Hit(0.4) {
			e.lateShare = float64(r.Intn(101)) / 100
		}
		if r.Hit(0.15) {
			e.slow = slowPlan{r.Between(1, 4), engine.Time(r.Between(1, 1000)) * us}
		}
		for r.Hit(0.15) {
			e.pauses = append(e.pauses, engine.Time(r.Intn(int(p.chaos))))
		}
		if r.Hit(0.5) {
			e.tuning = p.drawTuning(r)
		}
		e.program = p.drawProgram(r)
	}
	// A direction that the queue pair itself forbids.
	for i := range c.ends {
		if c.ends[i].program.bug == forbidden {
			c.ends[1-i].access = abi.AccessLocalWrite
		}
	}
	return c
}

// drawTuning draws windows from a single packet on, and timers.
func (p *plan) drawTuning(r *virtual.Rand) engine.Tuning {
	return engine.Tuning{
		InitialWindow: r.Between(1, 32) * (p.mtu + 256),
		MaxWindow:     r.Between(1, 128) * (p.mtu + 256),
		MinRTO:        engine.Duration(r.Between(100, 2000)) * engine.Microsecond,
		InitialRTO:    engine.Duration(r.Between(1, 30)) * engine.Millisecond,
		MaxRTO:        engine.Duration(r.Between(5, 1000)) * engine.Millisecond,
		AckDelay:      engine.Duration(max(0, r.Between(-500, 1000))) * engine.Microsecond,
	}
}

// drawPSN likes the places where a sequence number wraps or changes its sign.
func drawPSN(r *virtual.Rand) wire.PSN {
	switch r.Intn(4) {
	case 0:
		return wire.PSN(0).Add(-r.Intn(200))
	case 1:
		return wire.PSN(1 << 23).Add(-r.Intn(200))
	}
	return wire.PSN(r.Intn(1 << 24))
}

// sequel draws a second plan for the same queue pairs, those of conns.
func (p *plan) sequel(seed uint64, conns []*conn) *plan {
	q := newPlan(seed ^ 0xa9a1)
	q.world.Latency, q.world.Rate, q.world.Batching = p.world.Latency, p.world.Rate, p.world.Batching
	for i := range q.conns {
		if i >= len(conns) {
			break
		}
		q.conns[i].loopback = conns[i].plan.loopback
		for k := range q.conns[i].ends {
			q.conns[i].ends[k].inherit(conns[i].ends[k].plan)
		}
	}
	return q
}
