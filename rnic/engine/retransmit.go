package engine

import (
	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// goBack starts again at the oldest packet that is missing: in the middle of a
// message, or of a READ's responses (IBA 9.7.6). Something is outstanding.
func (q *QP) goBack(now Time, timeout bool) {
	r := &q.req
	q.counters.Retries++
	if timeout {
		// Where a device spoils what it cuts, at most the first packet of the
		// repeated run has arrived.
		if r.una <= r.lapsedAt+1 {
			r.alone = r.sent
		}
		r.lapsed, r.lapsedAt = r.sent, r.una
	}
	if r.shrunk != r.una {
		r.shrunk = r.una
		r.win.shrink(q.mtu, timeout, r.timer.srtt != 0)
	}
	q.rewind()
	r.timer.repeatedAt = now
	r.timer.retransmit = now + Time(q.retransmitAfter())
}

// rewind sends everything from una on again.
func (q *QP) rewind() {
	r := &q.req
	r.nxt, r.cur = r.una, q.sq.head
	r.since, r.probe = 0, true
}

// measured notes the first measurement. Of a packet that left before a timeout,
// and once, it shows that the timeout came too early: the packets that left
// with that one are on their way, too, and need not be repeated.
func (q *QP) measured() {
	r := &q.req
	r.win.restore()
	if r.timer.samplePk < r.lapsed && r.nxt < r.sent {
		r.nxt = r.sent
		for r.cur < q.sq.tail && q.sq.at(r.cur).end <= r.nxt {
			r.cur++
		}
	}
}

// lost goes back because the peer, or a gap in its answers, said that una is
// missing. It does so once: a second message about the same packet was on its
// way already, and the answer to the retransmission is not yet there. If the
// retransmission is lost too the timer notices.
func (q *QP) lost(now Time) {
	r := &q.req
	if r.timer.waitsForReceiver() || r.wentBack == r.una {
		return
	}
	r.wentBack = r.una
	q.goBack(now, false)
}

// receiverNotReady waits as long as the peer asked for, then starts again at
// una (IBA 9.7.5.2.8). The RNR retry count bounds how often, 7 is for ever.
func (q *QP) receiverNotReady(now Time, t wire.RNRTimer) {
	r := &q.req
	if r.timer.waitsForReceiver() {
		return // a copy of the NAK
	}
	q.counters.RNRRcvd++
	if q.attr.RNRRetry != 7 {
		if r.rnrLeft == 0 {
			q.counters.RNRRetryExceeded++
			q.failRequest(q.sq.head, abi.WCRNRRetryExcErr)
			return
		}
		r.rnrLeft--
	}
	if r.timer.unready == 0 {
		r.timer.unready = now
	}
	q.rewind()
	r.wentBack = 0
	r.timer.sampling = false // the wait is not of the path
	r.timer.receiver = now + Time(t.Nanoseconds())
	r.timer.retransmit, r.timer.giveUp = 0, 0 // the peer lives
}
