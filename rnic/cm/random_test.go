package cm_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/rnic/cm"
	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tests/amount"
)

var (
	seedFlag = flag.Uint64("cm.seed", 0, "run this seed only, and say what happens")
	manyFlag = flag.Uint64("cm.n", 0, "how many seeds to run; 0: 3000, all of the 10000 with tools/test --all, 1000 with -short")
)

// TestRandom connects and disconnects hosts over a network with faults, and
// holds that both ends agree on the fate of every connection, within the bound.
func TestRandom(t *testing.T) {
	first, last := uint64(1), *manyFlag
	switch {
	case *seedFlag != 0:
		first, last = *seedFlag, *seedFlag
	case testing.Short():
		last = 1000
	case last == 0:
		last = uint64(amount.Of(3_000, 10_000))
	}
	var sum tally
	for seed := first; seed <= last; seed++ {
		r := newRandomWorld(t, seed)
		r.tally = &sum
		if *seedFlag != 0 {
			r.trace = func(format string, args ...any) {
				t.Logf("%-14v %s", time.Duration(r.w.now), fmt.Sprintf(format, args...))
			}
		}
		r.run()
		if len(r.faults) > 0 {
			t.Fatalf("seed %d: %s\nreplay: go test ./rnic/cm -run TestRandom -cm.seed=%d -v", seed, strings.Join(r.faults, "\n\t"), seed)
		}
	}
	t.Logf("%d seeds: %+v", last-first+1, sum)
	if *seedFlag == 0 && last >= 1000 { // the test must reach the cases that it is for
		for name, n := range map[string]int{"connected": sum.Connected, "rejected": sum.Rejected, "unreachable": sum.Unreachable,
			"cancelled": sum.Cancelled, "restarts": sum.Restarts, "stale": 20 * sum.Stale, "lost": sum.Lost, "late": sum.Late, "doubled": sum.Doubled} {
			require.Greater(t, n, int(last)/20, name)
		}
		require.Less(t, sum.OneSided, sum.Connects/50, "one side in the dark")
	}
}

// tally counts events, over all seeds.
type tally struct {
	Connects, Connected, Rejected, Unreachable, Cancelled, Restarts, Lost, Doubled, Late, OneSided, Stale int
}

// side is the knowledge of the program at one end of a connection.
type side struct {
	h         *host
	life      byte // of the host when it began
	id        wire.CommID
	attr      cm.Attr
	accepted  *cm.AcceptParams
	rejected  bool // by this program
	reason    wire.RejectReason
	private   string // of the reject
	since     cm.Time
	confirmed bool
	up        bool // Confirm was called, or Connected came
	down      bool // Disconnected came, or this program disconnected
	outcome   string
	told      map[cm.EventKind]int
	destroyed bool

	until, before cm.Time // until when a REJ is remembered, now and before the last REQ
	asked         bool    // disconnect was called
}

// refused reports whether this side, or its CM, sent a REJ.
func (s *side) refused() bool { return s.rejected || s.told[cm.Unreachable] > 0 }

func (s *side) gone() bool { return s == nil || s.h.lives != s.life }

// try is one call of Connect and its outcome.
type try struct {
	n       int
	port    uint16
	params  *cm.ConnectParams
	began   cm.Time
	ended   cm.Time // the first outcome came
	active  *side
	passive []*side // one, but for restarts and REJs that were lost for long
}

// randomWorld is one seed's.
type randomWorld struct {
	*tally
	w      *world
	rnd    *rand.Rand
	trace  func(format string, args ...any)
	faults []string
	tries  []*try
	sides  map[*host]map[wire.CommID]*side
	of     map[*side]*try
	cfg    cm.Config

	loss, dup, late float64
	slow            cm.Duration
	cutFrom, cutTo  cm.Time
	restarted       bool
	thinks          cm.Duration // how long programs think, at most
}

const maxThink = 3 * cm.Second

func newRandomWorld(t testing.TB, seed uint64) *randomWorld {
	r := &randomWorld{w: newWorld(t), rnd: rand.New(rand.NewPCG(seed, 0)), trace: func(string, ...any) {},
		sides: map[*host]map[wire.CommID]*side{}, of: map[*side]*try{}}
	pick := func(list ...float64) float64 { return list[r.rnd.IntN(len(list))] }
	r.loss, r.dup, r.late = pick(0, 0.05, 0.05, 0.2, 0.4), pick(0, 0.1, 0.3), pick(0, 0.1, 0.3)
	r.slow = cm.Duration(pick(5, 100, 500)) * cm.Millisecond
	r.thinks = cm.Duration(pick(0.001, 0.3, 3) * float64(cm.Second))
	if r.rnd.IntN(4) == 0 {
		r.cutFrom = cm.Time(r.rnd.Int64N(int64(10 * cm.Second)))
		r.cutTo = r.cutFrom + cm.Time(r.rnd.Int64N(int64(60*cm.Second)))
	}
	r.cfg = cm.Config{ResponseTimeout: 16, Retries: 7, MRATimeout: 20}
	r.w.seed = seed
	for _, name := range []string{"a", "b", "c"} {
		r.begin(r.w.host(name, r.cfg))
	}
	r.w.fate = r.fate
	r.w.told = r.event
	r.w.arrives = r.arrives
	r.w.seen = func(f *flight) { r.trace("%v", f) }
	return r
}

