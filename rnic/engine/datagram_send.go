package engine

import (
	"fmt"
	"net/netip"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/crc"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// Destination is where a datagram goes.
type Destination struct {
	Peer netip.AddrPort // of the address handle; invalid: there is no such handle
	QPN  wire.QPN
	QKey uint32
}

// Post takes over a work request, of which it copies the destination, too. The
// errors are those of QP.Post. What is wrong with the request shows in its
// completion. Next: Transmit, or Completions in ERR.
func (q *Datagrams) Post(_ Time, wr *SendWR) error {
	switch {
	case q.state != abi.QPSRTS && q.state != abi.QPSSQD && q.state != abi.QPSErr:
		return fmt.Errorf("queue pair %v: post in %v, needs RTS: %w", q.cfg.QPN, q.state, syscall.EINVAL)
	case q.sq.len() >= len(q.sq.ring):
		return fmt.Errorf("queue pair %v: send queue of %d is full: %w", q.cfg.QPN, len(q.sq.ring), syscall.ENOMEM)
	}
	w := q.sq.at(q.sq.tail)
	w.id, w.flags, w.imm = wr.ID, wr.Flags, wr.Imm
	w.sge, w.inline, w.length = w.sge[:0], w.inline[:0], 0
	w.kind = kindOf(wr.Opcode)
	w.status = w.take(wr)
	isDatagram := wr.Opcode == abi.WRSend || wr.Opcode == abi.WRSendWithImm
	if !isDatagram || !wr.To.Peer.IsValid() {
		w.status = abi.WCLocQPOpErr // rxe_req.c: next_opcode, rxe_get_av
	}
	q.to[q.sq.tail%uint64(len(q.to))] = wr.To
	q.sq.tail++
	return nil
}

// Transmit writes packets that may leave now into b, behind what is there, and
// completes their requests. More reports that b was filled, so there may be
// more. Next: Completions.
func (q *Datagrams) Transmit(_ Time, b *Batch) (more bool) {
	for q.state == abi.QPSRTS && q.sq.len() > 0 {
		if b.Full() {
			return true
		}
		w := q.sq.at(q.sq.head)
		if w.status == abi.WCSuccess {
			w.status = q.send(b, w)
		}
		if w.status != abi.WCSuccess {
			q.counters.LocalErrors++
			q.fail = failure{q.sq.head, w.status}
			q.state = abi.QPSErr
			return false
		}
		q.completeSend(w)
	}
	return b.Full()
}

// send puts the packet of a request into the batch, where it has room.
func (q *Datagrams) send(b *Batch, w *sendWR) abi.WCStatus {
	n := int(w.length)
	if n > q.cfg.MTU {
		// C10-93.1.1: no packet, and no error either (rxe_req.c:rxe_requester).
		q.counters.DropTooLong++
		return abi.WCSuccess
	}
	payload := b.payload(n)
	var sum crc.Sum
	var err error
	if w.flags&abi.SendInline != 0 {
		copy(payload, w.inline)
	} else if sum, err = q.cfg.Regions.Gather(q.cfg.PD, w.sge, 0, payload); err != nil {
		return abi.WCLocProtErr
	}
	to := &q.to[q.sq.head%uint64(len(q.to))]
	b.addDatagram(&Datagram{
		Peer: to.Peer, DestQPN: to.QPN, SrcQPN: q.cfg.QPN, QKey: qkeyToSend(to.QKey, q.qkey), PSN: q.psn,
		Solicited: w.flags&abi.SendSolicited != 0, HasImm: w.kind.suffix == wire.Immediate, Imm: w.imm,
	}, payload)
	b.last().Sum = sum
	q.counters.SentPkts++
	q.counters.SentBytes += uint64(n)
	return abi.WCSuccess
}

// completeSend completes the oldest request, whose packet is in a batch.
func (q *Datagrams) completeSend(w *sendWR) {
	q.psn = q.psn.Next()
	q.sq.head++
	q.counters.Sends++
	q.comps.push(Completion{ID: w.id, Opcode: w.kind.wc, Silent: !q.cfg.SigAll && w.flags&abi.SendSignaled == 0})
}

// Awaits is false: no datagram is acknowledged.
func (q *Datagrams) Awaits() bool { return false }
