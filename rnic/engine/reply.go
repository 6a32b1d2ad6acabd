package engine

import (
	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// transmitReplies writes answers while the batch has room before limit: READ
// responses and ATOMIC ACKs in the order of their PSNs, then one ACK for all
// that was carried out, or the NAK that ends it (IBA 9.7.5.1). The ACK goes
// with ack only.
func (q *QP) transmitReplies(now Time, b *Batch, limit mark, ack bool) {
	for b.before(limit) && q.mayReply() {
		x := q.extension
		switch r := q.rsp.replay.oldest(); {
		case x != nil && len(x.repeats.list) > 0:
			x.replyMissing(b)
		case r != nil && r.operation == wire.OpRead:
			q.replyRead(b, r)
		case r != nil:
			q.replyAtomic(b, r)
		case q.rsp.nak.pending:
			q.rsp.nak.pending = false
			q.ackSent() // the NAK acknowledges all before it
			var kept []byte
			if x != nil {
				kept = x.bitmap(b)
			}
			q.reply(b, wire.RCAck, q.rsp.nak.at, q.rsp.nak.syndrome, kept)
		case q.rsp.ack && ack:
			q.ackSent()
			q.rsp.last = lastAck{now, q.rsp.ackTo}
			q.reply(b, wire.RCAck, q.rsp.ackTo, wire.SyndromeACK(wire.NoCredits), nil)
		default:
			return
		}
	}
}

// mayReply: in ERR the answers that were due when the queue pair failed may
// still leave, the fatal NAK as the last of them.
func (q *QP) mayReply() bool {
	return q.state == abi.QPSRTR || q.sends() || q.state == abi.QPSErr
}

// reply adds a response packet to the batch. The packet carries the current
// message count, also in the answer to an older request (IBA C9-148;
// rxe_resp.c:prepare_ack_packet).
func (q *QP) reply(b *Batch, op wire.Opcode, s seq, syn wire.Syndrome, payload []byte) {
	q.startReply(op, s, syn)
	q.out.BECN = q.takeNotice()
	b.add(q.attr.Peer, &q.out, payload)
	q.counters.SentPkts++
	q.counters.SentBytes += uint64(len(payload))
}

// startReply begins a response packet.
func (q *QP) startReply(op wire.Opcode, s seq, syn wire.Syndrome) {
	q.startPacket(op, s)
	if x := q.extension; x != nil {
		x.answer(&q.out)
	}
	q.out.AETH = wire.AETH{Syndrome: syn, MSN: q.rsp.msn}
}

// replyRead adds one READ response. The answer to a READ repeated from the
// middle begins with First or Only (IBA 9.7.5.1.9), which Linux's rxe takes,
// though it sends Middle or Last itself.
func (q *QP) replyRead(b *Batch, r *replay) {
	if !q.replyPart(b, r, r.cur, r.stopLen, position(r.cur == r.begin, r.cur+1 == r.stop), r.alone) {
		q.failReply(b, r)
		return
	}
	q.rsp.replay.sent(r)
}

// replyPart adds the response s to a READ that ends after length bytes. False
// says that the memory is gone.
func (q *QP) replyPart(b *Batch, r *replay, s seq, length uint32, pos wire.Position, alone bool) bool {
	off := uint64(s-r.first) * uint64(r.mtu)
	op, _ := wire.FindOpcode(wire.ServiceRC, wire.OpReadResponse, pos, wire.Plain)
	payload := b.payload(op, int(min(uint64(length)-off, uint64(r.mtu))))
	sum, err := q.cfg.Regions.Read(q.cfg.PD, r.rkey, r.va+off, payload)
	if err != nil {
		return false
	}
	q.reply(b, op, s, wire.SyndromeACK(wire.NoCredits), payload)
	b.last().Alone, b.last().Sum = alone, sum
	return true
}

func (q *QP) replyAtomic(b *Batch, r *replay) {
	q.out.AtomicAckETH.Orig = r.orig
	q.reply(b, wire.RCAtomicAck, r.cur, wire.SyndromeACK(wire.NoCredits), nil)
	q.rsp.replay.sent(r)
}

// failReply ends the queue pair because the region of a READ is gone while it
// is being answered. If the READ had its answer before, the program had reason
// to take the region away, and the request that repeats it is most likely late:
// a requester that has the answer takes no notice of the NAK, and a requester
// that lost it learns why it will not get it. Neither ends this side.
func (q *QP) failReply(b *Batch, r *replay) {
	if r.answered {
		q.counters.DropReplay++
		q.countNAK(remoteOpError.syndrome)
		q.reply(b, wire.RCAck, r.cur, remoteOpError.syndrome, nil)
		r.cur, r.stop = r.end, r.end
		q.rsp.replay.left--
		return
	}
	q.rsp.next = r.cur // so that the NAK names this packet, even before an earlier fatal one
	q.forgetReplays()
	q.refuse(remoteOpError)
}

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
	// request's bytes before stop. The request asked for them from begin on.
	begin, cur, stop seq
	stopLen          uint32
	answered         bool // the answer was sent completely at least once
	alone            bool // what is sent leaves as datagrams of their own
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

	// last is the repeated request that came last, or never. A repeat that is
	// not behind it shows that the requester went back: to asked the last time.
	// inVain is how often in a row it then had one packet more at most.
	last, asked seq
	inVain      uint8
}

func (u *replayQueue) reset(limit int) {
	u.limit, u.ring = limit, u.ring[:min(limit, cap(u.ring))]
	u.head, u.n, u.left, u.sure = 0, 0, 0, 0
	u.last, u.asked, u.inVain = never, 0, 0
}

// forgetReplays forgets all answers.
func (q *QP) forgetReplays() {
	q.rsp.replay.reset(q.rsp.replay.limit)
	if x := q.extension; x != nil {
		x.repeats.clear()
	}
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
	r.begin = r.first
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
	r.begin, r.cur, r.stop, r.stopLen, r.alone = from, from, stop, stopLen, u.inVain >= 2
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
// PSNs, before the answer under way (IBA 9.7.5.1.3, C9-110).
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
		if x := q.extension; x != nil && p.Selective && x.repeats.add(r, s, s+packets(p.RETH.DMALen, r.mtu)) {
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
