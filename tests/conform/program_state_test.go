//go:build linux || darwin

package conform

import (
	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/verbs"
)

// refresh asks for the state of a queue pair.
func (p *program) refresh(q *progQP) abi.QPState {
	if q.gone {
		return q.state
	}
	attr, err := q.qp.Query()
	if err != nil {
		p.err = err
		return q.state
	}
	q.state = attr.State
	return q.state
}

// connect brings both ends to RTS, from RESET or INIT.
func (p *program) connect(pair *progPair) {
	mtu := pick(p, []abi.MTU{abi.MTU256, abi.MTU512, abi.MTU1024})
	depth := pick(p, []uint8{1, 2, 4, 8})
	if pair.depth == 0 || depth < pair.depth || !p.rxe {
		pair.depth = depth
	}
	for _, q := range pair.ends {
		q.psn = p.rand.Uint32() & 0xffffff
	}
	for i, q := range pair.ends {
		peer := pair.ends[1-i]
		p.modify(q, &verbs.QPAttr{State: abi.QPSInit, PortNum: 1, AccessFlags: q.access}, maskInit)
		p.modify(q, &verbs.QPAttr{
			State: abi.QPSRTR, PathMTU: mtu, DestQPNum: peer.qp.Num(), RQPSN: peer.psn, MaxDestRdAtomic: pair.depth, MinRNRTimer: 1,
			AV: q.side.path,
		}, maskRTR)
		p.modify(q, &verbs.QPAttr{
			State: abi.QPSRTS, Timeout: 18, RetryCnt: 7, RNRRetry: q.rnrRetry, MaxRdAtomic: pair.depth, SQPSN: q.psn,
		}, maskRTS)
		q.hasty = false
	}
	p.say("%s and %s connected, MTU %v, %d READs: %v %v", pair.ends[0].name, pair.ends[1].name, mtu, pair.depth, p.refresh(pair.ends[0]), p.refresh(pair.ends[1]))
}

// modify makes a move that must be possible.
func (p *program) modify(q *progQP, attr *verbs.QPAttr, mask abi.QPAttrMask) {
	if p.err != nil {
		return
	}
	if err := q.qp.Modify(attr, mask); err != nil {
		p.say("%s to %v: %s", q.name, attr.State, errText(err))
		p.err = err
	}
}

// reconnect connects a pair that is not, or brings one down and up again.
func (p *program) reconnect() {
	pair := pick(p, p.pairs)
	if p.oneIn(2) { // rather one that is down
		for _, other := range p.pairs {
			if other.ends[0].state == abi.QPSErr || other.ends[1].state == abi.QPSErr {
				pair = other
			}
		}
	}
	if pair.ends[0].gone || pair.ends[1].gone {
		return
	}
	for _, q := range pair.ends {
		if q.state != abi.QPSReset {
			p.modify(q, &verbs.QPAttr{State: abi.QPSReset}, abi.QPMaskState)
			q.receives, q.sent, q.received = nil, nil, nil
		}
	}
	p.pump()
	p.connect(pair)
}

// toError moves a queue pair to the error state and waits until everything is
// flushed.
func (p *program) toError(q *progQP) {
	p.modify(q, &verbs.QPAttr{State: abi.QPSErr}, abi.QPMaskState)
	p.say("%s to ERR", q.name)
	p.settleReceives(q, len(q.receives))
	p.refresh(q)
}

// fail breaks a connection from one end.
func (p *program) fail() {
	q := pick(p, pick(p, p.pairs).ends[:])
	if q.gone || q.state == abi.QPSReset {
		return // RESET to ERR is not in Linux's table
	}
	p.toError(q)
}

// modifyLive changes attributes that a queue pair at work lets be changed.
func (p *program) modifyLive() {
	q := pick(p, pick(p, p.pairs).ends[:])
	if q.gone || q.state != abi.QPSRTS {
		return
	}
	var err error
	switch p.rand.IntN(3) {
	case 0:
		q.access = abi.AccessFlags(p.rand.IntN(16))
		err = q.qp.Modify(&verbs.QPAttr{State: abi.QPSRTS, AccessFlags: q.access}, abi.QPMaskState|abi.QPMaskAccessFlags)
		p.say("%s access %v: %s", q.name, q.access, errText(err))
	case 1:
		err = q.qp.Modify(&verbs.QPAttr{MinRNRTimer: 2}, abi.QPMaskMinRNRTimer)
		p.say("%s min_rnr_timer: %s", q.name, errText(err))
	case 2:
		p.retries(q, 18, 7)
	}
	p.say("%s state %v", q.name, p.refresh(q))
}

