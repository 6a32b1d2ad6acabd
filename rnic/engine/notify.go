package engine

import "github.com/rdmashim/rdmashim/rnic/wire"

// noticeGap is the least time between two CNPs of a queue pair: the peer counts
// those of a round trip as one.
const noticeGap = 50 * Microsecond

// notification holds the news that a queue pair has for its peer of queues that
// the peer's packets met (explicit congestion notification, RFC 3168; RoCEv2's
// form of it, IBA A17.9.3).
//
//	a request with FECN    → BECN in the next answer, if the peer is a soft
//	                         device, else a CNP
//	an answer with FECN    → the path shrinks: the requester asked for too much
//	an answer with BECN    → the path shrinks
//	a CNP                  → the path shrinks
//
// FECN stands for the mark CE of the IP header, too, and for a receive buffer
// that is nearly full: the device sets it.
type notification struct {
	due   bool // a request met a queue
	after Time // before then no CNP leaves
}

// noteMarks takes over the marks of queues that a packet of the peer carries.
func (q *QP) noteMarks(now Time, p *wire.Packet) {
	switch {
	case p.FECN && p.Opcode.IsRequest():
		q.counters.Marked++
		q.notice.due = true
	case p.FECN:
		q.counters.Marked++
		q.flow.Marked(now)
	case p.BECN && !p.Opcode.IsRequest():
		q.counters.NoticesRcvd++
		q.flow.Marked(now)
	}
}

// takeNotice reports whether the answer that is being written is to have BECN.
func (q *QP) takeNotice() bool {
	if !q.notice.due || !q.selective() {
		return false
	}
	q.notice.due = false
	return true
}

// transmitNotice writes a CNP to a peer that does not look at BECN.
func (q *QP) transmitNotice(now Time, b *Batch) {
	if !q.notice.due || q.selective() || !q.mayReply() || now < q.notice.after || b.Full() {
		return
	}
	q.notice = notification{after: now + Time(noticeGap)}
	q.startPacket(wire.CNP, 0)
	q.out.BECN = true
	b.add(q.attr.Peer, &q.out, nil)
	q.counters.SentPkts++
	q.counters.NoticesSent++
}
