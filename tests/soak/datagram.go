package soak

import (
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

const datagramSlots = 16 // receives of a queue pair at a time, each with memory of its own

// datagramRun is a run of a seed.
type datagramRun struct {
	*silentRun
	mtu   int
	qkeys [2]uint32
	ends  []*datagramEnd
	sent  map[datagramKey]*message
}

// datagramKey tells the packets of a run apart: queue pairs that start anew go
// on with other PSNs.
type datagramKey struct {
	from netip.Addr
	src  wire.QPN
	psn  wire.PSN
}

// datagramEnd is a queue pair.
type datagramEnd struct {
	silentEnd
	datagrams *datagramRun

	// The oracle's.
	qkey uint32
	next wire.PSN
}

// RunDatagrams plays a seed and returns how often it reached what, and the
// first failure.
func RunDatagrams(seed uint64, log func(string)) (map[string]int, error) {
	d := &datagramRun{silentRun: newSilentRun(seed, log, odds{80, 83, 86, 86, 89}), sent: map[datagramKey]*message{}}
	r := &d.rand
	d.mtu = 256 << r.Intn(5)
	d.qkeys = [2]uint32{uint32(r.Uint64()) >> 1, uint32(r.Uint64()) >> 1}
	six := r.Hit(0.3)
	for i := range r.Between(1, 3) {
		addr := netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)})
		if six {
			addr = netip.AddrFrom16([16]byte{0xfd, 15: byte(i + 1)})
		}
		n := d.addNode(addr)
		for range r.Between(1, 2) {
			if err := d.addEnd(n); err != nil {
				return nil, err
			}
		}
	}
	return d.play(120)
}

// addEnd makes a queue pair with its memory.
func (d *datagramRun) addEnd(n *virtual.Node) error {
	e := &datagramEnd{datagrams: d}
	e.init(d.silentRun, e, n, wire.QPN(0x10+len(d.ends)))
	e.slot = wire.GRHLen + d.mtu + 100
	if _, err := e.equip(datagramSlots+1, abi.AccessLocalWrite, 0, abi.AccessLocalWrite); err != nil {
		return err
	}
	e.silentQueue = engine.NewDatagrams(engine.DatagramConfig{MTU: d.mtu, Local: n.Addr, Config: e.config()})
	e.next = wire.PSN(wire.MaxPSN - wire.PSN(d.rand.Intn(40)))
	d.ends, d.players = append(d.ends, e), append(d.players, e)
	return e.start()
}

func (e *datagramEnd) psn() wire.PSN { return e.next }

func (e *datagramEnd) lend() error { return nil } // nobody but its program uses its memory

// postSend posts a send, with a mistake now and then.
func (e *datagramEnd) postSend() error {
	d, r := e.datagrams, &e.run.rand
	to := d.ends[r.Intn(len(d.ends))]
	e.ids++
	m := &message{src: e.qpn, wr: engine.SendWR{
		ID: e.ids, Opcode: abi.WRSend, To: engine.Destination{Peer: netip.AddrPortFrom(to.node.Addr, wire.Port), QPN: to.qpn, QKey: to.qkey},
	}}
	wr := &m.wr
	if r.Hit(0.3) {
		wr.Opcode, wr.Imm = abi.WRSendWithImm, [4]byte{byte(r.Intn(256)), 1, 2, byte(r.Intn(256))}
	}
	e.flag(m)
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
	inline := n <= silentInline && r.Hit(0.3) && bug == ""
	if bug == "send with too much inline" {
		n, m.status, inline = silentInline+r.Between(1, 9), abi.WCLocQPOpErr, true
	}
	e.fill(m, n, inline)
	switch bug {
	case "send with a dead key":
		wr.SGE, m.status = []mem.SGE{{Addr: e.whole.iova, Length: 8, LKey: e.dead}}, abi.WCLocProtErr
	case "send without address":
		wr.To.Peer, m.status = netip.AddrPort{}, abi.WCLocQPOpErr
	case "send of another operation":
		wr.Opcode, m.status = abi.WRRDMAWrite, abi.WCLocQPOpErr
	case "send of too many pieces":
		wr.SGE, m.status = append(make([]mem.SGE, silentSGEs), wr.SGE...), abi.WCLocQPOpErr
	}
	return e.post(m)
}

// postReceive posts a receive with room for any message.
func (e *datagramEnd) postReceive() {
	if len(e.waiting) < datagramSlots {
		e.ids++
		e.receiveAt(1+int(e.ids)%datagramSlots, wire.GRHLen+e.datagrams.mtu)
	}
}

// renumber gives the next life other PSNs.
func (e *datagramEnd) renumber() { e.next = (e.next + 1000) & wire.MaxPSN }

// start gives the queue pair a Q_Key, perhaps another one.
func (e *datagramEnd) start() error {
	key := e.datagrams.qkeys[e.run.rand.Intn(5)/4]
	return e.begin(engine.Attr{QKey: key}, abi.QPMaskQKey, engine.Attr{}, 0)
}

// forge sends a packet that no queue pair may take: of another service,
// partition or Q_Key.
func (e *datagramEnd) forge() {
	r, d := &e.run.rand, e.datagrams
	p := wire.Packet{BTH: wire.BTH{Opcode: wire.UDSendOnly}, DETH: wire.DETH{QKey: e.qkey, SrcQPN: 0x999}, Payload: make([]byte, 4*r.Intn(8))}
	v := engine.Verdict(r.Between(int(engine.WrongService), int(engine.WrongQKey)))
	if v == engine.WrongQKey {
		p.DETH.QKey = d.qkeys[0] ^ d.qkeys[1] ^ 7
	}
	d.inject(d.nodes[r.Intn(len(d.nodes))], &e.silentEnd, p, v)
}
