package rnic

import (
	"fmt"
	"net/netip"
	"syscall"
	"time"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/driver"
	"github.com/rdmashim/rdmashim/rnic/engine"
	"github.com/rdmashim/rdmashim/rnic/guard"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// Modify implements driver.QP. EINVAL for values out of range, EOPNOTSUPP for
// SQE and path migration, and for a destination that the port cannot reach the
// errors of reach; then nothing changes.
func (q *QP) Modify(a *abi.ModifyQP, mask abi.QPAttrMask) error {
	d := q.d
	if mask&abi.QPMaskAV != 0 {
		if peer, err := d.peer(&a.Dest); err == nil {
			if err := d.reach(peer.Addr()); err != nil {
				return fmt.Errorf("rnic: modify queue pair %v: %w", q.num, err)
			}
		}
	}
	near := q.meet(a, mask)
	room := q.privateRoom(a, mask, near != 0)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.check(); err != nil {
		return err
	}
	from := q.engine.State()
	to := from
	if mask&abi.QPMaskState != 0 {
		to = a.QPState
	}
	attr, err := q.attributes(a, mask)
	attr.Room = room
	if err == nil && from == abi.QPSSQD && mask&abi.QPMaskState != 0 && to != abi.QPSErr && !q.engine.Drained() {
		// rxe_qp.c:rxe_qp_chk_attr
		err = fmt.Errorf("the send queue has not drained yet, only ERR may follow: %w", syscall.EINVAL)
	}
	if err == nil && mask&abi.QPMaskAV != 0 {
		err = d.guesses.Refuse(d.now(), attr.Peer)
	}
	if err == nil && to == abi.QPSSQE {
		err = fmt.Errorf("state %v is not supported: %w", to, syscall.EOPNOTSUPP)
	}
	if err != nil {
		return fmt.Errorf("rnic: modify queue pair %v: %w", q.num, err)
	}
	if to == abi.QPSErr || to == abi.QPSReset {
		q.sendOwed() // acknowledgements: after that nothing is sent any more
	}
	peer := q.engine.Attr().Peer
	if err := q.engine.Modify(d.now(), to, &attr, mask); err != nil {
		return fmt.Errorf("rnic: modify: %w", err)
	}
	// A path to the same peer, given while the send queue is drained,
	// leaves the way as it is: the peer still listens there.
	if mask&abi.QPMaskAV != 0 && (to != abi.QPSSQD || attr.Peer != peer) {
		q.source = guard.Source{Port: a.Dest.UDPPort(), Receive: attr.Peer.Port()}
		if near != 0 {
			q.source.Port, q.source.Near = q.source.Receive, d.near.Hears(near)
		}
		q.takeWay(near)
		d.final.forget(q.num, attr.Peer, q.engine.Attr().DestQPN)
		q.left = false
	}
	if to == abi.QPSReset {
		q.reset()
	} else {
		q.remember(a, mask)
	}
	q.draining = to == abi.QPSSQD && (q.draining || mask&abi.QPMaskState != 0 && from != to)
	d.schedule(q)
	d.serveChanged(doorbellBatches)
	return nil
}

// toError moves the queue pair to the error state. Preconditions: d.mu is held.
func (q *QP) toError(now engine.Time) {
	// It is permitted from every state.
	_ = q.engine.Modify(now, abi.QPSErr, &engine.Attr{}, abi.QPMaskState)
	q.d.schedule(q)
}

// reset empties the rings, as the kernel does (rxe_qp.c:rxe_qp_reset).
func (q *QP) reset() {
	q.send.Reset()
	q.recv.Reset()
	q.taken, q.broken, q.failed = 0, false, failedQueues{}
	q.attr = q.initial
	q.source = guard.Source{}
	q.takeWay(0)
}

// attributes checks the fields that concern the port, and translates the rest.
func (q *QP) attributes(a *abi.ModifyQP, mask abi.QPAttrMask) (engine.Attr, error) {
	attr := engine.Attr{
		Access:          a.QPAccessFlags,
		DestQPN:         wire.QPN(a.DestQPNum & (1<<24 - 1)), // QUERY_QP answers the number as given, as rxe does
		PathMTU:         a.PathMTU,
		RQPSN:           wire.PSN(a.RQPSN) & wire.MaxPSN,
		SQPSN:           wire.PSN(a.SQPSN) & wire.MaxPSN,
		MaxDestRdAtomic: a.MaxDestRdAtomic,
		MaxRdAtomic:     a.MaxRdAtomic,
		MinRNRTimer:     wire.RNRTimer(a.MinRNRTimer & 31), // as rxe, which takes 8 bits and sends 5
		Timeout:         wire.AckTimeout(a.Timeout),
		RetryCnt:        a.RetryCnt,
		RNRRetry:        a.RNRRetry,
		QKey:            a.QKey,
	}
	named := func(m abi.QPAttrMask) bool { return mask&m != 0 }
	switch {
	case named(abi.QPMaskAltPath), named(abi.QPMaskPathMigState) && a.PathMigState != abi.MigMigrated:
		return attr, fmt.Errorf("alternate paths are not supported: %w", syscall.EOPNOTSUPP)
	case named(abi.QPMaskPort) && a.PortNum != 1:
		return attr, fmt.Errorf("port %d: the device has port 1 only: %w", a.PortNum, syscall.EINVAL)
	case named(abi.QPMaskPathMTU) && a.PathMTU.Bytes() == 0:
		return attr, fmt.Errorf("path MTU %v: must be one of 256 … 4096: %w", a.PathMTU, syscall.EINVAL)
	case named(abi.QPMaskPathMTU) && a.PathMTU > q.d.mtu:
		return attr, fmt.Errorf("path MTU %v is above the port's active MTU of %v: %w", a.PathMTU, q.d.mtu, syscall.EINVAL)
	case named(abi.QPMaskAV):
		var err error
		attr.Peer, err = q.d.peer(&a.Dest)
		if err == nil && attr.Peer.Addr().IsMulticast() {
			err = fmt.Errorf("destination GID %v is a multicast group, not the address of a queue pair: %w", attr.Peer.Addr(), syscall.EINVAL)
		}
		return attr, err
	}
	return attr, nil
}

// peer is the address that an address vector means. The DGID is the IP address
// of the peer or of a multicast group (IBA A17.4), the dlid, if it is marked, a
// soft device's UDP port (0: 4791).
func (d *Device) peer(v *abi.QPDest) (netip.AddrPort, error) {
	addr, local := netip.AddrFrom16(v.DGID).Unmap(), d.caps.Local.Addr()
	switch {
	case v.PortNum != 1:
		return netip.AddrPort{}, fmt.Errorf("address vector for port %d: the device has port 1 only: %w", v.PortNum, syscall.EINVAL)
	case v.IsGlobal == 0:
		return netip.AddrPort{}, fmt.Errorf("address vector without a GID: RoCE needs is_global: %w", syscall.EINVAL)
	case v.SGIDIndex != 0:
		return netip.AddrPort{}, fmt.Errorf("source GID index %d: the port has index 0 only: %w", v.SGIDIndex, syscall.EINVAL)
	case addr.IsUnspecified():
		return netip.AddrPort{}, fmt.Errorf("destination GID %v is not the address of a queue pair: %w", addr, syscall.EINVAL)
	case addr.Is4() != local.Is4():
		return netip.AddrPort{}, fmt.Errorf("destination GID %v cannot be reached from %v, which is of the other IP version: %w", addr, local, syscall.EINVAL)
	}
	return netip.AddrPortFrom(addr, peerPort(v.UDPPort())), nil
}

// reach asks the system for the way to a destination, as the kernel does for
// each address vector (verbs.c: ib_resolve_eth_dmac): ENETUNREACH, EHOSTUNREACH
// or ENODEV without a route, ETIMEDOUT if the next hop is silent for a second.
// Preconditions: mu is not held.
func (d *Device) reach(peer netip.Addr) error {
	if peer.IsMulticast() {
		return nil
	}
	return d.link.Reach(peer, time.Second) // addr.c: rdma_addr_find_l2_eth_by_grh
}

// initialAttr returns Query's answer before any attribute is set.
func initialAttr(init *driver.QPInit, sendWR, recvWR int) abi.QueryQPResp {
	r := abi.QueryQPResp{
		MaxSendWR: uint32(sendWR), MaxRecvWR: uint32(recvWR),
		MaxSendSGE: init.Cap.MaxSendSGE, MaxRecvSGE: init.Cap.MaxRecvSGE, MaxInlineData: init.Cap.MaxInline,
		PortNum: 1, PathMTU: abi.MTU256, // until it is set (rxe_qp.c:rxe_qp_init_misc)
	}
	if init.SigAll {
		r.SQSigAll = 1
	}
	if init.Cap.MaxRecvWR == 0 {
		r.MaxRecvWR = 0
	}
	return r
}

// remember keeps the attributes that were set, for Query.
func (q *QP) remember(a *abi.ModifyQP, mask abi.QPAttrMask) {
	r := &q.attr
	keep(&r.QPAccessFlags, a.QPAccessFlags, mask&abi.QPMaskAccessFlags)
	keep(&r.PkeyIndex, a.PkeyIndex, mask&abi.QPMaskPkeyIndex)
	keep(&r.PortNum, a.PortNum, mask&abi.QPMaskPort)
	keep(&r.QKey, a.QKey, mask&abi.QPMaskQKey)
	keep(&r.Dest, destination(a.Dest), mask&abi.QPMaskAV)
	keep(&r.PathMTU, a.PathMTU, mask&abi.QPMaskPathMTU)
	keep(&r.Timeout, a.Timeout, mask&abi.QPMaskTimeout)
	keep(&r.RetryCnt, a.RetryCnt, mask&abi.QPMaskRetryCnt)
	keep(&r.RNRRetry, a.RNRRetry, mask&abi.QPMaskRNRRetry)
	keep(&r.MaxRdAtomic, a.MaxRdAtomic, mask&abi.QPMaskMaxQPRdAtomic)
	keep(&r.MinRNRTimer, a.MinRNRTimer, mask&abi.QPMaskMinRNRTimer)
	keep(&r.MaxDestRdAtomic, a.MaxDestRdAtomic, mask&abi.QPMaskMaxDestRdAtomic)
	keep(&r.DestQPNum, a.DestQPNum, mask&abi.QPMaskDestQPN)
}

// destination is an address vector as it is kept: global, which RoCE always is,
// with the TTL that packets have, which is the socket's, and without a service
// level.
func destination(v abi.QPDest) abi.QPDest {
	v.IsGlobal, v.HopLimit, v.SL = 1, hopLimit, 0
	return v
}

// hopLimit is the hop limit of a socket's packets by default.
const hopLimit = 64

func keep[T any](dst *T, v T, named abi.QPAttrMask) {
	if named != 0 {
		*dst = v
	}
}

// Query implements driver.QP. The PSNs are the next ones, as with rxe.
func (q *QP) Query() (abi.QueryQPResp, error) {
	q.d.mu.Lock()
	defer q.d.mu.Unlock()
	r, now := q.attr, q.engine.Attr()
	r.QPState = q.engine.State()
	r.CurQPState = r.QPState
	if q.draining && r.QPState == abi.QPSSQD {
		r.SQDraining = 1
	}
	r.RQPSN, r.SQPSN = uint32(now.RQPSN), uint32(now.SQPSN)
	return r, nil
}
