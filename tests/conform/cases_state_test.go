//go:build linux || darwin

package conform

import (
	"fmt"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/verbs"
	"github.com/rdmashim/rdmashim/tests/must"
)

// reach takes a's queue pair to a state, with b's in RTS where a has a peer.
func (r *rig) reach(s abi.QPState) (a, b *end) {
	a, b = r.ends()
	switch s {
	case abi.QPSReset:
	case abi.QPSInit:
		a.toInit()
	case abi.QPSRTR:
		b.toRTR(a)
		b.toRTS()
		a.toRTR(b)
	default:
		r.connect(a, b)
		switch s {
		case abi.QPSRTS:
		case abi.QPSSQD:
			a.drain()
		default:
			a.to(s)
		}
	}
	return a, b
}

// stateTests are the transitions of IBA 10.3.1, each from every state to every
// one, and what each needs.
var stateTests = slices.Concat(transitionTests(), attributeTests(), []test{
	onPair("state/nothing", func(r *rig, a, _ *end) {
		r.result("no attribute at all", a.qp.Modify(&verbs.QPAttr{}, 0))
		r.result("an unknown one", a.qp.Modify(&verbs.QPAttr{State: abi.QPSRTS}, abi.QPMaskState|1<<30))
		r.result("the first unknown one", a.qp.Modify(&verbs.QPAttr{State: abi.QPSRTS}, abi.QPMaskState|1<<21))
		a.sayState()
	}),
	onPair("state/unknown-state", func(r *rig, a, _ *end) {
		for _, s := range []abi.QPState{7, 8, 255} {
			r.say("to %d: %s", s, errText(a.qp.Modify(&verbs.QPAttr{State: s}, abi.QPMaskState)))
		}
		a.sayState()
	}),
	onPair("state/current-state", func(r *rig, a, _ *end) {
		for _, c := range []abi.QPState{abi.QPSReset, abi.QPSInit, abi.QPSRTR, abi.QPSRTS, abi.QPSSQD, abi.QPSErr} {
			attr := verbs.QPAttr{State: abi.QPSRTS, CurState: c}
			r.say("in RTS, said to be in %v, to RTS: %s", c, errText(a.qp.Modify(&attr, abi.QPMaskState|abi.QPMaskCurState)))
		}
		a.sayState()
	}),
	onPair("state/without-state", func(r *rig, a, _ *end) {
		attr := verbs.QPAttr{MinRNRTimer: 7}
		r.result("MIN_RNR_TIMER alone in RTS", a.qp.Modify(&attr, abi.QPMaskMinRNRTimer))
		attr = must.Get(a.qp.Query())(r)
		r.say("min_rnr_timer %d", attr.MinRNRTimer)
		attr = verbs.QPAttr{AccessFlags: abi.AccessRemoteRead}
		r.result("ACCESS_FLAGS alone in RTS", a.qp.Modify(&attr, abi.QPMaskAccessFlags))
		attr = verbs.QPAttr{Timeout: 5}
		r.result("TIMEOUT alone in RTS", a.qp.Modify(&attr, abi.QPMaskTimeout))
	}),
	onEnds("state/failed-move-changes-nothing", func(r *rig, a, b *end) {
		a.toInit()
		attr := a.attrRTR(b)
		attr.PathMTU, attr.MinRNRTimer = 9, 3
		r.result("to RTR with a bad MTU", a.qp.Modify(&attr, maskRTR))
		a.sayState()
		q := must.Get(a.qp.Query())(r)
		r.say("min_rnr_timer %d, destination known: %t", q.MinRNRTimer, q.DestQPNum != 0)
	}),
	onPair("state/query", func(r *rig, a, b *end) {
		q, err := a.qp.Query()
		r.result("Query", err)
		r.say("state %v, path_mtu %v, port %d, pkey_index %d", q.State, q.PathMTU, q.PortNum, q.PkeyIndex)
		r.say("rq_psn %#x, sq_psn %#x, destination right: %t", q.RQPSN, q.SQPSN, q.DestQPNum == b.qp.Num())
		r.say("access %v, max_rd_atomic %d, max_dest_rd_atomic %d", q.AccessFlags, q.MaxRdAtomic, q.MaxDestRdAtomic)
		r.say("min_rnr_timer %d, timeout %d, retry_cnt %d, rnr_retry %d", q.MinRNRTimer, q.Timeout, q.RetryCnt, q.RNRRetry)
		_, addr := b.gid()
		r.say("path: to the peer's GID: %t, hop limit %d, global %d, port %d, sl %d", q.AV.DGID == addr.As16(), q.AV.HopLimit, q.AV.IsGlobal, q.AV.PortNum, q.AV.SL)
		r.say("draining %d, migration %v", q.SQDraining, q.PathMigState)
	}),
	onEnds("state/query-in-reset", func(r *rig, a, _ *end) {
		q, err := a.qp.Query()
		r.result("Query", err)
		r.say("state %v, rq_psn %d, sq_psn %d, destination %d, timeout %d", q.State, q.RQPSN, q.SQPSN, q.DestQPNum, q.Timeout)
	}),
	{"state/query-moves-on", func(r *rig) {
		a, b := r.pair(func(c *config) { c.psn = 0xfffffe })
		for range 3 {
			a.complete(a.rdma(abi.WRRDMAWrite, 0, 8, b, 0))
		}
		qa := must.Get(a.qp.Query())(r)
		qb := must.Get(b.qp.Query())(r)
		r.say("a sends next %#x, b expects %#x", qa.SQPSN, qb.RQPSN)
	}},
	onEnds("state/init-again", func(r *rig, a, b *end) {
		a.toInit()
		attr := a.attrInit()
		attr.AccessFlags = abi.AccessRemoteRead
		r.result("INIT to INIT", a.qp.Modify(&attr, maskInit))
		q := must.Get(a.qp.Query())(r)
		r.say("access %v", q.AccessFlags)
		r.connect(a, b)
		b.complete(b.rdma(abi.WRRDMAWrite, 0, 8, a, 0))
	}),
	onPair("state/access-in-rts", func(r *rig, a, b *end) {
		attr := verbs.QPAttr{State: abi.QPSRTS, AccessFlags: abi.AccessRemoteRead}
		r.result("RTS to RTS", b.qp.Modify(&attr, abi.QPMaskState|abi.QPMaskAccessFlags))
		a.complete(a.rdma(abi.WRRDMARead, 0, 8, b, 0))
		a.complete(a.rdma(abi.WRRDMAWrite, 0, 8, b, 0))
	}),
	onPair("state/reset-and-again", func(r *rig, a, b *end) {
		for i := range 3 {
			fill(a.buf[:256], byte(i))
			b.recv(0, 256)
			a.send(256, b)
			r.saySame("target", a.buf[:256], b.buf[:256])
			a.to(abi.QPSReset)
			b.to(abi.QPSReset)
			r.connect(a, b)
		}
	}),
	onPair("state/reset-forgets", func(r *rig, a, b *end) {
		a.offer(5, 64)
		a.to(abi.QPSReset)
		a.sayState()
		a.sayNoMore()
		b.to(abi.QPSReset)
		r.connect(a, b)
		a.recv(64, 64)
		b.complete(b.wr(abi.WRSend, 0, 8))
		a.recvs(1) // the new one, not one of the five
	}),
	onPair("state/reset-drops-completions", func(r *rig, a, b *end) {
		a.post(a.rdma(abi.WRRDMAWrite, 0, 8, b, 0))
		b.complete(b.rdma(abi.WRRDMAWrite, 0, 8, a, 0))
		a.to(abi.QPSReset)
		b.to(abi.QPSReset)
		r.connect(a, b)
		a.complete(a.rdma(abi.WRRDMAWrite, 0, 9, b, 0))
	}),
	onPair("state/error-and-again", func(r *rig, a, b *end) {
		a.complete(strangeKey(a.rdma(abi.WRRDMAWrite, 0, 8, b, 0)))
		b.sayStateOnce(abi.QPSErr)
		a.to(abi.QPSReset)
		b.to(abi.QPSReset)
		r.connect(a, b)
		a.complete(a.rdma(abi.WRRDMAWrite, 0, 8, b, 0))
	}),
	onEnds("state/rtr-receives", func(r *rig, a, b *end) {
		b.toRTR(a)
		b.recv(0, 64)
		a.toRTR(b)
		a.toRTS()
		a.complete(a.wr(abi.WRSend, 0, 8), a.rdma(abi.WRRDMARead, 0, 8, b, 0))
		b.recvs(1)
		b.sayState()
	}),
	{"state/peer-in-init", func(r *rig) {
		a, b := r.ends(func(c *config) { c.timeout, c.retry = 12, 1 })
		b.toInit()
		a.toRTR(b)
		a.toRTS()
		a.complete(a.rdma(abi.WRRDMAWrite, 0, 8, b, 0))
		b.sayState()
	}},
	{"state/peer-in-reset", func(r *rig) {
		a, b := r.ends(func(c *config) { c.timeout, c.retry = 12, 1 })
		a.toRTR(b)
		a.toRTS()
		a.complete(a.rdma(abi.WRRDMAWrite, 0, 8, b, 0))
		a.sayState()
	}},
	onPair("state/drain-holds-back", func(r *rig, a, b *end) {
		a.drain()
		a.sayState()
		a.sayPost("write", a.rdma(abi.WRRDMAWrite, 0, 8, b, 0))
		b.post(b.rdma(abi.WRRDMAWrite, 0, 8, a, 100)) // a still answers
		b.sends(1)
		pause()
		a.sayNoMore()
		r.result("SQD to RTS", a.qp.Modify(&verbs.QPAttr{State: abi.QPSRTS}, abi.QPMaskState))
		a.sends(1)
	}),
	onPair("state/drain-finishes-what-it-began", func(r *rig, a, b *end) {
		b.recv(0, 64)
		a.complete(a.wr(abi.WRSend, 0, 8), a.rdma(abi.WRRDMAWrite, 0, 8, b, 0))
		attr := verbs.QPAttr{State: abi.QPSSQD, EnSQDAsyncNotify: 1}
		r.result("RTS to SQD", a.qp.Modify(&attr, abi.QPMaskState|abi.QPMaskEnSQDAsyncNotify))
		a.drained()
		a.sayState()
		a.sayNoMore()
	}),
	{"state/drain-not-finished", func(r *rig) {
		a, b := r.pair(func(c *config) { c.timeout = 21 }) // the peer is waited for for a long time
		r.must(b.qp.Destroy())
		before := must.Get(a.qp.Query())(r)
		a.post(a.rdma(abi.WRRDMAWrite, 0, 8, b, 0))
		require.True(r, eventually(func() bool { // what was not begun would wait for RTS
			now, err := a.qp.Query()
			return err != nil || now.SQPSN != before.SQPSN
		}))
		a.to(abi.QPSSQD)
		a.post(a.rdma(abi.WRRDMAWrite, 0, 8, b, 0))
		q := must.Get(a.qp.Query())(r)
		r.say("state %v, draining %d", q.State, q.SQDraining)
		for _, s := range []abi.QPState{abi.QPSRTS, abi.QPSSQD, abi.QPSReset} {
			r.say("to %v: %s", s, errText(a.qp.Modify(&verbs.QPAttr{State: s}, abi.QPMaskState)))
		}
		r.result("to ERR", a.qp.Modify(&verbs.QPAttr{State: abi.QPSErr}, abi.QPMaskState))
		a.sends(2)
	}},
	onPair("state/drain-then-error", func(r *rig, a, b *end) {
		a.drain()
		a.post(a.rdma(abi.WRRDMAWrite, 0, 8, b, 0), a.rdma(abi.WRRDMAWrite, 0, 8, b, 0))
		a.recv(0, 64)
		a.to(abi.QPSErr)
		a.sends(2)
		a.recvs(1)
	}),
	onPair("state/drain-changes-attributes", func(r *rig, a, b *end) {
		a.drain()
		attr := verbs.QPAttr{State: abi.QPSSQD, Timeout: 19, RetryCnt: 5, RNRRetry: 4, MaxRdAtomic: 2, AV: a.path(b)}
		mask := abi.QPMaskState | abi.QPMaskTimeout | abi.QPMaskRetryCnt | abi.QPMaskRNRRetry | abi.QPMaskMaxQPRdAtomic | abi.QPMaskAV
		r.result("SQD to SQD", a.qp.Modify(&attr, mask))
		q := must.Get(a.qp.Query())(r)
		r.say("timeout %d, retry_cnt %d, rnr_retry %d, max_rd_atomic %d", q.Timeout, q.RetryCnt, q.RNRRetry, q.MaxRdAtomic)
		a.drained() // again, since Linux 6.12: rxe_qp.c:rxe_qp_sqd
		r.result("SQD to RTS", a.qp.Modify(&verbs.QPAttr{State: abi.QPSRTS}, abi.QPMaskState))
		a.complete(a.rdma(abi.WRRDMAWrite, 0, 8, b, 0))
	}),
})

