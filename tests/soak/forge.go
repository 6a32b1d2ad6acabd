package soak

import (
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// forged marks packets that were made up.
var forged = new(int)

// forge sends, now and then, a packet in an end's name that its peer must not
// take seriously, although ICRC, address and queue pair are right: p, a packet
// that the end just sent, with something wrong.
func (r *run) forge(e *end, p *wire.Packet) {
	if r.plan.forge == 0 || e.peer.gone || !r.rand.Hit(r.plan.forge) {
		return
	}
	q := *p
	q.Payload = append([]byte(nil), p.Payload...)
	if p.Opcode.IsRequest() {
		e.forgeRequest(&q)
	} else {
		e.forgeResponse(&q)
	}
	r.tally[forgedPackets]++
	q.Pad = wire.PadLen(len(q.Payload))
	r.world.Inject(e.node, e.peer.node, &q, forged)
}

// forgeRequest: a foreign partition, another transport service, or a duplicate
// of what was acknowledged, with other contents (IBA 9.6.1, 9.7.5.1.3).
func (e *end) forgeRequest(q *wire.Packet) {
	r := e.run
	done := e.flow.una - e.mon.first // so many packets were carried out
	pick := r.rand.Intn(4)
	if pick >= 2 && done == 0 {
		pick = 0
	}
	switch pick {
	case 0:
		q.PKey = 0x8123
	case 1:
		q.Opcode = wire.UCSendOnly
	case 2: // another WRITE where there was something else
		q.PSN = wire.PSN((e.flow.una - 1 - r.rand.Uint64()%done) & uint64(wire.MaxPSN))
		q.Opcode = wire.RCWriteOnly
		q.RETH.RKey, q.RETH.VA, q.RETH.DMALen = e.out.mainKey, e.out.mainAddr, 16
		q.Payload = make([]byte, 16)
	case 3: // an atomic that was never asked for
		q.PSN = wire.PSN((e.flow.una - 1 - r.rand.Uint64()%done) & uint64(wire.MaxPSN))
		q.Opcode = wire.RCFetchAdd
		q.AtomicETH = wire.AtomicETH{VA: e.out.mainAddr, RKey: e.out.mainKey, SwapAdd: 1}
		q.Payload = nil
	}
}

// Acknowledgements of what was never sent lie so far ahead.
const (
	forgedAhead  = 1 << 20
	forgedSpread = 1 << 12
)

// forgeResponse acknowledges a packet that was never sent, or uses a reserved
// syndrome (IBA 9.7.5.2).
func (e *end) forgeResponse(q *wire.Packet) {
	r := e.run
	q.Opcode, q.Payload = wire.RCAck, nil
	q.AETH.Syndrome = wire.SyndromeACK(wire.NoCredits)
	switch r.rand.Intn(3) {
	case 0:
		q.PSN = q.PSN.Add(forgedAhead + r.rand.Intn(forgedSpread))
	case 1:
		q.AETH.Syndrome = wire.Syndrome(0x40 + r.rand.Intn(32))
	case 2:
		q.AETH.Syndrome = wire.Syndrome(0x65 + r.rand.Intn(27))
	}
}
