package soak

import (
	"fmt"
	"net/netip"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/engine"
	"github.com/rdmashim/rdmashim/rnic/mem"
	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tests/virtual"
)

// The soak of unreliable connections: programs post SENDs, WRITEs and receives,
// with and without mistakes, drain their queues, deregister what their peer
// writes to, and start anew, each end when it likes, while the network loses,
// repeats, reorders and damages packets.
//
// Nothing is acknowledged. The oracle (unreliable_oracle.go) knows which
// packets arrive, and in which order. From that alone it derives what comes of
// each one: bytes in memory, completions, states and counters.

const (
	unreliableDepth  = 8
	unreliableSGEs   = 3
	unreliableInline = 64 // bytes
	unreliableSlots  = 12 // receives of a queue pair at a time, each with memory of its own
	unreliablePD     = 4
	unreliableMost   = 5 // packets of a message
)

// unreliableRun is a run of a seed.
type unreliableRun struct {
	rand    virtual.Rand
	world   *virtual.World
	mtu     abi.MTU
	ends    []*unreliableEnd
	nodes   []*virtual.Node // the last one is a stranger
	sent    map[unreliableKey]unreliablePacket
	forged  map[wire.PSN]engine.Verdict
	reached map[string]int
}

// unreliableKey tells the packets of a run apart: a queue pair never sends a
// PSN twice, in all of its lives.
type unreliableKey struct {
	to  wire.QPN
	psn wire.PSN
}

// unreliablePacket is a packet that was sent.
type unreliablePacket struct {
	number  uint64 // whose low 24 bits are its PSN
	message *unreliableMessage
	index   int // in the message
}

// unreliableEnd is a queue pair, with what its program and the oracle know of
// it.
type unreliableEnd struct {
	silentEnd
	run    *unreliableRun
	peer   *unreliableEnd
	access abi.AccessFlags
	lent   *region // the part that the peer writes to; now and then it is deregistered

	// The oracle's.
	number uint64               // of the next packet that is sent
	posted []*unreliableMessage // sends that have not completed
	begun  int                  // packets of posted[0] that were sent
	failed *unreliableMessage   // the send that took the queue pair to ERR
	next   uint64               // the number of the packet that is expected
	during *unreliableMessage   // of which all packets have come so far
}

// unreliableMessage is a request.
type unreliableMessage struct {
	wr      engine.SendWR
	spans   []span // of the payload in the sender's arena, if it is not inline
	status  abi.WCStatus
	good    int // with a status: packets that are sent before it shows
	region  *region
	target  span // of a WRITE, in the arena of the peer
	bug     bool // the peer refuses it
	payload []byte
}

// RunUnreliable plays a seed and returns how often it reached what, and the
// first failure.
func RunUnreliable(seed uint64, log func(string)) (map[string]int, error) {
	u := &unreliableRun{
		rand: virtual.NewRand(seed ^ 0x0c), sent: map[unreliableKey]unreliablePacket{}, forged: map[wire.PSN]engine.Verdict{}, reached: map[string]int{},
	}
	r := &u.rand
	u.world = silentWorld(r, log)
	u.mtu = abi.MTU(r.Between(1, 5))
	for i := range 3 {
		n := u.world.AddNode(string(rune('a'+i)), netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}))
		n.Foreign = func(from *virtual.Node, p *wire.Packet) { u.arrive(from, n, p) }
		u.nodes = append(u.nodes, n)
	}
	for range r.Between(1, 2) {
		if err := u.connect(); err != nil {
			return nil, err
		}
	}
	const chaos = 3_000_000 // ns
	for range r.Between(20, 150) {
		u.world.At(engine.Time(r.Intn(chaos)), u.act)
	}
	err := u.world.Run(chaos+1_000_000_000, 100_000)
	if err == nil {
		err = u.end()
	}
	u.world.Logf("trace %016x", uint64(u.world.Trace()))
	return u.reached, err
}

// connect makes two queue pairs that are each other's peers.
func (u *unreliableRun) connect() error {
	a, err := u.newEnd(u.nodes[0])
	if err != nil {
		return err
	}
	b, err := u.newEnd(u.nodes[1])
	if err != nil {
		return err
	}
	a.peer, b.peer = b, a
	u.ends = append(u.ends, a, b)
	if err := a.start(); err != nil {
		return err
	}
	return b.start()
}