// attributeTests: what each step to RTS does not go without, and what a
// transition takes as well.
func attributeTests() (tests []test) {
	for _, t := range []struct {
		name     string
		from, to abi.QPState
		needs    bool
	}{
		{"init-needs", abi.QPSReset, abi.QPSInit, true},
		{"rtr-needs", abi.QPSInit, abi.QPSRTR, true},
		{"rts-needs", abi.QPSRTR, abi.QPSRTS, true},
		{"init-takes", abi.QPSReset, abi.QPSInit, false},
		{"rtr-takes", abi.QPSInit, abi.QPSRTR, false},
		{"rts-takes", abi.QPSRTR, abi.QPSRTS, false},
		{"reset-takes", abi.QPSReset, abi.QPSReset, false},
		{"error-takes", abi.QPSRTS, abi.QPSErr, false},
		{"drain-takes", abi.QPSRTS, abi.QPSSQD, false},
		{"rts-again-takes", abi.QPSRTS, abi.QPSRTS, false},
	} {
		tests = append(tests, test{"state/" + t.name, func(r *rig) {
			a, b := r.reach(t.from)
			attr, mask := a.full(b, t.to)
			switch {
			case t.needs:
				r.missing(a, attr, mask)
			case t.from == abi.QPSRTS:
				r.superfluous(a, b, t.to, abi.QPMaskState)
			default:
				r.superfluous(a, b, t.to, mask)
			}
		}})
	}
	return tests
}

