package virtual

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/rdmashim/rdmashim/rnic/engine"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// Options describe a world. The zero value is a network of 5 µs latency and
// 10 Gbit/s without faults.
type Options struct {
	Seed    uint64
	Faults  Faults
	Latency engine.Duration // one way
	Rate    int64           // bytes per second and direction
	// Batching bounds the time that a node takes from the arrival of a packet
	// until it lets its queue pair send: packets that arrive in between are
	// answered together. 0: at once.
	Batching engine.Duration
	// OnePort lets all ways to a node share one wire and its queue, as those
	// through a switch do. Otherwise each has its own.
	OnePort bool
	// Watch is told of events; may be nil.
	Watch Watcher
	// PathLimit is what a node's queue pairs together have in flight to another
	// at most, in bytes; 0: any number.
	PathLimit int
	// GoBackN gives nodes no Stash.
	GoBackN bool
	// Log gets a line for every event; may be nil.
	Log func(line string)
}

// Watcher is told of events, after they were traced. A Flight and a Packet are
// valid during the call only.
type Watcher interface {
	Sent(f *Flight)
	Dropped(f *Flight, why Fault)
	Arrives(f *Flight, qp *QP, p *wire.Packet) // before the engine sees it
	Arrived(f *Flight, qp *QP, p *wire.Packet) // after
	Completed(qp *QP, c *engine.Completion)
}

// Unwatched lets a Watcher that embeds it pass over the ways of packets.
type Unwatched struct{}

// Sent, Dropped, Arrives and Arrived are of Watcher.
func (Unwatched) Sent(*Flight)                       {}
func (Unwatched) Dropped(*Flight, Fault)             {}
func (Unwatched) Arrives(*Flight, *QP, *wire.Packet) {}
func (Unwatched) Arrived(*Flight, *QP, *wire.Packet) {}

// World is a set of nodes on a network, and a clock. Nothing happens in it but
// by its methods; it has no goroutines and knows no real time.
type World struct {
	// Carry takes every packet that a node sends. It is the network with its
	// faults unless something else is put in its place.
	Carry func(*Flight)
	// Hit counts the faults that happened.
	Hit [NumFaults]uint64
	// Drops counts the packets that nodes refused before any queue pair, and
	// Delivered those that came to one.
	Drops     struct{ ICRC, QPN uint64 }
	Delivered uint64

	opts     Options
	now      engine.Time
	rand     Rand
	faults   Faults
	latency  engine.Time
	nsPerKiB engine.Time
	log      func(string)

	events   eventQueue
	nodes    []*Node
	byAddr   map[netip.Addr]*Node
	ways     [][]direction
	flows    [][]wire.Flow
	flights  uint64
	inFlight uint64 // flights that have yet to arrive
	mark     int    // bytes that wait for a wire and mark what follows; 0: any number
	queue    int    // bytes that may wait for a wire; 0: any number
	mtu      int    // bytes of UDP payload that pass; 0: any number
	spare    []*Flight
	trace    Trace
	failure  error
}

// New makes a world without nodes, at time 0.
func New(o Options) *World {
	w := &World{
		opts:    o,
		rand:    NewRand(o.Seed),
		faults:  o.Faults,
		latency: engine.Time(o.Latency),
		byAddr:  make(map[netip.Addr]*Node),
	}
	if w.latency <= 0 {
		w.latency = 5000
	}
	rate := o.Rate
	if rate <= 0 {
		rate = 10e9 / 8
	}
	w.nsPerKiB = engine.Time(1e9 * 1024 / rate)
	if o.Log != nil {
		w.log = func(s string) { o.Log(fmt.Sprintf("%12.3fus  %s", float64(w.now)/1e3, s)) }
	}
	w.Carry = w.carry
	return w
}

// Now is the time.
func (w *World) Now() engine.Time { return w.now }

// At calls do at a time, not before now.
func (w *World) At(at engine.Time, do func()) {
	w.events.push(event{at: max(at, w.now), do: do})
}

// Logf writes a line into the log, if there is one.
func (w *World) Logf(format string, args ...any) {
	if w.log != nil {
		w.log(fmt.Sprintf(format, args...))
	}
}

// failf ends the run: the first failure counts.
func (w *World) failf(format string, args ...any) {
	if w.failure == nil {
		w.failure = fmt.Errorf("at %d ns: "+format, append([]any{int64(w.now)}, args...)...)
		w.Logf("FAILED: %v", w.failure)
	}
}