// newEnd makes a queue pair in RESET with its memory.
func (u *unreliableRun) newEnd(n *virtual.Node) (*unreliableEnd, error) {
	r := &u.rand
	e := &unreliableEnd{
		run: u, silentEnd: newSilentEnd(r, n, wire.QPN(0x10+len(u.ends)+n.Index)),
		access: allAccess, number: 2<<24 - uint64(r.Intn(60)),
	}
	if r.Hit(0.1) {
		e.access = abi.AccessLocalWrite
	}
	e.arena = newArena(r, (unreliableSlots+2)*e.slot())
	all := span{0, len(e.arena.mem)}
	regions := [4]*region{}
	for i, access := range []abi.AccessFlags{allAccess, 0, allAccess, allAccess} {
		regions[i] = &region{span: all, node: n, arena: e.arena, iova: r.Uint64() >> 24 << 3, access: access, pd: unreliablePD}
		if err := regions[i].register(); err != nil {
			return nil, err
		}
	}
	e.whole, e.readOnly, e.lent, e.dead = regions[0], regions[1], regions[2], regions[3].key
	if err := regions[3].deregister(0); err != nil {
		return nil, err
	}
	e.silentQueue = engine.NewUnreliable(engine.Config{
		QPN: e.qpn, PD: unreliablePD, Regions: n.Regions, Receives: &e.receives, SigAll: e.sigAll,
		SendDepth: unreliableDepth, MaxSendSGE: unreliableSGEs, MaxRecvSGE: unreliableSGEs, MaxInline: unreliableInline,
	})
	return e, nil
}

// slot is the memory of a receive. The first slot of an arena is that of sends,
// the second that of the peer's WRITEs.
func (e *unreliableEnd) slot() int { return unreliableMost*e.run.mtu.Bytes() + 100 }

// act is a step of a program, or of a stranger.
func (u *unreliableRun) act() {
	r := &u.rand
	e := u.ends[r.Intn(len(u.ends))]
	var err error
	switch n := r.Intn(100); {
	case e.state == abi.QPSErr && r.Hit(0.4) || n >= 98:
		err = e.restart()
	case n < 45:
		for range r.Between(1, 6) {
			if err = e.postSend(); err != nil {
				break
			}
		}
	case n < 78:
		for range r.Between(1, 6) {
			e.postReceive()
		}
	case n < 82:
		u.forge(e)
		return
	case n < 84:
		e.arena.scribble(r, 0, e.slot()) // what has been sent has been read
		return
	case n < 88:
		err = e.lend()
	case n < 90:
		err = e.move(abi.QPSErr, engine.Attr{}, 0)
	case e.state == abi.QPSSQD || e.state == abi.QPSRTR:
		err = e.move(abi.QPSRTS, engine.Attr{SQPSN: wire.PSN(e.number & uint64(wire.MaxPSN))}, abi.QPMaskSQPSN)
	case e.state == abi.QPSRTS && n < 92:
		err = e.move(abi.QPSSQD, engine.Attr{}, 0)
	}
	if err == nil {
		err = e.pump()
	}
	if err != nil {
		u.world.Fail(fmt.Errorf("%s/%v: %w", e.node.Name, e.qpn, err))
	}
}

// lend deregisters the region that the peer writes to, or registers it again,
// with another key.
func (e *unreliableEnd) lend() error {
	if e.lent.gone {
		return e.lent.register()
	}
	return e.lent.deregister(e.run.world.Now())
}

// postSend posts a request, with a mistake now and then.
func (e *unreliableEnd) postSend() error {
	u, r := e.run, &e.run.rand
	e.ids++
	m := &unreliableMessage{wr: engine.SendWR{ID: e.ids}}
	m.wr.Opcode = []abi.WROpcode{abi.WRSend, abi.WRSendWithImm, abi.WRRDMAWrite, abi.WRRDMAWriteWithImm}[r.Intn(4)]
	m.wr.Imm = [4]byte{byte(r.Intn(256)), 1, 2, byte(r.Intn(256))}
	if r.Hit(0.6) {
		m.wr.Flags |= abi.SendSignaled
	}
	if r.Hit(0.3) {
		m.wr.Flags |= abi.SendSolicited
	}
	mtu := u.mtu.Bytes()
	n := []int{0, r.Between(1, 16), mtu * r.Between(1, unreliableMost), r.Intn(mtu + 1), r.Intn(unreliableMost*mtu + 1)}[r.Intn(5)]
	if n <= unreliableInline && r.Hit(0.3) {
		m.wr.Flags |= abi.SendInline
		m.wr.Inline = make([]byte, n)
		r.Fill(m.wr.Inline)
	} else {
		m.spans = pieces(r, 0, n, unreliableSGEs)
		m.wr.SGE = []*region{e.whole, e.readOnly}[r.Intn(2)].list(m.spans)
	}
	if m.isWrite() {
		e.aim(m, n)
	}
	if r.Hit(0.03) {
		e.spoil(m)
	}
	posted, err := e.checkPost(u.reached, len(e.posted), unreliableDepth, e.Post(u.world.Now(), &m.wr))
	if posted {
		e.posted = append(e.posted, m)
	}
	return err
}

// aim gives a WRITE its target at the peer.
func (e *unreliableEnd) aim(m *unreliableMessage, n int) {
	r, to := &e.run.rand, e.peer
	m.region, m.target = to.whole, span{to.slot() + r.Intn(to.slot()-n+1), n}
	if r.Hit(0.3) {
		m.region = to.lent
	}
	m.wr.RKey = m.region.key
	if r.Hit(0.08) && n > 0 {
		m.bug = true
		what := []string{"WRITE to memory to read", "WRITE with a dead key", "WRITE beyond its region"}[r.Intn(3)]
		e.run.reached[what]++
		switch what {
		case "WRITE to memory to read":
			m.region, m.wr.RKey = to.readOnly, to.readOnly.key
		case "WRITE with a dead key":
			m.wr.RKey = to.dead
		case "WRITE beyond its region":
			m.target.at = m.region.end() - r.Intn(n)
		}
	}
	m.wr.RemoteAddr = m.region.addr(m.target.at)
}

