package engine

import (
	"fmt"
	"net/netip"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// Attr are a queue pair's attributes: the part of struct ib_qp_attr that
// concerns the protocol. The mask of Modify says which count.
type Attr struct {
	Access          abi.AccessFlags // ACCESS_FLAGS: operations that the peer may request
	Peer            netip.AddrPort  // AV: where packets go and must come from
	DestQPN         wire.QPN        // DEST_QPN
	PathMTU         abi.MTU         // PATH_MTU
	RQPSN           wire.PSN        // RQ_PSN: the first PSN expected
	SQPSN           wire.PSN        // SQ_PSN: the first PSN sent
	MaxDestRdAtomic uint8           // MAX_DEST_RD_ATOMIC: READs and atomics the peer may have outstanding, 0 … 128
	MaxRdAtomic     uint8           // MAX_QP_RD_ATOMIC: READs and atomics outstanding at the peer, 0 … 128
	MinRNRTimer     wire.RNRTimer   // MIN_RNR_TIMER: wait that an RNR NAK asks for, 0 … 31
	Timeout         wire.AckTimeout // TIMEOUT: local ACK timeout, 0 … 31; 0 is for ever
	RetryCnt        uint8           // RETRY_CNT: 0 … 7
	RNRRetry        uint8           // RNR_RETRY: 0 … 7; 7 is for ever
	QKey            uint32          // QKEY: of datagrams only

	// Room, with PATH_MTU, is how many bytes of UDP payload the path carries
	// between soft devices in one packet, for a private MTU; 0: PathMTU counts
	// with all peers.
	Room int
}

// Modify sets the attributes that mask names and moves to the state to, which
// may be the present one. Transitions are RESET→INIT→RTR→RTS, RTS→SQD→RTS, any
// state to ERR and to RESET (IBA 10.3.1); others, and values out of range, are
// EINVAL and change nothing. Which attributes a transition requires and permits
// is the caller's check. Next: Completions after a move to ERR, Drained after
// one to SQD, Transmit after one back to RTS.
func (q *QP) Modify(now Time, to abi.QPState, attr *Attr, mask abi.QPAttrMask) error {
	a := q.attr
	a.set(attr, mask)
	if err := q.checkTransition(to); err != nil {
		return err
	}
	if err := a.check(to); err != nil {
		return fmt.Errorf("queue pair %v: %w", q.cfg.QPN, err)
	}
	if err := q.checkResize(mask); err != nil && to != abi.QPSReset {
		return err
	}
	if to == abi.QPSReset {
		q.flow.Leave()
		q.reset()
		return nil
	}
	q.attr, q.peer = a, a.Peer.Addr().WithZone("")
	switch from := q.state; {
	case to == abi.QPSErr:
		q.rsp.nak.pending, q.rsp.nak.fatal = false, false
		q.ackSent() // or never
		q.forgetReplays()
		q.enterError()
	case from == abi.QPSInit && to == abi.QPSRTR:
		q.mtu = a.PathMTU.Bytes()
		q.largest = q.mtu
		if q.cfg.Stash != nil && q.service == wire.ServiceRC {
			q.extension = newExtension(q, a.Room)
		}
		q.flow.Most = min(q.cfg.Tuning.LongWindow, int(reach(q.mtu))*(q.mtu+packetCost))
		q.rsp.next = firstSeq(a.RQPSN)
		q.rsp.replay.reset(int(a.MaxDestRdAtomic))
	case from == abi.QPSRTR && to == abi.QPSRTS:
		first := firstSeq(a.SQPSN)
		r := &q.req
		r.una, r.nxt, r.sent, r.post = first, first, first, first
		r.rnrLeft = a.RNRRetry
		r.asked.reset(int(a.MaxRdAtomic))
		r.win.reset(&q.cfg.Tuning, q.mtu)
	case from == abi.QPSRTS && to == abi.QPSSQD:
		q.startDraining()
	case from == abi.QPSSQD && to == abi.QPSSQD:
		q.resize(mask)
	}
	q.state = to
	if to == abi.QPSRTR || q.sends() {
		q.attach()
	}
	q.account()
	return nil
}

func (q *QP) checkTransition(to abi.QPState) error {
	if !mayFollow(q.state, to) {
		return fmt.Errorf("queue pair %v: cannot go from %v to %v: %w", q.cfg.QPN, q.state, to, syscall.EINVAL)
	}
	return nil
}

// mayFollow reports whether the transition exists (IBA 10.3.1).
func mayFollow(from, to abi.QPState) bool {
	sends := from == abi.QPSRTS || from == abi.QPSSQD
	switch to {
	case abi.QPSReset, abi.QPSErr:
		return true
	case abi.QPSInit:
		return from == abi.QPSReset || from == abi.QPSInit
	case abi.QPSRTR:
		return from == abi.QPSInit
	case abi.QPSRTS:
		return from == abi.QPSRTR || sends
	case abi.QPSSQD:
		return sends
	}
	return false
}

// reset makes the queue pair as new. Posted requests are forgotten without
// completions (IBA 10.3.1.1).
func (q *QP) reset() {
	q.state = abi.QPSReset
	q.attr, q.peer = Attr{}, netip.Addr{}
	q.mtu, q.largest = 0, 0
	q.sq.reset()
	q.comps.list, q.comps.head = q.comps.list[:0], 0
	q.fail = failure{}
	q.events = events{}
	if x := q.extension; x != nil {
		x.reset()
		q.extension = nil
	}
	q.flow.UnstampAll()
	q.notice = notification{}
	q.req = requester{asked: q.req.asked}
	q.rsp = responder{recv: q.rsp.recv, replay: q.rsp.replay}
	q.req.asked.reset(0)
	q.rsp.replay.reset(0)
}

// set takes over the attributes that mask names.
func (a *Attr) set(b *Attr, mask abi.QPAttrMask) {
	take(&a.Access, b.Access, mask&abi.QPMaskAccessFlags)
	take(&a.DestQPN, b.DestQPN, mask&abi.QPMaskDestQPN)
	take(&a.PathMTU, b.PathMTU, mask&abi.QPMaskPathMTU)
	take(&a.Room, b.Room, mask&abi.QPMaskPathMTU)
	take(&a.RQPSN, b.RQPSN&wire.MaxPSN, mask&abi.QPMaskRQPSN)
	take(&a.SQPSN, b.SQPSN&wire.MaxPSN, mask&abi.QPMaskSQPSN)
	take(&a.MaxDestRdAtomic, b.MaxDestRdAtomic, mask&abi.QPMaskMaxDestRdAtomic)
	take(&a.MaxRdAtomic, b.MaxRdAtomic, mask&abi.QPMaskMaxQPRdAtomic)
	take(&a.MinRNRTimer, b.MinRNRTimer, mask&abi.QPMaskMinRNRTimer)
	take(&a.Timeout, b.Timeout, mask&abi.QPMaskTimeout)
	take(&a.RetryCnt, b.RetryCnt, mask&abi.QPMaskRetryCnt)
	take(&a.RNRRetry, b.RNRRetry, mask&abi.QPMaskRNRRetry)
	take(&a.Peer, netip.AddrPortFrom(b.Peer.Addr().Unmap(), b.Peer.Port()), mask&abi.QPMaskAV)
}

func take[T any](dst *T, v T, named abi.QPAttrMask) {
	if named != 0 {
		*dst = v
	}
}

// check looks at the attributes' ranges, and at those that a state needs.
func (a *Attr) check(to abi.QPState) error {
	ready := to == abi.QPSRTR || to == abi.QPSRTS || to == abi.QPSSQD
	switch {
	case ready && a.PathMTU.Bytes() == 0:
		return fmt.Errorf("path MTU %v is not one of 256 … 4096: %w", a.PathMTU, syscall.EINVAL)
	case ready && !a.Peer.Addr().IsValid():
		return fmt.Errorf("no address of the peer: %w", syscall.EINVAL)
	case !a.DestQPN.Valid():
		return fmt.Errorf("destination %v is wider than 24 bits: %w", a.DestQPN, syscall.EINVAL)
	case a.MaxRdAtomic > MaxRdAtomic || a.MaxDestRdAtomic > MaxRdAtomic:
		return fmt.Errorf("%d and %d outstanding READs and atomics, at most %d: %w",
			a.MaxRdAtomic, a.MaxDestRdAtomic, MaxRdAtomic, syscall.EINVAL)
	case a.MinRNRTimer > 31 || a.Timeout > 31:
		return fmt.Errorf("min_rnr_timer %d, timeout %d, at most 31: %w", a.MinRNRTimer, a.Timeout, syscall.EINVAL)
	case a.RetryCnt > 7 || a.RNRRetry > 7:
		return fmt.Errorf("retry_cnt %d, rnr_retry %d, at most 7: %w", a.RetryCnt, a.RNRRetry, syscall.EINVAL)
	}
	return nil
}

// In SQD the requests that were begun are finished and the others wait; the
// responder goes on as in RTS (IBA 10.3.1.5).

// sends reports whether the requester is at work: in RTS, or draining.
func (q *QP) sends() bool { return q.state == abi.QPSRTS || q.state == abi.QPSSQD }

// Drained reports whether the send queue has drained: in SQD, and everything
// that was begun before has completed (IBA 11.6.3.1, "send queue drained").
func (q *QP) Drained() bool { return q.state == abi.QPSSQD && q.sq.head >= q.req.hold }

// startDraining notes where the requests begin that were not begun.
func (q *QP) startDraining() {
	r := &q.req
	r.hold = q.sq.head
	for r.hold < q.sq.tail && q.sq.at(r.hold).first < r.sent {
		r.hold++
	}
}

// checkResize refuses to change the number of outstanding READs and atomics
// while some are: only a drained queue's can be changed.
func (q *QP) checkResize(mask abi.QPAttrMask) error {
	if q.state == abi.QPSSQD && mask&abi.QPMaskMaxQPRdAtomic != 0 && !q.req.asked.empty() {
		return fmt.Errorf("queue pair %v: max_rd_atomic while READs or atomics are outstanding: wait until the send queue has drained: %w",
			q.cfg.QPN, syscall.EINVAL)
	}
	return nil
}

// resize applies the changes of resources for READs and atomics that SQD
// allows.
func (q *QP) resize(mask abi.QPAttrMask) {
	if mask&abi.QPMaskMaxQPRdAtomic != 0 {
		q.req.asked.reset(int(q.attr.MaxRdAtomic))
	}
	if mask&abi.QPMaskMaxDestRdAtomic != 0 {
		q.rsp.replay.resize(int(q.attr.MaxDestRdAtomic))
		if x := q.extension; x != nil {
			x.repeats.clear()
		}
	}
}

// resize changes how many requests are remembered; the newest stay.
func (u *replayQueue) resize(limit int) {
	var kept []replay
	for i := max(0, u.n-limit); i < u.n; i++ {
		kept = append(kept, *u.at(i))
	}
	u.reset(limit)
	for _, r := range kept {
		u.add(r)
		if !r.pending() {
			u.left--
		}
	}
}
