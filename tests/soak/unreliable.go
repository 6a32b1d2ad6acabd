package soak

import (
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
	unreliableSlots = 12 // receives of a queue pair at a time, each with memory of its own
	unreliableMost  = 5  // packets of a message
)

// unreliableRun is a run of a seed. The last node is a stranger.
type unreliableRun struct {
	*silentRun
	mtu  abi.MTU
	sent map[unreliableKey]unreliablePacket
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
	message *message
	index   int // in the message
}

// unreliableEnd is a queue pair. The first slot of its arena is that of sends,
// the second that of the peer's WRITEs.
type unreliableEnd struct {
	silentEnd
	connections *unreliableRun
	peer        *unreliableEnd
	access      abi.AccessFlags
	lent        *region // the part that the peer writes to; now and then it is deregistered

	// The oracle's.
	number uint64   // of the next packet that is sent
	next   uint64   // the number of the packet that is expected
	during *message // of which all packets have come so far
}

// RunUnreliable plays a seed and returns how often it reached what, and the
// first failure.
func RunUnreliable(seed uint64, log func(string)) (map[string]int, error) {
	u := &unreliableRun{silentRun: newSilentRun(seed^0x0c, log, odds{78, 82, 84, 88, 90}), sent: map[unreliableKey]unreliablePacket{}}
	r := &u.rand
	u.mtu = abi.MTU(r.Between(1, 5))
	for i := range 3 {
		u.addNode(netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}))
	}
	for range r.Between(1, 2) {
		if err := u.connect(); err != nil {
			return nil, err
		}
	}
	return u.play(150)
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
	u.players = append(u.players, a, b)
	if err := a.start(); err != nil {
		return err
	}
	return b.start()
}

// newEnd makes a queue pair with its memory.
func (u *unreliableRun) newEnd(n *virtual.Node) (*unreliableEnd, error) {
	r := &u.rand
	e := &unreliableEnd{connections: u, access: allAccess}
	e.init(u.silentRun, e, n, wire.QPN(0x10+len(u.players)+n.Index))
	e.number = 2<<24 - uint64(r.Intn(60))
	if r.Hit(0.1) {
		e.access = abi.AccessLocalWrite
	}
	e.slot = unreliableMost*u.mtu.Bytes() + 100
	regions, err := e.equip(unreliableSlots+2, allAccess, 0, allAccess, allAccess)
	if err != nil {
		return nil, err
	}
	e.lent = regions[2]
	e.silentQueue = engine.NewUnreliable(e.config())
	return e, nil
}

func (e *unreliableEnd) psn() wire.PSN { return numbered(e.number) }

// numbered is the PSN of a packet.
func numbered(n uint64) wire.PSN { return wire.PSN(n & uint64(wire.MaxPSN)) }

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
	u, r := e.connections, &e.run.rand
	e.ids++
	m := &message{wr: engine.SendWR{ID: e.ids}}
	m.wr.Opcode = []abi.WROpcode{abi.WRSend, abi.WRSendWithImm, abi.WRRDMAWrite, abi.WRRDMAWriteWithImm}[r.Intn(4)]
	m.wr.Imm = [4]byte{byte(r.Intn(256)), 1, 2, byte(r.Intn(256))}
	e.flag(m)
	mtu := u.mtu.Bytes()
	n := []int{0, r.Between(1, 16), mtu * r.Between(1, unreliableMost), r.Intn(mtu + 1), r.Intn(unreliableMost*mtu + 1)}[r.Intn(5)]
	e.fill(m, n, n <= silentInline && r.Hit(0.3))
	if m.isWrite() {
		e.aim(m, n)
	}
	if r.Hit(0.03) {
		e.spoil(m)
	}
	return e.post(m)
}

// aim gives a WRITE its target at the peer.
func (e *unreliableEnd) aim(m *message, n int) {
	r, to := &e.run.rand, e.peer
	m.region, m.target = to.whole, span{to.slot + r.Intn(to.slot-n+1), n}
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
func (e *unreliableEnd) spoil(m *message) {
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
		n := r.Intn((unreliableMost-1)*e.connections.mtu.Bytes() + 1)
		m.status, m.good, m.spans = abi.WCLocProtErr, n/e.connections.mtu.Bytes(), []span{{0, n}}
		m.wr.SGE = append(e.whole.list(m.spans), mem.SGE{Addr: e.whole.iova, Length: 8, LKey: e.dead})
		if m.isWrite() { // what it announces fits
			m.target = span{e.peer.slot, n + 8}
			m.bug, m.region = false, e.peer.whole
			m.wr.RemoteAddr, m.wr.RKey = m.region.addr(m.target.at), m.region.key
		}
	case "operation of another service":
		m.wr.Opcode = []abi.WROpcode{abi.WRRDMARead, abi.WRSendWithInv}[r.Intn(2)]
		m.wr.SGE = nil
	case "too many pieces":
		m.wr.SGE = append(make([]mem.SGE, silentSGEs), m.wr.SGE...)
		m.wr.SGE = append(m.wr.SGE, mem.SGE{})
	case "too much inline":
		m.wr.Flags |= abi.SendInline
		m.wr.Inline = make([]byte, silentInline+1)
	}
}

// postReceive posts a receive with room for any message.
func (e *unreliableEnd) postReceive() {
	e.ids++
	e.receiveAt(2+int(e.ids)%unreliableSlots, unreliableMost*e.connections.mtu.Bytes())
}

// renumber gives the next life other numbers.
func (e *unreliableEnd) renumber() { e.number += 500 }

// start expects the next packet of the peer, or one that is under way, so that
// the queue pair comes into the middle of messages.
func (e *unreliableEnd) start() error {
	r := &e.run.rand
	e.next = e.peer.number - uint64(r.Intn(2)*r.Intn(6))
	return e.begin(engine.Attr{Access: e.access}, abi.QPMaskAccessFlags, engine.Attr{
		Peer: netip.AddrPortFrom(e.peer.node.Addr, wire.Port), DestQPN: e.peer.qpn, PathMTU: e.connections.mtu, RQPSN: numbered(e.next),
	}, abi.QPMaskAV|abi.QPMaskDestQPN|abi.QPMaskPathMTU|abi.QPMaskRQPSN)
}

// forge sends a packet that no queue pair may take: of another service or
// partition, or of another address.
func (e *unreliableEnd) forge() {
	r := &e.run.rand
	p := wire.Packet{BTH: wire.BTH{Opcode: wire.UCSendOnly}, Payload: make([]byte, 4*r.Intn(8))}
	from := e.peer.node
	v := []engine.Verdict{engine.WrongService, engine.WrongPKey, forgedAddress}[r.Intn(3)]
	if v == forgedAddress {
		from = e.run.nodes[2]
	}
	e.run.inject(from, &e.silentEnd, p, v)
}

// forgedAddress is a verdict beside those of the engine.
const forgedAddress engine.Verdict = 99
