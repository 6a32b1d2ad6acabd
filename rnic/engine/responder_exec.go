package engine

import (
	"encoding/binary"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/mem"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// execute carries out a request that passed all checks.
func (q *QP) execute(p *wire.Packet) {
	switch p.Opcode.Operation() {
	case wire.OpSend:
		q.executeSend(p)
	case wire.OpWrite:
		q.executeWrite(p)
	case wire.OpRead:
		q.executeRead(p)
	default:
		q.executeAtomic(p)
	}
}

// store stores the payload of a packet of a SEND or WRITE.
func (q *QP) store(p *wire.Packet, last bool) error {
	r := &q.rsp
	if p.Opcode.IsSend() {
		return q.cfg.Regions.Scatter(q.cfg.PD, r.recv.SGE, r.done, p.Payload, last)
	}
	return q.cfg.Regions.Write(q.cfg.PD, r.remote.RKey, r.remote.VA+r.done, p.Payload, last)
}

// executeSend stores one packet of a SEND in the receive.
func (q *QP) executeSend(p *wire.Packet) {
	r := &q.rsp
	last := p.Opcode.EndsMessage()
	err := q.store(p, last)
	if !p.Settle() {
		return
	}
	if err != nil {
		q.refuse(localProtError)
		return
	}
	r.done += uint64(len(p.Payload))
	r.during = wire.OpSend
	if !last {
		q.executed(p, 1)
		return
	}
	if p.Opcode.HasInvalidate() && q.cfg.Regions.Invalidate(q.cfg.PD, uint32(q.cfg.QPN), p.IETH.RKey) != nil {
		q.failInvalidate(p)
		return
	}
	q.completeMessage(p, abi.WCRecv)
}

// failInvalidate ends the queue pair after a SEND whose key cannot be revoked.
// The requester is not at fault as far as the wire knows: it gets its ACK, with
// the MSN where it was (rxe_resp.c, recorded from Linux 6.1).
func (q *QP) failInvalidate(p *wire.Packet) {
	q.executed(p, 1)
	q.completeReceive(abi.WCRemInvReqErr)
	q.rsp.during = wire.OpNone
	q.enterError()
}

// executeWrite stores one packet of a WRITE; an immediate completes a receive.
func (q *QP) executeWrite(p *wire.Packet) {
	r := &q.rsp
	last := p.Opcode.EndsMessage()
	err := q.store(p, last)
	if !p.Settle() {
		return
	}
	switch err {
	case nil:
	case mem.ErrFault: // the key is right, the memory is gone (IBA 9.7.5.2.6)
		q.refuse(remoteOpError)
		return
	default:
		q.refuse(accessError)
		return
	}
	r.done += uint64(len(p.Payload))
	r.during = wire.OpWrite
	if last {
		q.completeMessage(p, abi.WCRecvRDMAWithImm)
		return
	}
	q.executed(p, 1)
}

// executed notes that n packets of a SEND or WRITE, all as p, were carried out.
// One ACK stands for all that is carried out until it leaves (IBA 9.7.5.1.2).
func (q *QP) executed(p *wire.Packet, n int) {
	r := &q.rsp
	q.expect(seq(n))
	r.unacked += n * (len(p.Payload) + packetCost)
	if r.ack = r.ack || p.AckReq; r.ack {
		r.ackTo = r.next - 1
	}
}

// expect moves on by n PSNs: the request at next was carried out.
func (q *QP) expect(n seq) {
	q.rsp.next += n
	q.rsp.refused = false
	q.rsp.nak.pending = false // one for an earlier gap came too late
}

// completeMessage ends a SEND or WRITE.
func (q *QP) completeMessage(p *wire.Packet, op abi.WCOpcode) {
	r := &q.rsp
	r.during = wire.OpNone
	r.msn = r.msn.Next()
	if r.holds {
		q.pushReceive(p, op)
	}
	q.executed(p, 1)
}

// executeRead remembers a READ request; Transmit answers it.
func (q *QP) executeRead(p *wire.Packet) {
	r := &q.rsp
	mtu := q.mtuOf(p)
	n := packets(p.RETH.DMALen, mtu)
	r.msn = r.msn.Next()
	r.replay.add(replay{
		operation: wire.OpRead, first: r.next, end: r.next + n,
		va: p.RETH.VA, rkey: p.RETH.RKey, length: p.RETH.DMALen, mtu: mtu,
		cur: r.next, stop: r.next + n, stopLen: p.RETH.DMALen,
	})
	q.ackSent() // by the response, which acknowledges all before it
	q.expect(n)
}

// executeAtomic does an atomic once and remembers its result.
func (q *QP) executeAtomic(p *wire.Packet) {
	r := &q.rsp
	e := &p.AtomicETH
	var orig uint64
	var err error
	if p.Opcode.Operation() == wire.OpFetchAdd {
		orig, err = q.cfg.Regions.FetchAdd(q.cfg.PD, e.RKey, e.VA, e.SwapAdd)
	} else {
		orig, err = q.cfg.Regions.CompareSwap(q.cfg.PD, e.RKey, e.VA, e.Compare, e.SwapAdd)
	}
	if err != nil {
		q.refuse(remoteOpError)
		return
	}
	r.msn = r.msn.Next()
	r.replay.add(replay{
		operation: p.Opcode.Operation(), first: r.next, end: r.next + 1,
		va: e.VA, rkey: e.RKey, orig: orig,
		cur: r.next, stop: r.next + 1,
	})
	q.ackSent()
	q.expect(1)
}

// pushReceive completes the receive that a message consumed.
func (q *QP) pushReceive(p *wire.Packet, op abi.WCOpcode) {
	r := &q.rsp
	c := Completion{
		ID: r.recv.ID, Opcode: op, ByteLen: uint32(r.done), Recv: true, Solicited: p.Solicited,
	}
	if p.Opcode.HasImm() {
		c.Flags |= abi.WCWithImm
		binary.BigEndian.PutUint32(c.Imm[:], p.ImmDt.Data)
	}
	if p.Opcode.Carries(wire.HasDETH) {
		c.Flags |= abi.WCGRH
		c.SrcQPN = p.DETH.SrcQPN
	}
	if p.Opcode.HasInvalidate() {
		c.Flags |= abi.WCWithInvalidate
		c.Invalidate = p.IETH.RKey
	}
	r.holds = false
	q.counters.Recvs++
	q.complete(c)
}

// completeReceive completes the receive that is held with an error.
func (q *QP) completeReceive(status abi.WCStatus) {
	q.rsp.holds = false
	if status == abi.WCWRFlushErr {
		q.counters.Flushed++
	}
	q.complete(Completion{ID: q.rsp.recv.ID, Status: status, Opcode: abi.WCRecv, Recv: true, Solicited: true})
}

// pressure is the number of bytes that a responder carries out, packetCost for
// each packet included, before it acknowledges without delay. A requester whose
// window has opened asks for an ACK as often.
const pressure = 256 << 10

// overdue is an earlier time than any.
const overdue Time = -1

// scheduleAck decides how long the ACK may wait that p may have called for. It
// may wait to be piggybacked on a packet, or for the application to be woken,
// unless the requester cannot go on without it: it asks in the middle of a
// message, or repeats a request, or has sent a lot.
func (q *QP) scheduleAck(now Time, p *wire.Packet, duplicate bool) {
	r := &q.rsp
	if !r.ack {
		return
	}
	if r.ackBy == 0 {
		r.ackBy = now + Time(q.cfg.Tuning.AckDelay)
	}
	if duplicate || r.unacked >= pressure || p.AckReq && !p.Opcode.EndsMessage() {
		r.ackBy = overdue
	}
}

// ackSent follows every packet that acknowledges all that was carried out.
func (q *QP) ackSent() {
	r := &q.rsp
	r.ack, r.ackBy, r.unacked = false, 0, 0
}

// HoldsAck reports whether an ACK waits for a packet that piggybacks it, for
// its time (NextTimeout), or for ReleaseAck.
func (q *QP) HoldsAck() bool { return q.rsp.ack }

// ReleaseAck ends the delay of an ACK that waits. Next: Transmit.
func (q *QP) ReleaseAck() {
	if q.rsp.ack {
		q.rsp.ackBy = overdue
	}
}
