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

// The soak of datagrams: programs on queue pairs for unreliable datagrams,
// which post sends and receives with and without mistakes to each other, change
// their states and start anew, while the network loses, repeats, reorders and
// damages packets and strangers send some that no queue pair may take.
//
// Nothing is repeated and nothing waits, so the oracle (datagram_oracle.go)
// need not allow for anything: each call of the engine must have the one
// outcome that the specification gives it, in packets, completions, memory,
// state and counters.

const (
	datagramDepth  = 8  // of send queues
	datagramSGEs   = 3  // of a request
	datagramInline = 64 // bytes
	datagramSlots  = 16 // receives of a queue pair at a time, each with memory of its own
	datagramPD     = 3
)

// datagramRun is a run of a seed.
type datagramRun struct {
	rand    virtual.Rand
	world   *virtual.World
	mtu     int
	qkeys   [2]uint32
	ends    []*datagramEnd
	byQPN   map[wire.QPN]*datagramEnd
	nodes   []*virtual.Node
	sent    map[datagramKey]*datagram
	forged  map[wire.PSN]engine.Verdict // packets of strangers by their PSN
	reached map[string]int              // how often the run came to what it is to come to
}

// datagramKey tells the packets of a run apart: queue pairs that start anew go
// on with other PSNs.
type datagramKey struct {
	from netip.Addr
	src  wire.QPN
	psn  wire.PSN
}

// firstForged is the first PSN of strangers, far from those of programs.
const firstForged = 0x800000

// datagramEnd is a queue pair, with what its program and the oracle know of it.
type datagramEnd struct {
	silentEnd
	run *datagramRun

	// The oracle's.
	qkey   uint32
	psn    wire.PSN
	posted []*datagram // sends that have not completed
	failed *datagram   // the send that took the queue pair to ERR
}

// datagram is a send, and then a packet.
type datagram struct {
	wr      engine.SendWR
	src     wire.QPN
	spans   []span // of the payload in the sender's arena, if it is not inline
	status  abi.WCStatus
	payload []byte // from when it was sent
}

// RunDatagrams plays a seed and returns how often it reached what, and the
// first failure.
func RunDatagrams(seed uint64, log func(string)) (map[string]int, error) {
	d := &datagramRun{
		rand: virtual.NewRand(seed), byQPN: map[wire.QPN]*datagramEnd{}, sent: map[datagramKey]*datagram{},
		forged: map[wire.PSN]engine.Verdict{}, reached: map[string]int{},
	}
	r := &d.rand
	d.world = silentWorld(r, log)
	d.mtu = 256 << r.Intn(5)
	d.qkeys = [2]uint32{uint32(r.Uint64()) >> 1, uint32(r.Uint64()) >> 1}
	six := r.Hit(0.3)
	for i := range r.Between(1, 3) {
		addr := netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)})
		if six {
			addr = netip.AddrFrom16([16]byte{0xfd, 15: byte(i + 1)})
		}
		n := d.world.AddNode(string(rune('a'+i)), addr)
		n.Foreign = func(from *virtual.Node, p *wire.Packet) { d.arrive(from, n, p) }
		d.nodes = append(d.nodes, n)
		for range r.Between(1, 2) {
			if err := d.addEnd(n); err != nil {
				return nil, err
			}
		}
	}
	const chaos = 3_000_000 // ns
	for range r.Between(20, 120) {
		d.world.At(engine.Time(r.Intn(chaos)), d.act)
	}
	err := d.world.Run(chaos+1_000_000_000, 100_000)
	if err == nil {
		err = d.end()
	}
	d.world.Logf("trace %016x", uint64(d.world.Trace()))
	return d.reached, err
}