// spoil lets a request fail at its own end.
func (e *unreliableEnd) spoil(m *unreliableMessage) {
	r := &e.run.rand
	what := []string{"dead key", "dead key behind good bytes", "operation of another service", "too many pieces", "too much inline"}[r.Intn(5)]
	e.run.reached[what]++
	m.status, m.spans = abi.WCLocQPOpErr, nil
	m.wr.Flags &^= abi.SendInline
	m.wr.Inline = nil
	switch what {
	case "dead key":
		m.status, m.wr.SGE = abi.WCLocProtErr, []mem.SGE{{Addr: e.whole.iova, Length: 8, LKey: e.dead}}
	case "dead key behind good bytes":
		n := r.Intn((unreliableMost-1)*e.run.mtu.Bytes() + 1)
		m.status, m.good, m.spans = abi.WCLocProtErr, n/e.run.mtu.Bytes(), []span{{0, n}}
		m.wr.SGE = append(e.whole.list(m.spans), mem.SGE{Addr: e.whole.iova, Length: 8, LKey: e.dead})
		if m.isWrite() { // what it announces fits
			m.target = span{e.peer.slot(), n + 8}
			m.bug, m.region = false, e.peer.whole
			m.wr.RemoteAddr, m.wr.RKey = m.region.addr(m.target.at), m.region.key
		}
	case "operation of another service":
		m.wr.Opcode = []abi.WROpcode{abi.WRRDMARead, abi.WRSendWithInv}[r.Intn(2)]
		m.wr.SGE = nil
	case "too many pieces":
		m.wr.SGE = append(make([]mem.SGE, unreliableSGEs), m.wr.SGE...)
		m.wr.SGE = append(m.wr.SGE, mem.SGE{})
	case "too much inline":
		m.wr.Flags |= abi.SendInline
		m.wr.Inline = make([]byte, unreliableInline+1)
	}
}

// postReceive posts a receive with room for any message.
func (e *unreliableEnd) postReceive() {
	e.ids++
	at := (2 + int(e.ids)%unreliableSlots) * e.slot()
	e.silentEnd.postReceive(&e.run.rand, e.run.reached, span{at, e.slot()}, unreliableMost*e.run.mtu.Bytes(), unreliableSGEs)
}

// restart moves the queue pair to RESET, and begins a life with other numbers.
func (e *unreliableEnd) restart() error {
	if err := e.move(abi.QPSReset, engine.Attr{}, 0); err != nil {
		return err
	}
	e.run.reached["restart"]++
	e.number += 500
	return e.start()
}

// start takes the queue pair to RTR or RTS. It expects the next packet of its
// peer, or one that is under way, so that it comes into the middle of messages.
func (e *unreliableEnd) start() error {
	r := &e.run.rand
	e.next = e.peer.number - uint64(r.Intn(2)*r.Intn(6))
	psn := func(n uint64) wire.PSN { return wire.PSN(n & uint64(wire.MaxPSN)) }
	err := e.move(abi.QPSInit, engine.Attr{Access: e.access}, abi.QPMaskAccessFlags)
	if err == nil {
		err = e.move(abi.QPSRTR, engine.Attr{
			Peer: netip.AddrPortFrom(e.peer.node.Addr, wire.Port), DestQPN: e.peer.qpn, PathMTU: e.run.mtu, RQPSN: psn(e.next),
		}, abi.QPMaskAV|abi.QPMaskDestQPN|abi.QPMaskPathMTU|abi.QPMaskRQPSN)
	}
	if err == nil && !r.Hit(0.2) {
		err = e.move(abi.QPSRTS, engine.Attr{SQPSN: psn(e.number)}, abi.QPMaskSQPSN)
	}
	return err
}

// forge sends a packet that no queue pair may take: of another service or
// partition, or of another address.
func (u *unreliableRun) forge(to *unreliableEnd) {
	r := &u.rand
	psn := wire.PSN(firstForged + len(u.forged))
	p := wire.Packet{
		BTH:     wire.BTH{Opcode: wire.UCSendOnly, MigReq: true, PKey: wire.DefaultPKey, DestQPN: to.qpn, PSN: psn},
		Payload: make([]byte, 4*r.Intn(8)),
	}
	from := to.peer.node
	v := []engine.Verdict{engine.WrongService, engine.WrongPKey, forgedAddress}[r.Intn(3)]
	switch v {
	case engine.WrongService:
		p.Opcode = wire.RCSendOnly
	case engine.WrongPKey:
		p.PKey = 0x1234
	case forgedAddress:
		from = u.nodes[2]
	}
	u.forged[psn] = v
	u.world.Inject(from, to.node, &p, nil)
}

// forgedAddress is a verdict beside those of the engine.
const forgedAddress engine.Verdict = 99
