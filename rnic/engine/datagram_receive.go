package engine

import (
	"encoding/binary"
	"net/netip"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// Receive takes a packet whose BTH names this queue pair, from the address
// from. The packet is not kept. Next: Completions.
func (q *Datagrams) Receive(_ Time, from netip.Addr, p *wire.Packet) {
	q.ReceiveAt(q.cfg.Local, from, p)
}

// ReceiveAt is Receive of a packet that was sent to the address at, that of a
// multicast group in which the queue pair is.
func (q *Datagrams) ReceiveAt(at, from netip.Addr, p *wire.Packet) {
	if !q.accept(p) {
		return
	}
	q.counters.RcvdPkts++
	q.counters.RcvdBytes += uint64(len(p.Payload))
	q.heard = p.PSN.Next()
	r := &q.recv
	r.ID, r.SGE, r.Err = 0, r.SGE[:0], nil
	if q.cfg.Receives == nil || !q.cfg.Receives.NextReceive(r) {
		q.counters.DropNoReceive++ // IBA 9.8.3: without a word
		return
	}
	if status := q.store(at, from, p); status != abi.WCSuccess {
		q.comps.push(Completion{ID: r.ID, Status: status, Opcode: abi.WCRecv, Recv: true, Solicited: true})
		q.state = abi.QPSErr
		return
	}
	c := Completion{
		ID: r.ID, Opcode: abi.WCRecv, ByteLen: uint32(wire.GRHLen + len(p.Payload)), Flags: abi.WCGRH,
		SrcQPN: p.DETH.SrcQPN, Recv: true, Solicited: p.Solicited,
	}
	if p.Opcode.HasImm() {
		c.Flags |= abi.WCWithImm
		binary.BigEndian.PutUint32(c.Imm[:], p.ImmDt.Data)
	}
	q.counters.Recvs++
	q.comps.push(c)
}

// Genuine is false: any host may send datagrams.
func (q *Datagrams) Genuine() bool { return false }

// accept is the validation before anything is done: state, transport service,
// P_Key, Q_Key (IBA 9.6.1, 9.8.3). A packet that fails is dropped silently.
func (q *Datagrams) accept(p *wire.Packet) bool {
	switch q.state {
	case abi.QPSRTR, abi.QPSRTS, abi.QPSSQD:
	default:
		q.counters.DropState++
		return false
	}
	switch CheckDatagram(p, q.qkey) {
	case WrongService:
		q.counters.DropService++
	case WrongPKey:
		q.counters.DropPKey++
	case WrongQKey:
		q.counters.DropQKey++
	default:
		return true
	}
	return false
}

// store places the route header and the payload in the receive.
func (q *Datagrams) store(at, from netip.Addr, p *wire.Packet) abi.WCStatus {
	r := &q.recv
	switch {
	case r.Err != nil:
		return abi.WCLocQPOpErr
	case listLength(r.SGE) < uint64(wire.GRHLen+len(p.Payload)):
		return abi.WCLocLenErr // IBA 11.6.2
	}
	grh := routeHeader(q.grh[:0], from, at, p)
	empty := len(p.Payload) == 0
	err := q.cfg.Regions.Scatter(q.cfg.PD, r.SGE, 0, grh, empty)
	if err == nil && !empty {
		err = q.cfg.Regions.Scatter(q.cfg.PD, r.SGE, wire.GRHLen, p.Payload, true)
	}
	if err != nil {
		return abi.WCLocProtErr
	}
	return abi.WCSuccess
}
