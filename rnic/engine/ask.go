package engine

import (
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// ask is a READ or atomic request that went out: its answer takes the PSNs
// [first, end). The borders stay as they were first chosen, because a repeated
// READ must lie within the original one (IBA 9.7.5.1.5,
// rxe_resp.c:duplicate_request).
type ask struct {
	first, end seq
	read       bool
}

// askQueue holds the requests whose answers are missing, oldest first: at most
// max_rd_atomic.
type askQueue struct {
	limit uint8
	head  uint8
	n     uint8
	reads uint8 // of n
	ring  []ask // of limit, made with the first
}

func (a *askQueue) reset(limit int) {
	a.limit, a.ring, a.head, a.n, a.reads = uint8(limit), a.ring[:min(limit, cap(a.ring))], 0, 0, 0
}

func (a *askQueue) empty() bool  { return a.n == 0 }
func (a *askQueue) full() bool   { return a.n == a.limit }
func (a *askQueue) front() *ask  { return a.place(0) }
func (a *askQueue) at(i int) ask { return *a.place(uint8(i)) }

// place is where the request i lies, of those that are in the queue: head and i
// are less than limit, 128 at most.
func (a *askQueue) place(i uint8) *ask { return &a.ring[(a.head+i)%a.limit] }

// push appends a request. The queue is not full.
func (a *askQueue) push(x ask) {
	if len(a.ring) < int(a.limit) {
		a.ring = make([]ask, a.limit)
	}
	a.n++
	if x.read {
		a.reads++
	}
	*a.place(a.n - 1) = x
}

// answered drops the requests that end at or before una.
func (a *askQueue) answered(una seq) {
	for a.n > 0 && a.front().end <= una {
		if a.front().read {
			a.reads--
		}
		a.head = (a.head + 1) % a.limit
		a.n--
	}
}

// endOf returns the end of the request that holds s; ok is false if none does.
func (a *askQueue) endOf(s seq) (end seq, ok bool) {
	for i := range int(a.n) {
		if x := a.at(i); s < x.end {
			return x.end, x.first <= s
		}
	}
	return 0, false
}

// sendAsk sends an RDMA READ or atomic request: the next piece of the READ, or
// after going back the missing part of a piece that was asked for already. It
// returns false when that must wait.
func (q *QP) sendAsk(now Time, b *Batch, w *sendWR) bool {
	r := &q.req
	end, again := r.nxt, false
	if r.nxt < r.sent {
		end, again = r.asked.endOf(r.nxt)
	}
	if !again {
		if r.asked.full() {
			return false
		}
		end = min(w.end, r.nxt+q.readPiece(w))
	}
	if !q.fits(now, int(q.costAt(r.cur, end)-q.costAt(r.cur, r.nxt))) || !q.reaches(end) {
		return false
	}
	if !again {
		r.asked.push(ask{r.nxt, end, w.kind.operation == wire.OpRead})
	}
	q.writeAsk(now, b, w, end)
	if !again && q.waitsOut() {
		q.startRetransmit(now) // also for what was sent before
	}
	return true
}

// writeAsk writes the request for the answers [nxt, end).
func (q *QP) writeAsk(now Time, b *Batch, w *sendWR, end seq) {
	r := &q.req
	q.startRequest(w.kind.operation, wire.Only, wire.Plain)
	off := uint64(r.nxt-w.first) * uint64(w.mtu)
	p := &q.out
	if w.kind.isAtomic() {
		p.AtomicETH = wire.AtomicETH{VA: w.remote, RKey: w.rkey, SwapAdd: w.compareAdd}
		if w.kind.operation == wire.OpCompareSwap {
			p.AtomicETH.Compare, p.AtomicETH.SwapAdd = w.compareAdd, w.swap
		}
	} else {
		last := min(uint64(end-w.first)*uint64(w.mtu), uint64(w.length))
		p.PrivateMTU = w.private
		p.RETH = wire.RETH{VA: w.remote + off, RKey: w.rkey, DMALen: uint32(last - off)}
	}
	p.AckReq = true // means nothing here, but rxe sets it
	x := q.extension
	double := x != nil && x.doubles(now, w)
	q.emit(now, b, nil, end-r.nxt)
	if double && !b.Full() {
		p.AckReq = false
		b.add(q.attr.Peer, p, nil)
		q.counters.SentPkts++
		q.counters.RetransmittedPkts++
	}
}

// readPiece is how many packets one READ request asks for: a part of the
// window, and of the path's share, so that several can be under way and their
// answers never exceed it.
func (q *QP) readPiece(w *sendWR) seq {
	part := min(q.req.win.size, q.share()) / min(int(q.req.asked.limit), 4)
	return max(1, seq(part/(w.mtu+packetCost)))
}
