package soak

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/engine"
	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tests/virtual"
)

// silentRun plays a seed of the soaks of datagrams and of unreliable
// connections: their programs post, change states and start anew, while the
// network loses, repeats, reorders and damages packets and strangers send some
// that no queue pair may take. Nothing is acknowledged or sent again.
type silentRun struct {
	rand    virtual.Rand
	world   *virtual.World
	nodes   []*virtual.Node
	players []player
	odds    odds
	forged  map[wire.PSN]engine.Verdict // packets of strangers by their PSN
	reached map[string]int              // how often the run came to what it is to come to
}

// odds are where in a hundred steps one kind ends and the next begins. First
// come 45 steps that post sends.
type odds struct{ receive, forge, scribble, lend, fail int }

// player is a queue pair: its program, and its oracle.
type player interface {
	base() *silentEnd
	postSend() error
	postReceive()
	lend() error // something that peers use, or takes it back
	forge()
	renumber()    // for another life
	start() error // from RESET to RTR or RTS
	psn() wire.PSN
	moved(to abi.QPState, a engine.Attr, mask abi.QPAttrMask)
	nextPacket() *message // whose packet must come next, or nil
	checkPacket(*wire.Datagram) error
	predict(from *virtual.Node, p *wire.Packet) error
}

// firstForged is the first PSN of strangers, far from those of programs.
const firstForged = 0x800000

// newSilentRun makes a network with faults.
func newSilentRun(seed uint64, log func(string), o odds) *silentRun {
	s := &silentRun{rand: virtual.NewRand(seed), odds: o, forged: map[wire.PSN]engine.Verdict{}, reached: map[string]int{}}
	r := &s.rand
	share := func(top float64) float64 { return top * float64(r.Intn(2)*r.Intn(1000)) / 1000 }
	s.world = virtual.New(virtual.Options{Seed: r.Uint64(), Log: log, Faults: virtual.Faults{
		Loss: share(0.2), Dup: share(0.2), Reorder: share(0.3), Corrupt: share(0.1), Delay: share(0.1), MaxHold: 300 * engine.Microsecond,
	}})
	return s
}

// addNode makes a host.
func (s *silentRun) addNode(addr netip.Addr) *virtual.Node {
	n := s.world.AddNode(string(rune('a'+len(s.nodes))), addr)
	n.Foreign = func(from *virtual.Node, p *wire.Packet) { s.arrive(from, n, p) }
	s.nodes = append(s.nodes, n)
	return n
}

// play takes at most so many steps, and waits for what is under way.
func (s *silentRun) play(most int) (map[string]int, error) {
	const chaos = 3_000_000 // ns
	for range s.rand.Between(20, most) {
		s.world.At(engine.Time(s.rand.Intn(chaos)), s.act)
	}
	err := s.world.Run(chaos+1_000_000_000, 100_000)
	if err == nil {
		err = s.end()
	}
	s.world.Logf("trace %016x", uint64(s.world.Trace()))
	return s.reached, err
}

// act is a step of a program, or of a stranger.
func (s *silentRun) act() {
	r := &s.rand
	p := s.players[r.Intn(len(s.players))]
	e := p.base()
	var err error
	switch n := r.Intn(100); {
	case e.state == abi.QPSErr && r.Hit(0.4) || n >= 98:
		err = e.restart()
	case n < 45:
		for range r.Between(1, 6) {
			if err = p.postSend(); err != nil {
				break
			}
		}
	case n < s.odds.receive:
		for range r.Between(1, 6) {
			p.postReceive()
		}
	case n < s.odds.forge:
		p.forge()
		return
	case n < s.odds.scribble:
		e.arena.scribble(r, 0, e.slot) // what has been sent has been read
		return
	case n < s.odds.lend:
		err = p.lend()
	case n < s.odds.fail:
		err = e.move(abi.QPSErr, engine.Attr{}, 0)
	case e.state == abi.QPSSQD || e.state == abi.QPSRTR:
		err = e.move(abi.QPSRTS, engine.Attr{SQPSN: p.psn()}, abi.QPMaskSQPSN)
	case e.state == abi.QPSRTS && n < 92:
		err = e.move(abi.QPSSQD, engine.Attr{}, 0)
	}
	if err == nil {
		err = e.pump()
	}
	if err != nil {
		s.world.Fail(fmt.Errorf("%s/%v: %w", e.node.Name, e.qpn, err))
	}
}

// inject sends a packet that no queue pair may take, for the reason of a
// verdict, from a node.
func (s *silentRun) inject(from *virtual.Node, to *silentEnd, p wire.Packet, v engine.Verdict) {
	p.MigReq, p.PKey, p.DestQPN, p.PSN = true, wire.DefaultPKey, to.qpn, wire.PSN(firstForged+len(s.forged))
	switch v {
	case engine.WrongService:
		p.Opcode = wire.RCSendOnly
	case engine.WrongPKey:
		p.PKey = 0x1234
	}
	s.forged[p.PSN] = v
	s.world.Inject(from, to.node, &p, nil)
}

// arrive gives a packet to its queue pair and checks what comes of it.
func (s *silentRun) arrive(from, at *virtual.Node, p *wire.Packet) {
	i := slices.IndexFunc(s.players, func(x player) bool { return x.base().qpn == p.DestQPN && x.base().node == at })
	if i < 0 {
		s.world.Fail(fmt.Errorf("a packet for %v comes to %s", p.DestQPN, at.Name))
		return
	}
	e := s.players[i].base()
	err := s.players[i].predict(from, p)
	if err == nil {
		e.Receive(s.world.Now(), from.Addr, p)
		err = e.settle()
	}
	if err != nil {
		s.world.Fail(fmt.Errorf("%s/%v after a packet of %s, PSN %v: %w", at.Name, e.qpn, from.Name, p.PSN, err))
	}
}

// end holds the network's account, and closes the run.
func (s *silentRun) end() error {
	for _, p := range s.players {
		e := p.base()
		if err := errors.Join(e.pump(), e.checkEnd()); err != nil {
			return fmt.Errorf("in the end, %s/%v: %w", e.node.Name, e.qpn, err)
		}
	}
	return s.world.Account()
}
