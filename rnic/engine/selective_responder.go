package engine

import (
	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// stashRequest keeps a request from beyond next. It reports whether the
// requester may be told. A requester that waits for a receive goes back anyway.
func (x *extension) stashRequest(now Time, s seq, p *wire.Packet) bool {
	q, r := x.q, &x.q.rsp
	if len(p.Payload) > x.takes() || r.refused && r.nak.syndrome.IsRNR() {
		return false
	}
	if !p.Claim() {
		return false
	}
	kept := x.requests.put(q.cfg.Stash, x.neighbour, r.next, reach(q.mtu), s, p)
	if !p.Settle() {
		if h := x.requests.take(s); h != nil {
			q.cfg.Stash.release(h)
		}
		return false
	}
	if !kept {
		return false
	}
	q.noteMarks(now, p)
	return true
}

// unstash carries out the requests that were kept until next came, and tells
// the requester of the next gap.
func (x *extension) unstash(now Time) {
	q, t := x.q, &x.requests
	for q.state != abi.QPSErr {
		if t.drop(q.rsp.next); t.n == 0 {
			return
		}
		h := t.take(q.rsp.next)
		if h == nil {
			q.refuseGap()
			return
		}
		ok := q.carryOut(now, &h.p)
		q.cfg.Stash.release(h)
		if !ok {
			return
		}
	}
}

// bitmap is the payload of a NAK for a sequence error, in whole words, and nil
// if nothing is kept.
func (x *extension) bitmap(b *Batch) []byte {
	q, n, t := x.q, &x.q.rsp.nak, &x.requests
	if t.n == 0 || n.fatal || n.syndrome.IsRNR() {
		return nil
	}
	most := int(reach(q.mtu))
	m := wire.Bitmap(b.payload(wire.RCAck, most/8))
	clear(m)
	for i, left := 1, t.n; i < most && left > 0; i++ {
		h := t.at(n.at + seq(i))
		if h == nil {
			continue
		}
		left--
		end := i + 1
		if h.p.Opcode.IsReadRequest() {
			end = min(i+int(packets(h.p.RETH.DMALen, q.mtuOf(&h.p))), most)
		}
		for ; i < end; i++ {
			m.Set(i)
		}
		i--
	}
	return m[:(m.Len()+31)/32*4]
}

// repeat is a range of PSNs whose answers are sent again.
type repeat struct {
	from, stop seq
	alone      bool // they leave as datagrams of their own
}

// maxRepeats bounds the parts of READs' answers that wait to be sent again. The
// requester asks once more for those that find no room.
const maxRepeats = 64

// repeats holds parts of answers to READs that selective requesters miss.
type repeats struct {
	list   []repeat
	last   repeat // that was asked for
	inVain int    // how often in a row the same, or one packet less, was asked for
}

func (u *repeats) clear() { *u = repeats{list: u.list[:0]} }

// add asks for [from, stop) of r's answer once more, unless it is yet to be
// sent. It reports whether it could, or false if all that remains of the answer
// is asked for.
func (u *repeats) add(r *replay, from, stop seq) bool {
	if r.pending() && r.cur < stop && from < r.stop {
		return from >= r.cur && stop <= r.stop
	}
	if stop == u.last.stop && from <= u.last.from+1 {
		u.inVain++
	} else {
		u.inVain = 0
	}
	u.last = repeat{from, stop, u.inVain >= 3}
	if len(u.list) < maxRepeats {
		u.list = append(u.list, u.last)
	}
	return true
}

// replyMissing adds one packet of an answer that was sent before. A READ that
// newer ones pushed out is not answered again. One whose region is gone is
// refused, if its whole answer was sent before.
func (x *extension) replyMissing(b *Batch) {
	q, u := x.q, &x.repeats
	next := &u.list[0]
	s, alone := next.from, next.alone
	if next.from++; next.from >= next.stop {
		u.list = u.list[:copy(u.list, u.list[1:])]
	}
	r := q.rsp.replay.find(s)
	if r == nil || r.operation != wire.OpRead {
		q.counters.DropReplay++
		return
	}
	if q.replyPart(b, r, s, r.length, position(s == r.first, s+1 == r.end), alone) {
		return
	}
	q.counters.DropReplay++
	if r.answered { // else the rest of the answer fails too, and says so
		q.countNAK(remoteOpError.syndrome)
		q.reply(b, wire.RCAck, s, remoteOpError.syndrome, nil)
	}
}