// addEnd makes a queue pair in RESET with its memory.
func (d *datagramRun) addEnd(n *virtual.Node) error {
	r := &d.rand
	e := &datagramEnd{run: d, silentEnd: newSilentEnd(r, n, wire.QPN(0x10+len(d.ends)))}
	e.arena = newArena(r, (datagramSlots+1)*e.slot())
	regions := [3]*region{}
	for i, access := range []abi.AccessFlags{abi.AccessLocalWrite, 0, abi.AccessLocalWrite} {
		regions[i] = &region{
			span: span{0, len(e.arena.mem)}, node: n, arena: e.arena, iova: r.Uint64() >> 24 << 3, access: access, pd: datagramPD,
		}
		if err := regions[i].register(); err != nil {
			return err
		}
	}
	e.whole, e.readOnly, e.dead = regions[0], regions[1], regions[2].key
	if err := regions[2].deregister(0); err != nil {
		return err
	}
	e.silentQueue = engine.NewDatagrams(engine.DatagramConfig{MTU: d.mtu, Local: n.Addr, Config: engine.Config{
		QPN: e.qpn, PD: datagramPD, Regions: n.Regions, Receives: &e.receives, SigAll: e.sigAll,
		SendDepth: datagramDepth, MaxSendSGE: datagramSGEs, MaxRecvSGE: datagramSGEs, MaxInline: datagramInline,
	}})
	e.psn = wire.PSN(wire.MaxPSN - wire.PSN(r.Intn(40)))
	d.ends, d.byQPN[e.qpn] = append(d.ends, e), e
	return e.start()
}

// slot is the memory of a receive; the first one of an arena is that of sends.
func (e *datagramEnd) slot() int { return wire.GRHLen + e.run.mtu + 100 }

// act is a step of a program, or of a stranger.
func (d *datagramRun) act() {
	r := &d.rand
	e := d.ends[r.Intn(len(d.ends))]
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
	case n < 80:
		for range r.Between(1, 6) {
			e.postReceive()
		}
	case n < 83:
		d.forge(e)
		return
	case n < 86:
		e.arena.scribble(r, 0, e.slot()) // what has been sent has been read
		return
	case n < 89:
		err = e.move(abi.QPSErr, engine.Attr{}, 0)
	case e.state == abi.QPSSQD || e.state == abi.QPSRTR:
		err = e.move(abi.QPSRTS, engine.Attr{SQPSN: e.psn}, abi.QPMaskSQPSN)
	case e.state == abi.QPSRTS && n < 92:
		err = e.move(abi.QPSSQD, engine.Attr{}, 0)
	}
	if err == nil {
		err = e.pump()
	}
	if err != nil {
		d.world.Fail(fmt.Errorf("%s/%v: %w", e.node.Name, e.qpn, err))
	}
}

