package rnic

import (
	"net/netip"
	"time"

	"github.com/rdmashim/rdmashim/rnic/engine"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// longWait is how long a message waits for a receive of the peer's before the
// logger is told: with the default RNR retry count, 7, it waits for ever, and a
// program that forgot to post receives sees nothing else.
const longWait = engine.Second

// unready holds the logger's messages about sends that wait for a receive: each
// wait is told once, and at most one a second of all queue pairs.
type unready struct {
	notice  longUnready
	noticed engine.Time // when notice was set last; 0: never
}

// longUnready is one such log message; none if long is 0.
type longUnready struct {
	qpn, remote wire.QPN
	peer        netip.AddrPort
	long        engine.Duration
}

// take returns the message to be logged, once.
func (u *unready) take() longUnready {
	n := u.notice
	u.notice.long = 0
	return n
}

// watchUnready looks at a queue pair whose peer had no receive. Preconditions:
// d.mu is held.
func (q *QP) watchUnready(now engine.Time) {
	long, u := q.engine.Unready(now), &q.d.unready
	switch {
	case long < longWait:
		q.waited = false
	case !q.waited && (u.noticed == 0 || now-u.noticed >= engine.Time(noticeGap)):
		attr := q.engine.Attr()
		u.notice, u.noticed = longUnready{q.num, attr.DestQPN, attr.Peer, long}, now
		q.waited = true
		q.d.wakeWorker()
	}
}

// tellUnready logs. Preconditions: mu is not held.
func (d *Device) tellUnready(n longUnready) {
	if d.log != nil {
		d.log.Warn("a message waits for a receive: the peer has none posted", "device", d.name, "qp", int(n.qpn),
			"peer", n.peer, "peer_qp", int(n.remote), "for", time.Duration(n.long).Round(time.Millisecond))
	}
}