// Fail ends the run with an error; the first one counts.
func (w *World) Fail(err error) { w.failf("%w", err) }

// Failure returns the cause that ended the run, if there was one.
func (w *World) Failure() error { return w.failure }

// ErrStuck is how Run ends when as many events happened as were allowed.
var ErrStuck = errors.New("too many events")

// Step makes the next event happen if it is due until the given time, and
// reports whether there was one.
func (w *World) Step(until engine.Time) bool {
	if w.failure != nil || len(w.events.heap) == 0 || w.events.heap[0].at > until {
		return false
	}
	e := w.events.pop()
	w.now = max(w.now, e.at)
	if w.sleeps(&e) {
		return true
	}
	switch {
	case e.flight != nil:
		w.inFlight--
		w.Deliver(e.flight)
	case e.timer != nil:
		e.timer.timeout(e.at)
	case e.pump != nil:
		e.pump.pump()
	case e.do != nil:
		e.do()
	}
	return true
}

// Freeze stops a node until a time: packets and timeouts wait.
func (w *World) Freeze(n *Node, until engine.Time) {
	w.Logf("node %s sleeps until %d ns", n.Name, int64(until))
	n.frozen = until
}

// sleeps puts an event off if its node is frozen. Packets that came meanwhile
// go before timeouts, as a driver reads its socket first.
func (w *World) sleeps(e *event) bool {
	switch {
	case e.flight != nil && e.flight.To.frozen > w.now:
		e.at = e.flight.To.frozen
	case e.pump != nil && e.pump.Node.frozen > w.now:
		e.at = e.pump.Node.frozen + 1
	case e.timer != nil && e.timer.Node.frozen > w.now:
		if !e.timer.timing || e.at != e.timer.timer {
			return true // an earlier event took its place
		}
		e.at = e.timer.Node.frozen + 2
		e.timer.timer = e.at
	default:
		return false
	}
	w.events.push(*e)
	return true
}

// Account adds up the fates of the packets that were sent and of the copies
// that the network made: each arrived, was dropped for a reason, or is under
// way. It holds while the network carries the packets itself.
func (w *World) Account() error {
	made := w.flights + w.Hit[Duplicated]
	gone := w.Delivered + w.Drops.ICRC + w.Drops.QPN + w.Hit[Lost] + w.Hit[Partitioned] + w.Hit[Overflowed] + w.Hit[TooLong]
	if made != gone+w.inFlight {
		return fmt.Errorf("%d packets were sent or repeated, but %d arrived or were dropped and %d are under way", made, gone, w.inFlight)
	}
	return nil
}

// Run lets events happen up to a time, which is then now. It returns early with
// the failure, or with ErrStuck after so many events.
func (w *World) Run(until engine.Time, events int) error {
	for w.Step(until) {
		if events--; events < 0 {
			w.Fail(ErrStuck)
		}
	}
	if w.failure == nil {
		w.now = max(w.now, until)
	}
	return w.failure
}

// AddNode adds a device at an address.
func (w *World) AddNode(name string, addr netip.Addr) *Node {
	port := &wireTime{}
	n := newNode(w, name, addr, len(w.nodes))
	n.port = port
	w.nodes = append(w.nodes, n)
	w.byAddr[addr] = n
	for i := range w.ways {
		w.ways[i] = append(w.ways[i], direction{wire: w.wireTo(port)})
		w.flows[i] = append(w.flows[i], makeFlow(w.nodes[i], n))
	}
	out := make([]direction, len(w.nodes))
	for i := range out {
		out[i].wire = w.wireTo(w.nodes[i].port)
	}
	w.ways = append(w.ways, out)
	row := make([]wire.Flow, len(w.nodes))
	for i := range row {
		row[i] = makeFlow(n, w.nodes[i])
	}
	w.flows = append(w.flows, row)
	return n
}

// wireTo returns the wire of a way that ends at a port.
func (w *World) wireTo(port *wireTime) *wireTime {
	if w.opts.OnePort {
		return port
	}
	return &wireTime{}
}

func makeFlow(from, to *Node) wire.Flow {
	f, err := wire.NewFlow(from.addrPort(), to.addrPort(), true)
	if err != nil {
		panic(err) // the nodes of a world are of one address family
	}
	return f
}

func (w *World) flow(from, to *Node) wire.Flow { return w.flows[from.Index][to.Index] }