// postSend posts a send, with a mistake now and then.
func (e *datagramEnd) postSend() error {
	d, r := e.run, &e.run.rand
	to := d.ends[r.Intn(len(d.ends))]
	e.ids++
	m := &datagram{src: e.qpn, wr: engine.SendWR{
		ID: e.ids, Opcode: abi.WRSend, To: engine.Destination{Peer: netip.AddrPortFrom(to.node.Addr, wire.Port), QPN: to.qpn, QKey: to.qkey},
	}}
	wr := &m.wr
	if r.Hit(0.3) {
		wr.Opcode, wr.Imm = abi.WRSendWithImm, [4]byte{byte(r.Intn(256)), 1, 2, byte(r.Intn(256))}
	}
	if r.Hit(0.6) {
		wr.Flags |= abi.SendSignaled
	}
	if r.Hit(0.3) {
		wr.Flags |= abi.SendSolicited
	}
	switch r.Intn(10) {
	case 0:
		wr.To.QKey ^= 1
	case 1, 2:
		wr.To.QKey |= 1 << 31 // the queue pair's own
	}
	n := []int{0, r.Between(1, 16), d.mtu, r.Intn(d.mtu + 1), r.Intn(d.mtu + 1)}[r.Intn(5)]
	bug := ""
	if r.Hit(0.03) {
		bug = []string{"send too long", "send with a dead key", "send without address", "send of another operation", "send of too many pieces",
			"send with too much inline"}[r.Intn(6)]
		d.reached[bug]++
	}
	if bug == "send too long" {
		n = d.mtu + r.Between(1, 50)
	}
	if inline := n <= datagramInline && r.Hit(0.3); inline && bug == "" || bug == "send with too much inline" {
		if bug != "" {
			n = datagramInline + r.Between(1, 9)
			m.status = abi.WCLocQPOpErr
		}
		wr.Flags |= abi.SendInline
		wr.Inline = make([]byte, n)
		r.Fill(wr.Inline)
	} else {
		m.spans = pieces(r, 0, n, datagramSGEs)
		wr.SGE = []*region{e.whole, e.readOnly}[r.Intn(2)].list(m.spans)
	}
	switch bug {
	case "send with a dead key":
		wr.SGE, m.status = []mem.SGE{{Addr: e.whole.iova, Length: 8, LKey: e.dead}}, abi.WCLocProtErr
	case "send without address":
		wr.To.Peer, m.status = netip.AddrPort{}, abi.WCLocQPOpErr
	case "send of another operation":
		wr.Opcode, m.status = abi.WRRDMAWrite, abi.WCLocQPOpErr
	case "send of too many pieces":
		wr.SGE, m.status = append(make([]mem.SGE, datagramSGEs), wr.SGE...), abi.WCLocQPOpErr
	}
	posted, err := e.checkPost(d.reached, len(e.posted), datagramDepth, e.Post(d.world.Now(), wr))
	if posted {
		e.posted = append(e.posted, m)
	}
	return err
}

// postReceive posts a receive with room for any message.
func (e *datagramEnd) postReceive() {
	if len(e.waiting) < datagramSlots {
		e.ids++
		at := (1 + int(e.ids)%datagramSlots) * e.slot()
		e.silentEnd.postReceive(&e.run.rand, e.run.reached, span{at, e.slot()}, wire.GRHLen+e.run.mtu, datagramSGEs)
	}
}

// restart moves the queue pair to RESET, and then to RTR or RTS with another
// PSN, and perhaps another Q_Key.
func (e *datagramEnd) restart() error {
	if err := e.move(abi.QPSReset, engine.Attr{}, 0); err != nil {
		return err
	}
	e.run.reached["restart"]++
	e.psn = (e.psn + 1000) & wire.MaxPSN
	return e.start()
}

func (e *datagramEnd) start() error {
	r := &e.run.rand
	key := e.run.qkeys[r.Intn(5)/4]
	err := e.move(abi.QPSInit, engine.Attr{QKey: key}, abi.QPMaskQKey)
	if err == nil {
		err = e.move(abi.QPSRTR, engine.Attr{}, 0)
	}
	if err == nil && !r.Hit(0.2) {
		err = e.move(abi.QPSRTS, engine.Attr{SQPSN: e.psn}, abi.QPMaskSQPSN)
	}
	return err
}

// forge sends a packet that no queue pair may take: of another service,
// partition or Q_Key.
func (d *datagramRun) forge(to *datagramEnd) {
	r := &d.rand
	psn := wire.PSN(firstForged + len(d.forged))
	p := wire.Packet{
		BTH:  wire.BTH{Opcode: wire.UDSendOnly, MigReq: true, PKey: wire.DefaultPKey, DestQPN: to.qpn, PSN: psn},
		DETH: wire.DETH{QKey: to.qkey, SrcQPN: 0x999}, Payload: make([]byte, 4*r.Intn(8)),
	}
	v := engine.Verdict(r.Between(int(engine.WrongService), int(engine.WrongQKey)))
	switch v {
	case engine.WrongService:
		p.Opcode = wire.RCSendOnly
	case engine.WrongPKey:
		p.PKey = 0x1234
	case engine.WrongQKey:
		p.DETH.QKey = d.qkeys[0] ^ d.qkeys[1] ^ 7
	}
	d.forged[psn] = v
	d.world.Inject(d.nodes[r.Intn(len(d.nodes))], to.node, &p, nil)
}
