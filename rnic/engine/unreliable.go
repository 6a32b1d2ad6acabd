package engine

import (
	"net/netip"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// Unreliable is a queue pair of the service unreliable connection (IBA 9.8.2):
// SEND and WRITE, of any length, without acknowledgements. A request has
// completed when its last packet is in a batch. A message of which a packet is
// missing is dropped whole, and its receive is kept for the next one. It is
// driven as QP is, whose send queue, checks and completions it uses; there are
// no timeouts.
//
// A packet whose PSN lies before the expected one was doubled or overtaken on
// its way, which InfiniBand's fabrics do not do and IP networks do. It is
// dropped, so that the messages received are a subsequence of those sent, in
// order.
type Unreliable struct{ QP }

// NewUnreliable makes a queue pair in RESET. Of cfg neither Tuning, Paths nor
// Stash have a meaning.
func NewUnreliable(cfg Config) *Unreliable {
	cfg.Paths, cfg.Stash = nil, nil
	q := &Unreliable{QP: *New(cfg)}
	q.service = wire.ServiceUC
	return q
}

// Transmit is QP.Transmit. Next: Completions.
func (q *Unreliable) Transmit(_ Time, b *Batch) (more bool) {
	for !b.Full() && q.mayRequest() {
		w := q.sq.at(q.sq.head)
		if w.kind.local() {
			if !q.executeLocal(w) {
				return false
			}
			continue
		}
		if _, ok := wire.FindOpcode(wire.ServiceUC, w.kind.operation, wire.Only, w.kind.suffix); !ok {
			w.status = abi.WCLocQPOpErr // rxe_req.c:next_opcode_uc
		}
		if w.status != abi.WCSuccess || !q.transmitPacket(b, w) {
			q.failLocal()
			return false
		}
	}
	return b.Full()
}

// transmitPacket writes the next packet of the oldest request, which completes
// with its last one. False is a local error.
func (q *Unreliable) transmitPacket(b *Batch, w *sendWR) bool {
	r := &q.req
	off := uint64(r.nxt-w.first) * uint64(q.mtu)
	last := q.startData(w)
	payload, sum, err := q.fetch(b, q.out.Opcode, w, off, int(min(uint64(w.length)-off, uint64(q.mtu))))
	if err != nil {
		w.status = abi.WCLocProtErr
		return false
	}
	b.add(q.attr.Peer, &q.out, payload)
	q.finish(b, sum)
	q.counters.SentPkts++
	q.counters.SentBytes += uint64(len(payload))
	r.nxt++
	r.una, r.sent = r.nxt, r.nxt
	if last {
		r.cur++
		q.sq.head++
		q.completeSend(w)
	}
	return true
}

// Receive takes a packet whose BTH names this queue pair, from the address
// from. The packet is not kept. Next: Completions.
func (q *Unreliable) Receive(_ Time, from netip.Addr, p *wire.Packet) {
	q.genuine = false
	if !q.acceptHeader(from, p) {
		return
	}
	if q.state == abi.QPSErr {
		q.counters.DropState++
		return
	}
	q.counters.RcvdPkts++
	q.counters.RcvdBytes += uint64(len(p.Payload))
	if !q.inOrder(p) {
		return
	}
	if e := q.checkRequest(p); e.refuses() {
		q.drop(e)
		return
	}
	q.store(p)
}

// inOrder moves on to the packet's PSN and reports whether the packet belongs
// to a message of which no packet is missing. A first packet does; it ends a
// message that has no last one (IBA 9.8.2.2).
func (q *Unreliable) inOrder(p *wire.Packet) bool {
	r := &q.rsp
	s := r.next.near(p.PSN)
	if s < r.next {
		q.counters.DuplicateRequest++
		return false
	}
	gap := s > r.next
	if gap {
		q.counters.OutOfSeqRequest++
	}
	q.genuine = !gap
	if q.genuine {
		q.communicates()
	}
	r.next = s + 1
	starts := p.Opcode.StartsMessage()
	if starts || gap || r.during != p.Opcode.Operation() {
		r.during = wire.OpNone
		return starts
	}
	return true
}

// drop ends the present message without a word. Only faults of the receive
// itself end the queue pair (IBA 9.9.3).
func (q *Unreliable) drop(e refusal) {
	r := &q.rsp
	r.during = wire.OpNone
	switch {
	case !r.holds && e.syndrome.IsRNR():
		q.counters.DropNoReceive++
	case e == tooLong, e == badReceive, e == localProtError:
		q.completeReceive(e.status)
		q.enterError()
	default:
		q.counters.DropRequest++
	}
}

// store places a packet's payload; the last one completes the message.
func (q *Unreliable) store(p *wire.Packet) {
	r, op, last := &q.rsp, p.Opcode, p.Opcode.EndsMessage()
	if op.IsSend() {
		if q.cfg.Regions.Scatter(q.cfg.PD, r.recv.SGE, r.done, p.Payload, last) != nil {
			q.drop(localProtError)
			return
		}
	} else if q.cfg.Regions.Write(q.cfg.PD, r.remote.RKey, r.remote.VA+r.done, p.Payload, last) != nil {
		q.drop(accessError)
		return
	}
	r.done += uint64(len(p.Payload))
	r.during = op.Operation()
	if !last {
		return
	}
	r.during = wire.OpNone
	r.msn = r.msn.Next()
	switch {
	case op.IsSend():
		q.pushReceive(p, abi.WCRecv)
	case op.HasImm():
		q.pushReceive(p, abi.WCRecvRDMAWithImm)
	}
}