// begin is the program of a host that starts.
func (r *randomWorld) begin(h *host) {
	r.sides[h] = map[wire.CommID]*side{}
	for port := uint16(1); port <= 2; port++ {
		if _, err := h.m.Listen(wire.TCPService(port), h.addr.Addr(), 1+r.rnd.IntN(8)); err != nil {
			r.fault("listen: %v", err)
		}
	}
}

func (r *randomWorld) fault(format string, args ...any) {
	r.faults = append(r.faults, fmt.Sprintf(format, args...))
	r.trace("FAULT "+format, args...)
}

// fate is the network's treatment of a datagram.
func (r *randomWorld) fate(f *flight) []cm.Duration {
	delay := func() cm.Duration {
		if r.rnd.Float64() < r.late {
			r.Late++
			return hop + cm.Duration(r.rnd.Int64N(int64(r.slow)))
		}
		return hop
	}
	if r.w.now >= r.cutFrom && r.w.now < r.cutTo || r.rnd.Float64() < r.loss {
		r.Lost++
		return nil
	}
	list := []cm.Duration{delay()}
	if r.rnd.Float64() < r.dup {
		r.Doubled++
		list = append(list, delay())
	}
	return list
}

// arrives notes when REQs come.
func (r *randomWorld) arrives(f *flight) {
	var q wire.REQ
	if f.attribute() != wire.AttrREQ || q.Parse(f.mad[wire.MADHeaderLen:]) != nil {
		return
	}
	y := r.try(number(q.Private[wire.IPCMLen:]))
	for _, s := range y.passive {
		if !s.refused() {
			continue
		}
		if s.until == 0 {
			s.until = s.since + kept
		}
		if s.before = s.until; r.w.now < s.until {
			s.until = r.w.now + kept
		}
	}
}

// kept is how long a REJ is remembered after a message that it answered.
const kept = cm.Time(2 * (4096<<16 + 2*4096<<18))

// number reads the private data of a try's REQ; 0 if it is none.
func number(private []byte) (n int) {
	_, _ = fmt.Sscanf(string(private), "try %d.", &n)
	return n
}

// think is how long a program takes.
func (r *randomWorld) think() cm.Duration { return cm.Duration(r.rnd.Int64N(int64(r.thinks) + 1)) }

func (r *randomWorld) run() {
	for n := range 3 + r.rnd.IntN(8) {
		r.w.later(cm.Duration(r.rnd.Int64N(int64(8*cm.Second))), func() { r.connect(n + 1) })
	}
	for range r.rnd.IntN(3) {
		h := r.w.hosts[r.rnd.IntN(len(r.w.hosts))]
		r.w.later(cm.Duration(r.rnd.Int64N(int64(6*cm.Second))), func() { r.restart(h) })
	}
	r.w.run(forever)
	r.settled()
	for _, y := range r.tries {
		for _, s := range append(y.passive, y.active) {
			r.destroy(s)
		}
	}
	r.w.run(forever)
	for _, h := range r.w.hosts {
		if all, lingering := h.m.Len(); all != 0 || lingering != 0 {
			r.fault("%s still has %d connections, %d lingering", h.name, all, lingering)
		}
		if at, ok := h.m.NextTimeout(); ok {
			r.fault("%s still waits, for %v", h.name, time.Duration(at))
		}
	}
}

func (r *randomWorld) restart(h *host) {
	r.trace("%s begins anew", h.name)
	r.Restarts++
	r.restarted = true
	h.start()
	h.qpn = h.qpn >> 16 << 16 // the same queue pairs again
	r.begin(h)
}

func (r *randomWorld) connect(n int) {
	from, to := r.w.hosts[r.rnd.IntN(3)], r.w.hosts[r.rnd.IntN(3)] // itself too
	port := uint16(1 + r.rnd.IntN(2))
	if r.rnd.IntN(10) == 0 {
		port = 3 // no listener
	}
	y := &try{n: n, port: port, began: r.w.now, params: from.params(to, port, fmt.Sprintf("try %d.", n))}
	id, err := from.m.Connect(r.w.now, y.params)
	if err != nil {
		r.fault("connect: %v", err)
		return
	}
	r.Connects++
	y.active = r.side(from, id, y)
	r.tries = append(r.tries, y)
	r.trace("%s connects to %s, try %d", from.name, to.name, n)
	if r.rnd.IntN(8) == 0 {
		s := y.active
		r.w.later(r.think(), func() {
			if s.outcome == "" && !s.gone() {
				r.Cancelled++
				s.outcome = "cancelled"
				r.destroy(s)
			}
		})
	}
	from.settle()
}

// side makes one end of a try known.
func (r *randomWorld) side(h *host, id wire.CommID, y *try) *side {
	s := &side{h: h, life: h.lives, id: id, told: map[cm.EventKind]int{}}
	if r.sides[h][id] != nil {
		r.fault("%s: identifier %v is given twice", h.name, id)
	}
	r.sides[h][id] = s
	r.of[s] = y
	return s
}

// call makes a program's call; it cannot fail but where the state has changed
// without the program knowing yet.
func (r *randomWorld) call(s *side, what string, do func() error) {
	if s.gone() || s.destroyed {
		return
	}
	r.trace("%s: try %d %s", s.h.name, r.of[s].n, what)
	if err := do(); err != nil && s.told[cm.Rejected]+s.told[cm.Disconnected]+s.told[cm.Unreachable] == 0 {
		r.fault("%s try %d: %v", s.h.name, r.of[s].n, err)
	}
	s.h.settle()
}

func (r *randomWorld) destroy(s *side) {
	r.call(s, "destroy", func() error {
		s.destroyed = true
		return s.h.m.Destroy(r.w.now, s.id)
	})
}