// transitionTests: with all attributes that any transition takes, and then with
// none but the state.
func transitionTests() []test {
	from := []abi.QPState{abi.QPSReset, abi.QPSInit, abi.QPSRTR, abi.QPSRTS, abi.QPSSQD, abi.QPSErr}
	to := []abi.QPState{abi.QPSReset, abi.QPSInit, abi.QPSRTR, abi.QPSRTS, abi.QPSSQD, abi.QPSSQE, abi.QPSErr}
	var tests []test
	for _, f := range from {
		for _, t := range to {
			tests = append(tests, test{fmt.Sprintf("transition/%v-to-%v", f, t), func(r *rig) {
				a, b := r.reach(f)
				attr, mask := a.full(b, t)
				r.result("with what it needs", a.qp.Modify(&attr, mask))
				a.sayState()
				if mask == abi.QPMaskState {
					return
				}
				a, _ = r.reach(f)
				r.result("with the state alone", a.qp.Modify(&verbs.QPAttr{State: t}, abi.QPMaskState))
				a.sayState()
			}})
		}
	}
	return tests
}

// full are the attributes that the usual way to a state needs.
func (e *end) full(peer *end, to abi.QPState) (verbs.QPAttr, abi.QPAttrMask) {
	switch to {
	case abi.QPSInit:
		return e.attrInit(), maskInit
	case abi.QPSRTR:
		return e.attrRTR(peer), maskRTR
	case abi.QPSRTS:
		return e.attrRTS(), maskRTS
	}
	return verbs.QPAttr{State: to}, abi.QPMaskState
}

