package engine

import "github.com/rdmashim/rdmashim/rnic/wire"

// replay is a READ or atomic request that is remembered until newer ones push
// it out: to send its answer, and to send it again. It holds no payload: a READ
// is read again, an atomic keeps its result (IBA 9.7.5.1.5).
type replay struct {
	operation  wire.Operation
	first, end seq // of the original request
	va         uint64
	rkey       uint32
	length     uint32
	mtu        int    // bytes of the answer's packets
	orig       uint64 // result of an atomic

	// The packets to be sent are [cur, stop); stopLen is the number of the
	// request's bytes before stop.
	cur, stop seq
	stopLen   uint32
	answered  bool // the answer was sent completely at least once
	alone     bool // what is sent leaves as datagrams of their own
}

func (r *replay) pending() bool { return r.cur < r.stop }

// never is behind any seq.
const never = ^seq(0)

// replayQueue holds the last max_dest_rd_atomic READs and atomics in the order
// of their PSNs.
type replayQueue struct {
	limit int
	ring  []replay // of limit, made with the first: many queue pairs have none
	head  int
	n     int
	left  int // how many are pending
	sure  int // the first so many are not

	repeats repeats // go before all else

	// last is the repeated request that came last, or never. A repeat that is
	// not behind it shows that the requester went back: to asked the last time.
	// inVain is how often in a row it then had one packet more at most.
	last, asked seq
	inVain      uint8
}

func (u *replayQueue) reset(limit int) {
	u.limit, u.ring = limit, u.ring[:min(limit, cap(u.ring))]
	u.head, u.n, u.left, u.sure, u.repeats = 0, 0, 0, 0, repeats{list: u.repeats.list[:0]}
	u.last, u.asked, u.inVain = never, 0, 0
}

func (u *replayQueue) at(i int) *replay { return &u.ring[(u.head+i)%len(u.ring)] }

// hasRoom reports whether another request may be outstanding. The oldest makes
// room once its answer has been sent: a requester that keeps to the limit has
// received it.
func (u *replayQueue) hasRoom() bool {
	return u.n < u.limit || u.limit > 0 && (u.at(0).answered || !u.at(0).pending())
}

// add appends a request, pushing out the oldest if need be. hasRoom holds.
func (u *replayQueue) add(r replay) {
	if len(u.ring) < u.limit {
		u.ring = make([]replay, u.limit)
	}
	if u.n == u.limit {
		if u.at(0).pending() {
			u.left--
		}
		u.head = (u.head + 1) % len(u.ring)
		u.n--
		u.sure = max(u.sure-1, 0)
	}
	*u.at(u.n) = r
	u.last = never
	u.n++
	u.left++
}

// find returns the request that s belongs to, or nil.
func (u *replayQueue) find(s seq) *replay {
	for i := u.n - 1; i >= 0; i-- {
		if r := u.at(i); r.first <= s && s < r.end {
			return r
		}
	}
	return nil
}

// oldest returns the first request whose answer is to be sent, or nil. It looks
// at each request once: answers are sent in order.
func (u *replayQueue) oldest() *replay {
	if u.left == 0 {
		return nil
	}
	for !u.at(u.sure).pending() {
		u.sure++
	}
	return u.at(u.sure)
}

// sent moves r's answer on by a packet.
func (u *replayQueue) sent(r *replay) {
	if r.cur++; r.cur == r.stop {
		r.answered = true
		u.left--
	}
}

// again asks for [from, stop) of r's answer, also if another part of it was
// being sent.
func (u *replayQueue) again(r *replay, from, stop seq, stopLen uint32) {
	if !r.pending() {
		u.left++
	}
	u.sure = 0
	if from <= u.last {
		if from > u.asked+1 {
			u.inVain = 0
		} else if u.inVain < 2 {
			u.inVain++
		}
		u.asked = from
	}
	u.last = from
	r.cur, r.stop, r.stopLen, r.alone = from, stop, stopLen, u.inVain >= 2
}

// behind returns the first READ or atomic behind s, or next if there is none.
func (u *replayQueue) behind(s, next seq) seq {
	for i := range u.n {
		if r := u.at(i); r.first > s {
			return r.first
		}
	}
	return next
}

// duplicate handles a request from before the expected PSN, whose effect took
// place already: SENDs and WRITEs are acknowledged again, READs are done again,
// atomics answered from memory. Repeated answers leave in the order of their
// PSNs, before what was being answered (IBA 9.7.5.1.3, C9-110).
//
// The ACK reaches up to the next READ or atomic only: that one's answer may
// have been lost too, and an ACK with its PSN would pass for it.
func (q *QP) duplicate(s seq, p *wire.Packet) {
	u := &q.rsp.replay
	switch p.Opcode.Operation() {
	case wire.OpSend, wire.OpWrite:
		to := u.behind(s, q.rsp.next) - 1
		if !q.rsp.ack || q.rsp.ackTo < to {
			q.rsp.ackTo = to
		}
		q.rsp.ack = true
	case wire.OpRead:
		r := u.find(s)
		if r == nil || r.operation != wire.OpRead || q.mtuOf(p) != r.mtu || !r.within(s, &p.RETH) {
			q.counters.DropReplay++
			return
		}
		skipped := uint32(s-r.first) * uint32(r.mtu)
		if p.Selective && u.repeats.add(r, s, s+packets(p.RETH.DMALen, r.mtu)) {
			return
		}
		u.again(r, s, s+packets(p.RETH.DMALen, r.mtu), skipped+p.RETH.DMALen)
	case wire.OpFetchAdd, wire.OpCompareSwap:
		r := u.find(s)
		if r == nil || r.operation != p.Opcode.Operation() || r.va != p.AtomicETH.VA || r.rkey != p.AtomicETH.RKey {
			q.counters.DropReplay++
			return
		}
		u.again(r, r.first, r.end, 0)
	default:
		q.counters.DropReplay++
	}
}

// within reports whether a repeated READ at s asks for a part of the original.
func (r *replay) within(s seq, e *wire.RETH) bool {
	skipped := uint64(s-r.first) * uint64(r.mtu)
	return e.RKey == r.rkey && e.VA == r.va+skipped &&
		skipped+uint64(e.DMALen) <= uint64(r.length) && (e.DMALen > 0 || r.length == 0)
}
