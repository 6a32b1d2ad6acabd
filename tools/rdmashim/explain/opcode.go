package explain

import (
	"fmt"
	"strings"

	"github.com/rdmashim/rdmashim/rnic/wire"
)

// operations says what packets of an operation do.
var operations = map[wire.Operation]struct {
	means string
	look  []string
}{
	wire.OpSend:         {"carries a SEND, which goes into the receive that the peer posted first", []string{"an answer of RNR NAK means that no receive was posted"}},
	wire.OpWrite:        {"carries an RDMA WRITE into the peer's memory; the RETH of its first packet says where", []string{"va and rkey in the RETH against what the peer registered", "only with an immediate does it use up a receive of the peer"}},
	wire.OpRead:         {"asks for an RDMA READ of the peer's memory; the RETH says of what and how much", []string{"its answers have the numbers from its PSN on, one for each path MTU of data"}},
	wire.OpReadResponse: {"brings data of an RDMA READ back, and acknowledges all before it", []string{"its PSN counts on from that of the READ request, in the requester's numbers"}},
	wire.OpAck:          {"acknowledges every request up to its PSN, or refuses the one with its PSN; the syndrome says which", []string{"rdmashim explain syndrome, for what follows 'aeth'"}},
	wire.OpAtomicAck:    {"answers an atomic with what the memory held before", []string{"of a repeated atomic the first answer is repeated: it is not carried out twice"}},
	wire.OpCompareSwap:  {"swaps 8 bytes of the peer's memory if they equal the ones given", []string{"the address is a multiple of 8"}},
	wire.OpFetchAdd:     {"adds to 8 bytes of the peer's memory", []string{"the address is a multiple of 8"}},
	wire.OpFlush:        {"asks that what was written before be visible, or persistent, before the answer", []string{"of annex A19: few devices have it"}},
	wire.OpAtomicWrite:  {"writes 8 aligned bytes of the peer's memory in one piece, in order with READs and atomics", []string{"of annex A19: Linux rxe has it from 6.2 on"}},
	wire.OpCongestion:   {"notifies a sender that its packets were marked on the way (ECN), so that it slows down", []string{"counters of marked packets in the switches", "soft devices and rdma_rxe send none and heed none"}},
}

var positions = map[wire.Position]string{
	wire.First:  "the first of several packets of its message",
	wire.Middle: "neither the first nor the last of its message, always a full path MTU long",
	wire.Last:   "the last of several packets of its message",
	wire.Only:   "all of its message",
}

func opcodeList() (list []Entry) {
	for n := range 256 {
		op := wire.Opcode(n)
		if !op.Known() {
			continue
		}
		o := operations[op.Operation()]
		e := Entry{Kind: Opcode, Name: op.String(), Number: n, Also: []string{fmt.Sprintf("0x%02x", n)}, Causes: []string{}, Look: o.look}
		e.Means = fmt.Sprintf("a packet that %s; %s", o.means, positions[op.Position()])
		if s := op.Suffix(); s != wire.Plain {
			e.Means += ", " + s.String()
		}
		if bare, ok := strings.CutPrefix(e.Name, "RC "); ok {
			e.Also = append(e.Also, bare, "RC "+strings.TrimPrefix(bare, "RDMA_"))
		}
		e.Packet = packetOf(op)
		list = append(list, e)
	}
	return list
}

func packetOf(op wire.Opcode) *Packet {
	p := &Packet{
		Service: op.Service().String(), Operation: op.Operation().String(), Position: op.Position().String(),
		Direction: "notification", Headers: []string{}, HeaderBytes: op.HeaderLen(), Payload: op.HasPayload(),
	}
	switch {
	case op.IsRequest():
		p.Direction = "request"
	case op.IsResponse():
		p.Direction = "response"
	}
	if h := op.Headers(); h != 0 {
		p.Headers = strings.Split(h.String(), "+")
	}
	return p
}