// missing leaves out one attribute after the other of a transition.
func (r *rig) missing(e *end, attr verbs.QPAttr, mask abi.QPAttrMask) {
	for bit := abi.QPAttrMask(2); bit != 0 && bit <= abi.QPMaskDestQPN; bit <<= 1 {
		if mask&bit != 0 {
			r.say("to %v without %v: %s", attr.State, bit, errText(e.qp.Modify(&attr, mask&^bit)))
		}
	}
	e.sayState()
	r.result("with all", e.qp.Modify(&attr, mask))
}

// superfluous adds one attribute after the other to those that a transition
// needs. Each starts at the same state.
func (r *rig) superfluous(e, peer *end, to abi.QPState, mask abi.QPAttrMask) {
	from := e.qp.State()
	all, rtr, init := e.attrRTS(), e.attrRTR(peer), e.attrInit()
	all.PathMTU, all.DestQPNum, all.RQPSN = rtr.PathMTU, rtr.DestQPNum, rtr.RQPSN
	all.MaxDestRdAtomic, all.MinRNRTimer, all.AV = rtr.MaxDestRdAtomic, rtr.MinRNRTimer, rtr.AV
	all.PortNum, all.AccessFlags = init.PortNum, init.AccessFlags
	all.State, all.AltAV, all.AltPortNum = to, all.AV, 1
	for bit := abi.QPAttrMask(4); bit <= abi.QPMaskDestQPN; bit <<= 1 {
		if mask&bit != 0 {
			continue
		}
		if r.result(fmt.Sprintf("to %v with %v as well", to, bit), e.qp.Modify(&all, mask|bit)) {
			e.drained()
			e.to(abi.QPSReset)
			e.again(peer, from)
		}
	}
}

// again takes a queue pair from RESET to where it was.
func (e *end) again(peer *end, s abi.QPState) {
	if s == abi.QPSReset {
		return
	}
	e.toInit()
	if s == abi.QPSInit {
		return
	}
	e.toRTR(peer)
	if s != abi.QPSRTR {
		e.toRTS()
	}
}
