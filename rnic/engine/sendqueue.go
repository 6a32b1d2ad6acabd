package engine

import (
	"fmt"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/mem"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// packetCost is added to a packet's payload when bytes in flight are counted:
// roughly what a kernel charges a socket buffer beyond the payload.
const packetCost = 256

// sendWR is a work request in the send queue.
type sendWR struct {
	id         uint64
	kind       *kind
	flags      abi.SendFlags
	imm        [4]byte
	invalidate uint32
	bind       mem.Bind
	done       bool // a local operation was carried out
	remote     uint64
	rkey       uint32
	compareAdd uint64
	swap       uint64
	length     uint32
	sge        []mem.SGE
	inline     []byte

	// status, when not WCSuccess, is a local error: no (further) packet of the
	// request is sent, and it completes so when all before it have completed.
	status abi.WCStatus

	first, end seq // PSNs: [first, end)
	mtu        int // bytes of its packets, all but the last
	private    wire.PrivateMTU
	cost       uint64 // of everything posted before it
}

// kind is the meaning of a work request's opcode.
type kind struct {
	operation wire.Operation
	suffix    wire.Suffix
	wc        abi.WCOpcode
}

// returnsData reports whether the answer is more than an ACK: the request
// counts against max_rd_atomic.
func (k *kind) returnsData() bool {
	return k.operation == wire.OpRead || k.isAtomic()
}

func (k *kind) isAtomic() bool {
	return k.operation == wire.OpFetchAdd || k.operation == wire.OpCompareSwap
}

// local reports whether the request sends nothing.
func (k *kind) local() bool { return k.wc == abi.WCBindMW || k.wc == abi.WCLocalInv }

// takesReceive reports whether the request consumes a receive: only its last
// packet may carry the solicited event bit (IBA 9.2.3).
func (k *kind) takesReceive() bool {
	return k.operation == wire.OpSend || k.suffix == wire.Immediate
}

// unknownKind stands for opcodes that are not supported.
var unknownKind = kind{operation: wire.OpNone}

var kinds = [...]*kind{
	abi.WRSend:              {wire.OpSend, wire.Plain, abi.WCSend},
	abi.WRSendWithImm:       {wire.OpSend, wire.Immediate, abi.WCSend},
	abi.WRSendWithInv:       {wire.OpSend, wire.Invalidate, abi.WCSend},
	abi.WRRDMAWrite:         {wire.OpWrite, wire.Plain, abi.WCRDMAWrite},
	abi.WRRDMAWriteWithImm:  {wire.OpWrite, wire.Immediate, abi.WCRDMAWrite},
	abi.WRRDMARead:          {wire.OpRead, wire.Plain, abi.WCRDMARead},
	abi.WRBindMW:            {wire.OpNone, wire.Plain, abi.WCBindMW},
	abi.WRLocalInv:          {wire.OpNone, wire.Plain, abi.WCLocalInv},
	abi.WRAtomicFetchAndAdd: {wire.OpFetchAdd, wire.Plain, abi.WCFetchAdd},
	abi.WRAtomicCmpAndSwp:   {wire.OpCompareSwap, wire.Plain, abi.WCCompSwap},
}

func kindOf(op abi.WROpcode) *kind {
	if uint64(op) < uint64(len(kinds)) && kinds[op] != nil {
		return kinds[op]
	}
	return &unknownKind
}

// sendQueue is a ring of work requests. Indices grow without end; the request
// with index i lies at i modulo the ring's length.
type sendQueue struct {
	ring []sendWR // made when the first request is posted; grows up to depth
	head uint64   // the oldest that is not completed
	tail uint64   // the next to be posted
	cost uint64   // of everything ever posted

	depth, sges, inline int
}

func (s *sendQueue) init(depth, sges, inline int) {
	s.depth, s.sges, s.inline = max(depth, 0), max(sges, 0), max(inline, 0)
}

func (s *sendQueue) full() bool { return s.len() >= s.depth }

// firstRing is how many requests the ring of a send queue holds at first.
const firstRing = 4

// next is the place of the next request. A queue pair that never sends, as that
// of a silent peer, has no ring. Preconditions: the queue is not full.
func (s *sendQueue) next() *sendWR {
	if s.len() == len(s.ring) {
		s.grow()
	}
	return s.at(s.tail)
}

// grow doubles the ring, up to the queue's depth.
func (s *sendQueue) grow() {
	n := min(max(2*len(s.ring), firstRing), s.depth)
	ring := make([]sendWR, n)
	lists := make([]mem.SGE, n*s.sges)
	data := make([]byte, n*s.inline)
	for i := range ring {
		ring[i].sge = lists[i*s.sges : i*s.sges : (i+1)*s.sges]
		ring[i].inline = data[i*s.inline : i*s.inline : (i+1)*s.inline]
	}
	for i := s.head; i != s.tail; i++ {
		from, to := s.at(i), &ring[i%uint64(n)]
		sge, inline := append(to.sge, from.sge...), append(to.inline, from.inline...)
		*to = *from
		to.sge, to.inline = sge, inline
	}
	s.ring = ring
}

func (s *sendQueue) reset() { s.head, s.tail, s.cost = 0, 0, 0 }

func (s *sendQueue) len() int { return int(s.tail - s.head) }

func (s *sendQueue) at(i uint64) *sendWR { return &s.ring[i%uint64(len(s.ring))] }

// Post takes over a work request. EINVAL in RESET, INIT and RTR; ENOMEM when
// SendDepth work requests are outstanding. A fault of the request itself shows
// in its completion. In ERR it is flushed, in SQD it waits for RTS. Next:
// Transmit, or Completions in ERR.
func (q *QP) Post(now Time, wr *SendWR) error {
	switch {
	case !q.sends() && q.state != abi.QPSErr:
		return fmt.Errorf("queue pair %v: post in %v, needs RTS: %w", q.cfg.QPN, q.state, syscall.EINVAL)
	case q.sq.full():
		return fmt.Errorf("queue pair %v: send queue of %d is full: %w", q.cfg.QPN, q.sq.depth, syscall.ENOMEM)
	}
	w := q.sq.next()
	w.id, w.flags, w.imm, w.invalidate = wr.ID, wr.Flags, wr.Imm, wr.Invalidate
	w.remote, w.rkey, w.compareAdd, w.swap = wr.RemoteAddr, wr.RKey, wr.CompareAdd, wr.Swap
	w.sge, w.inline, w.length = w.sge[:0], w.inline[:0], 0
	w.kind = kindOf(wr.Opcode)
	if w.status = w.take(wr); w.status != abi.WCSuccess {
		w.length = 0
	}
	w.first, w.end = q.req.post, q.req.post+1
	if w.kind.local() {
		w.end, w.bind, w.done = w.first, wr.Bind, false
	}
	w.cost = q.sq.cost
	w.mtu, w.private = q.mtu, 0
	if !w.kind.isAtomic() && !w.kind.local() && q.mtu > 0 {
		if x := q.extension; x != nil {
			x.choosePrivate(w)
		}
		w.end = w.first + packets(w.length, w.mtu)
	}
	q.req.post = w.end
	q.sq.cost += uint64(w.length) + uint64(w.end-w.first)*packetCost
	q.sq.tail++
	return nil
}

// take copies the request's data description and checks it as far as that needs
// no look at memory.
func (w *sendWR) take(wr *SendWR) abi.WCStatus {
	if wr.Err != nil || w.kind == &unknownKind {
		return abi.WCLocQPOpErr
	}
	var n uint64
	if wr.Flags&abi.SendInline != 0 {
		if w.kind.returnsData() || len(wr.Inline) > cap(w.inline) {
			return abi.WCLocQPOpErr
		}
		w.inline = append(w.inline, wr.Inline...)
		n = uint64(len(wr.Inline))
	} else {
		if len(wr.SGE) > cap(w.sge) {
			return abi.WCLocQPOpErr
		}
		w.sge = append(w.sge, wr.SGE...)
		n = mem.ListLength(wr.SGE)
	}
	if w.kind.local() && n > 0 {
		return abi.WCLocQPOpErr
	}
	if n > MaxMessage || w.kind.isAtomic() && n != 8 {
		return abi.WCLocLenErr
	}
	w.length = uint32(n)
	return abi.WCSuccess
}

// costAt is the cost of everything before PSN s, which belongs to request i or
// is the first that nothing is posted for.
func (q *QP) costAt(i uint64, s seq) uint64 {
	if i == q.sq.tail {
		return q.sq.cost
	}
	w := q.sq.at(i)
	n := uint64(s - w.first)
	return w.cost + min(n*uint64(w.mtu), uint64(w.length)) + n*packetCost
}