// retries changes how long a peer is waited for, by way of SQD.
func (p *program) retries(q *progQP, timeout, count uint8) {
	for _, mask := range []abi.QPAttrMask{abi.QPMaskState, abi.QPMaskState | abi.QPMaskTimeout | abi.QPMaskRetryCnt} {
		p.modify(q, &verbs.QPAttr{State: abi.QPSSQD, Timeout: timeout, RetryCnt: count}, mask)
		p.wait(q.name+" drains", func() bool { // newer Linux drains again: rxe_qp.c:rxe_qp_sqd
			attr, err := q.qp.Query()
			return err != nil || attr.SQDraining == 0
		})
	}
	p.modify(q, &verbs.QPAttr{State: abi.QPSRTS}, abi.QPMaskState)
	p.say("%s waits %d times 2^%d", q.name, count, timeout)
}

// modifyWild tries a transition with a mask of its own making.
func (p *program) modifyWild() {
	q := pick(p, pick(p, p.pairs).ends[:])
	if q.gone {
		return
	}
	peer := q.pair.peer(q)
	attr := verbs.QPAttr{
		State: abi.QPState(p.rand.IntN(8)), PortNum: 1, AccessFlags: allAccess, PathMTU: abi.MTU512, DestQPNum: peer.qp.Num(), RQPSN: peer.psn,
		MaxDestRdAtomic: 2, MinRNRTimer: 1, AV: q.side.path, Timeout: 18, RetryCnt: 7, RNRRetry: 2, MaxRdAtomic: 2, SQPSN: q.psn,
	}
	mask := abi.QPMaskState
	switch p.rand.IntN(3) {
	case 0:
		mask |= pick(p, []abi.QPAttrMask{maskInit, maskRTR, maskRTS})
	case 1:
		mask |= 1 << (1 + p.rand.IntN(20))
	}
	if p.wouldMove(q, attr.State, mask) {
		return // the other steps do that, and wait for what follows
	}
	err := q.qp.Modify(&attr, mask)
	p.say("%s in %v to %v with %v: %s, %v", q.name, q.state, attr.State, mask, errText(err), p.refresh(q))
}

// wouldMove tells of transitions that are permitted.
func (p *program) wouldMove(q *progQP, to abi.QPState, mask abi.QPAttrMask) bool {
	switch to {
	case abi.QPSReset, abi.QPSErr, abi.QPSSQD:
		return true
	case abi.QPSInit:
		return q.state == abi.QPSReset || q.state == abi.QPSInit
	case abi.QPSRTR:
		return q.state == abi.QPSInit
	case abi.QPSRTS:
		return q.state == abi.QPSRTR || q.state == abi.QPSSQD || mask&(abi.QPMaskAccessFlags|abi.QPMaskMinRNRTimer|abi.QPMaskPathMigState|abi.QPMaskAltPath|abi.QPMaskCurState) != 0
	}
	return false
}

// query looks at a queue pair.
func (p *program) query() {
	q := pick(p, pick(p, p.pairs).ends[:])
	attr, err := q.qp.Query()
	if err != nil {
		p.say("%s queried: %s", q.name, errText(err))
		return
	}
	p.say("%s queried: %v, access %v, timeout %d, retries %d and %d, READs %d and %d", q.name, attr.State, attr.AccessFlags,
		attr.Timeout, attr.RetryCnt, attr.RNRRetry, attr.MaxRdAtomic, attr.MaxDestRdAtomic)
	if attr.State == abi.QPSRTS {
		p.say("%s sends next %d, expects %d", q.name, (attr.SQPSN-q.psn)&0xffffff, (attr.RQPSN-q.pair.peer(q).psn)&0xffffff)
	}
}
