package foreign

import (
	"fmt"

	"github.com/rdmashim/rdmashim/rnic/engine"
	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tests/virtual"
)

// Config is the facts that both ends of a connection know.
type Config struct {
	World    *virtual.World
	Node, To *virtual.Node
	QPN      wire.QPN // of the other end
	MTU      int
	PSN      wire.PSN // of the first request to the other end
	Expect   wire.PSN // of the first request from it
	Reads    int      // READs and atomics that may be outstanding, each way
	RKey     uint32   // of the region
	VA       uint64   // of the region
	Memory   []byte   // the region
	Timeout  engine.Duration
	Rand     virtual.Rand
}

// Peer is the end.
type Peer struct {
	Config
	responder
	requester
}

// New makes an end that is ready to receive and to send.
func New(c Config) *Peer {
	p := &Peer{Config: c}
	p.expected, p.next, p.oldest = c.Expect, c.PSN, c.PSN
	p.limit = -1
	c.Node.Foreign = p.receive
	return p
}

// failf ends the run: the other end did what the specification forbids.
func (p *Peer) failf(format string, args ...any) {
	p.World.Fail(fmt.Errorf("foreign end: "+format, args...))
}

// receive takes a packet.
func (p *Peer) receive(_ *virtual.Node, k *wire.Packet) {
	switch {
	case k.Opcode == wire.CNP: // a fault set FECN, which no ICRC covers
	case k.Opcode.Service() != wire.ServiceRC || !k.PKey.Match(wire.DefaultPKey):
		p.failf("%v with P_Key %v", k.Opcode, k.PKey)
	case len(k.Payload) > p.MTU:
		p.failf("%v with %d bytes, more than the MTU", k.Opcode, len(k.Payload))
	case k.Opcode.IsRequest():
		p.request(k)
	case k.Opcode.IsResponse():
		p.response(k)
	default:
		p.failf("%v", k.Opcode)
	}
}

// send sends a packet to the other end.
func (p *Peer) send(k *wire.Packet) {
	k.PKey, k.DestQPN, k.MigReq = wire.DefaultPKey, p.QPN, true
	k.Pad = wire.PadLen(len(k.Payload))
	p.World.Inject(p.Node, p.To, k, nil)
}

// opcode is the opcode of a packet of RC; it exists.
func opcode(o wire.Operation, first, last bool, x wire.Suffix) wire.Opcode {
	position := wire.Middle
	switch {
	case first && last:
		position = wire.Only
	case first:
		position = wire.First
	case last:
		position = wire.Last
	}
	if !last {
		x = wire.Plain
	}
	op, ok := wire.FindOpcode(wire.ServiceRC, o, position, x)
	if !ok {
		panic(fmt.Sprintf("no opcode %v %v %v", o, position, x))
	}
	return op
}
