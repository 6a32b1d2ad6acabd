package engine

import (
	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/mem"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// refusal is why a request is not carried out: the syndrome for the requester,
// and the status of the receive that the request holds, if it holds one. The
// zero value refuses nothing.
type refusal struct {
	syndrome wire.Syndrome
	status   abi.WCStatus
}

func (e refusal) refuses() bool { return e.status != abi.WCSuccess }

var (
	invalidRequest = refusal{wire.SyndromeNAK(wire.NAKInvalidRequest), abi.WCRemInvReqErr}
	tooLong        = refusal{wire.SyndromeNAK(wire.NAKInvalidRequest), abi.WCLocLenErr}
	accessError    = refusal{wire.SyndromeNAK(wire.NAKRemoteAccess), abi.WCWRFlushErr}
	badReceive     = refusal{wire.SyndromeNAK(wire.NAKRemoteOperational), abi.WCLocQPOpErr}
	localProtError = refusal{wire.SyndromeNAK(wire.NAKRemoteOperational), abi.WCLocProtErr}
	remoteOpError  = refusal{wire.SyndromeNAK(wire.NAKRemoteOperational), abi.WCWRFlushErr}
)

// requestChecks are the checks of a request with the expected PSN, in the order
// of IBA 9.7.4.1.
var requestChecks = [...]func(*QP, *wire.Packet) refusal{
	(*QP).checkSequence,
	(*QP).checkOperation,
	(*QP).checkResources,
	(*QP).checkLength,
	(*QP).checkRKey,
}

// checkRequest returns why a request is refused, if it is.
func (q *QP) checkRequest(p *wire.Packet) refusal {
	for _, check := range requestChecks {
		if e := check(q, p); e.refuses() {
			return e
		}
	}
	return refusal{}
}

// checkPSN reports whether the packet is the expected one. One from the half of
// the sequence space before it is a duplicate; one beyond it shows a gap, which
// is answered once (IBA 9.7.4.1.1).
func (q *QP) checkPSN(p *wire.Packet) bool {
	s := q.rsp.next.near(p.PSN)
	switch {
	case s == q.rsp.next:
		return true
	case s < q.rsp.next:
		q.counters.DuplicateRequest++
		q.duplicate(s, p)
		return false
	}
	q.counters.OutOfSeqRequest++
	if !q.rsp.refused {
		q.refuseGap()
	}
	return false
}

// refuseGap tells the requester that the request at next is missing.
func (q *QP) refuseGap() {
	q.rsp.refused = true
	q.rsp.nak = nak{pending: true, at: q.rsp.next, syndrome: wire.SyndromeNAK(wire.NAKPSNSequence)}
	q.counters.NAKSeqSent++
}

// checkSequence: within a message come Middle and Last of the same operation,
// between messages First and Only (IBA 9.7.4.1.2).
func (q *QP) checkSequence(p *wire.Packet) refusal {
	inside := q.rsp.during != wire.OpNone
	if inside == p.Opcode.StartsMessage() || inside && p.Opcode.Operation() != q.rsp.during {
		return invalidRequest
	}
	return refusal{}
}

// checkOperation: the operation is supported, and the queue pair's access flags
// permit it (IBA 9.7.4.1.3).
func (q *QP) checkOperation(p *wire.Packet) refusal {
	var need abi.AccessFlags
	switch p.Opcode.Operation() {
	case wire.OpSend:
	case wire.OpWrite:
		need = abi.AccessRemoteWrite
	case wire.OpRead:
		need = abi.AccessRemoteRead
	case wire.OpFetchAdd, wire.OpCompareSwap:
		need = abi.AccessRemoteAtomic
	default: // FLUSH, ATOMIC WRITE
		return invalidRequest
	}
	if q.attr.Access&need != need {
		return invalidRequest
	}
	return refusal{}
}

// checkResources: a receive for the first packet of a SEND and the last of a
// WRITE with immediate, else RNR; a place to remember a READ or atomic
// (IBA 9.7.4.1.4).
func (q *QP) checkResources(p *wire.Packet) refusal {
	op := p.Opcode
	switch {
	case op.IsSend() && op.StartsMessage(), op.IsWrite() && op.HasImm():
		return q.takeReceive()
	case op.IsReadRequest(), op.IsAtomic():
		if !q.rsp.replay.hasRoom() {
			return invalidRequest // more than max_dest_rd_atomic
		}
	}
	return refusal{}
}

// checkLength: all packets but the last carry exactly the path MTU (or the
// message's private one, which this side must have offered), the last at least
// a byte, an Only anything; a WRITE carries what its RETH
// announced; a SEND fits the receive (IBA 9.7.4.1.6).
func (q *QP) checkLength(p *wire.Packet) refusal {
	n := len(p.Payload)
	if m := p.PrivateMTU; m != 0 && (q.extension == nil || m > q.extension.own) {
		return invalidRequest
	}
	switch p.Opcode.Operation() {
	case wire.OpRead:
		if n != 0 || p.Pad != 0 || p.RETH.DMALen > MaxMessage {
			return invalidRequest
		}
		return refusal{}
	case wire.OpFetchAdd, wire.OpCompareSwap:
		if n != 0 || p.Pad != 0 || p.AtomicETH.VA%8 != 0 {
			return invalidRequest
		}
		return refusal{}
	}
	mtu := q.mtuOf(p)
	if !p.Opcode.StartsMessage() && p.PrivateMTU != q.rsp.private {
		return invalidRequest
	}
	q.rsp.private = p.PrivateMTU
	if n > mtu || !p.Opcode.EndsMessage() && n != mtu || p.Opcode.Position() == wire.Last && n == 0 {
		return invalidRequest
	}
	if p.Opcode.IsWrite() {
		return q.checkWriteLength(p)
	}
	if p.Opcode.StartsMessage() {
		q.rsp.done = 0
	}
	if q.rsp.done+uint64(n) > q.rsp.recvLen {
		return tooLong
	}
	return refusal{}
}

func (q *QP) checkWriteLength(p *wire.Packet) refusal {
	if p.Opcode.StartsMessage() {
		q.rsp.remote, q.rsp.done = p.RETH, 0
	}
	total, got := uint64(q.rsp.remote.DMALen), q.rsp.done+uint64(len(p.Payload))
	if total > MaxMessage || p.Opcode.EndsMessage() && got != total || !p.Opcode.EndsMessage() && got >= total {
		return invalidRequest
	}
	return refusal{}
}

// checkRKey: the whole range that a request names lies in a region that permits
// it (IBA 9.7.4.1.5). No bytes need no key. Later packets of a WRITE are
// checked as they are written.
func (q *QP) checkRKey(p *wire.Packet) refusal {
	var err error
	check := func(pd mem.PD, key uint32, addr, n uint64, need abi.AccessFlags) error {
		if !q.cfg.Regions.Permits(uint32(q.cfg.QPN), key) {
			return mem.ErrPD
		}
		return q.cfg.Regions.Check(pd, key, addr, n, need)
	}
	switch op := p.Opcode; {
	case op.IsWrite() && op.StartsMessage():
		err = check(q.cfg.PD, p.RETH.RKey, p.RETH.VA, uint64(p.RETH.DMALen), abi.AccessRemoteWrite)
	case op.IsReadRequest():
		err = check(q.cfg.PD, p.RETH.RKey, p.RETH.VA, uint64(p.RETH.DMALen), abi.AccessRemoteRead)
	case op.IsAtomic():
		err = check(q.cfg.PD, p.AtomicETH.RKey, p.AtomicETH.VA, 8, abi.AccessRemoteAtomic)
	}
	if err != nil {
		return accessError
	}
	return refusal{}
}

// mtuOf is the MTU of a request's message, in bytes.
func (q *QP) mtuOf(p *wire.Packet) int {
	if p.PrivateMTU != 0 {
		return p.PrivateMTU.Bytes()
	}
	return q.mtu
}

// takeReceive takes the oldest receive, unless one was left by a message that
// was dropped, or whose payload was taken back. Without one the answer is RNR;
// a malformed one ends the queue pair.
func (q *QP) takeReceive() refusal {
	r := &q.rsp
	if r.holds {
		return refusal{}
	}
	if !q.nextReceive() {
		return refusal{wire.SyndromeRNR(q.attr.MinRNRTimer), abi.WCWRFlushErr}
	}
	r.holds = true
	r.recvLen = mem.ListLength(r.recv.SGE)
	if r.recv.Err != nil {
		return badReceive
	}
	return refusal{}
}

// nextReceive fills recv with the oldest receive; false if there is none.
func (q *QP) nextReceive() bool {
	r := &q.rsp.recv
	r.ID, r.SGE, r.Err = 0, r.SGE[:0], nil
	return q.cfg.Receives != nil && q.cfg.Receives.NextReceive(r)
}
