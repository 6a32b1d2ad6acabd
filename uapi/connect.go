package uapi

import (
	"net/netip"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/verbs"
	"github.com/rdmashim/rdmashim/uapi/internal/errs"
)

// LocalEndpoint returns the endpoint that the peer's ConnectQP needs to connect
// to a queue pair. It also moves the queue pair from RESET to INIT, so that
// receives may be posted before it is connected.
func (d *Device) LocalEndpoint(qp QP) (Endpoint, error) {
	q, err := d.pair(qp)
	if err == nil {
		q.modify.Lock()
		defer q.modify.Unlock()
		err = q.init()
	}
	if err != nil {
		return Endpoint{}, opError("LocalEndpoint", qpName(qp), err)
	}
	return q.endpoint(), nil
}

func (q *queuePair) endpoint() Endpoint {
	return Endpoint{
		Addr:        q.device.chosen.addr,
		QPN:         uint32(q.num),
		PSN:         q.psn,
		MTU:         q.config.MTU,
		MaxRdAtomic: q.config.MaxRdAtomic,
	}
}

// ConnectQP connects a queue pair to the peer's, whose LocalEndpoint remote is:
// INIT, RTR and RTS in one. The peer does the same with this side's endpoint,
// before or after. A request that is sent before the peer has connected is
// repeated, for as long as QPConfig.Retry allows (1.9 s by default), and of
// TypeUC lost: let both connect before the first request, as ConnectOver does.
// A queue pair may be connected to itself and to others of the same device, all
// of its own type.
//
// Both sides use the smaller MTU, and no more READs and atomics at a time than
// the other one answers.
//
// Errors:
//   - EINVAL: the endpoint is not valid, or the queue pair is of datagrams
//   - EISCONN: it is connected already
//   - EAFNOSUPPORT: one side's address is IPv4 and the other's IPv6
//   - ENETUNREACH: this device is on a loopback address and the peer is not
//   - EMSGSIZE: the route to the peer does not carry packets of the MTU that
//     both sides offer
//   - EADDRNOTAVAIL: this device is the kernel's, which knows one UDP port, and
//     the peer is on another
//   - EAGAIN: the peer's address has guessed remote keys of late
//     (docs/limits.md, Security)
func (d *Device) ConnectQP(qp QP, remote Endpoint) error {
	q, err := d.pair(qp)
	if err == nil {
		err = q.connect(remote)
	}
	return opError("ConnectQP", qpName(qp), err)
}

func (q *queuePair) connect(remote Endpoint) error {
	q.modify.Lock()
	defer q.modify.Unlock()
	if err := q.noConnection(); err != nil {
		return err
	}
	if err := remote.Validate(); err != nil {
		return err
	}
	remote.Addr = netip.AddrPortFrom(remote.Addr.Addr().Unmap(), remote.Addr.Port())
	if err := q.device.reaches(remote.Addr.Addr(), remote.Addr.Port()); err != nil {
		return err
	}
	if err := q.fitsRoute(remote, min(q.config.MTU, remote.MTU)); err != nil {
		return err
	}
	if !q.remote.IsZero() {
		return errs.Explain(syscall.EISCONN, "it is connected to %v; a queue pair is connected once", q.remote)
	}
	if err := q.init(); err != nil {
		return err
	}
	if err := q.readyToReceive(remote); err != nil {
		return err
	}
	q.remote = remote
	if err := q.readyToSend(remote); err != nil {
		return err
	}
	q.connected.Store(true)
	return nil
}

// reachable refuses an endpoint whose requests would end in WCRetryExcErr.
func reachable(local, remote netip.Addr) error {
	switch {
	case local.Is4() != remote.Is4():
		return errs.Explain(syscall.EAFNOSUPPORT, "this device is at %v and the peer at %v: one is IPv4, the other IPv6", local, remote)
	case local.IsLoopback() && !remote.IsLoopback():
		return errs.Explain(syscall.ENETUNREACH, "this device is at %v, which reaches this machine only, and the peer at %v; open soft:ADDRESS with an address of the interface to the peer", local, remote)
	}
	return nil
}

// fitsRoute refuses a path MTU that is too large for the route to the peer: the
// interface's MTU, by which the port's was chosen, may be larger. Both sides
// must use the same path MTU, so this one cannot choose a smaller one alone.
func (q *queuePair) fitsRoute(remote Endpoint, mtu int) error {
	switch most := q.device.where.Carries(remote.Addr.Addr()); {
	case most >= mtu:
		return nil
	case most == 0:
		return q.noWay(remote)
	default:
		return errs.Explain(syscall.EMSGSIZE, "the route to %v carries packets for a path MTU of %d at most, and %d would be used; open one of the devices with mtu=%d, set MTU in its QPConfig, or connect with ConnectOver, which agrees on one",
			remote.Addr.Addr(), most, mtu, most)
	}
}

func (q *queuePair) noWay(remote Endpoint) error {
	return errs.Explain(syscall.EMSGSIZE, "the route to %v does not even carry packets for the smallest path MTU, 256", remote.Addr.Addr())
}

// routeMTU is the largest path MTU that both sides offer and the route to the
// peer carries.
func (d *Device) routeMTU(qp QP, remote Endpoint) (int, error) {
	q, err := d.pair(qp)
	if err == nil {
		if mtu := min(q.config.MTU, remote.MTU, d.where.Carries(remote.Addr.Addr())); mtu > 0 {
			return mtu, nil
		}
		err = q.noWay(remote)
	}
	return 0, opError("ConnectOver", qpName(qp), err)
}

// init moves the queue pair from RESET to INIT. Preconditions: modify is held.
func (q *queuePair) init() error {
	if q.inited.Load() {
		return nil
	}
	err := q.move(verbs.QPAttr{
		State:       abi.QPSInit,
		PortNum:     uint8(q.device.chosen.port),
		AccessFlags: abi.AccessFlags(q.config.Access),
	}, abi.QPMaskPkeyIndex|abi.QPMaskPort|abi.QPMaskAccessFlags)
	if err == nil {
		q.inited.Store(true)
	}
	return err
}

// ofReliable are the attributes that only reliable connections have.
const ofReliable = abi.QPMaskMaxDestRdAtomic | abi.QPMaskMinRNRTimer | abi.QPMaskTimeout | abi.QPMaskRetryCnt | abi.QPMaskRNRRetry |
	abi.QPMaskMaxQPRdAtomic

// move moves the queue pair to attr's state. mask names attr's other fields
// that count.
func (q *queuePair) move(attr verbs.QPAttr, mask abi.QPAttrMask) error {
	if q.config.Type == TypeUC {
		mask &^= ofReliable
	}
	return q.device.ended(q.verbs.Modify(&attr, abi.QPMaskState|mask), &q.dead, "the queue pair")
}

// readyToReceive moves the queue pair from INIT to RTR.
func (q *queuePair) readyToReceive(remote Endpoint) error {
	chosen := &q.device.chosen
	attr := verbs.QPAttr{
		State:           abi.QPSRTR,
		PathMTU:         abi.FitMTU(min(q.config.MTU, remote.MTU)),
		DestQPNum:       remote.QPN,
		RQPSN:           remote.PSN,
		MaxDestRdAtomic: uint8(q.config.MaxRdAtomic),
		MinRNRTimer:     timeCode(q.config.MinRNRTimer, rnrTime),
		AV: abi.QPDest{
			DGID:      remote.Addr.Addr().As16(),
			SGIDIndex: uint8(chosen.gid.Index),
			HopLimit:  64,
			IsGlobal:  1,
			PortNum:   uint8(chosen.port),
		},
	}
	if port := remote.Addr.Port(); port != RoCEPort {
		attr.AV.SetUDPPort(port)
	}
	return q.move(attr, abi.QPMaskAV|abi.QPMaskPathMTU|abi.QPMaskDestQPN|
		abi.QPMaskRQPSN|abi.QPMaskMaxDestRdAtomic|abi.QPMaskMinRNRTimer)
}

// readyToSend moves the queue pair from RTR to RTS.
func (q *queuePair) readyToSend(remote Endpoint) error {
	return q.move(verbs.QPAttr{
		State:       abi.QPSRTS,
		SQPSN:       q.psn,
		Timeout:     timeCode(q.config.Timeout, ackTime),
		RetryCnt:    uint8(q.config.Retry),
		RNRRetry:    uint8(q.config.RNRRetry),
		MaxRdAtomic: uint8(min(q.config.MaxRdAtomic, remote.MaxRdAtomic)),
	}, abi.QPMaskSQPSN|abi.QPMaskTimeout|abi.QPMaskRetryCnt|abi.QPMaskRNRRetry|abi.QPMaskMaxQPRdAtomic)
}

// Disconnect ends a queue pair's connection, however it was made. The queue
// pair moves to the error state: outstanding sends and receives complete with
// WCWRFlushErr, in order, and so do later ones; poll those that matter first.
// It stays, to be polled empty, until DestroyQP, which disconnects too.
//
// The peer of Dial or Request.Accept is told, without waiting for it: its Done
// fires, and the flushed requests of this side have ErrDisconnected. The peer
// of ConnectQP is not told; its next request fails with WCRetryExcErr.
// Disconnecting again does nothing. ENOTCONN for a queue pair that was never
// connected.
func (d *Device) Disconnect(qp QP) error {
	q, err := d.pair(qp)
	if err == nil {
		if conn := q.conn.Load(); conn != nil {
			err = conn.disconnect()
		} else {
			err = q.disconnect()
		}
	}
	return opError("Disconnect", qpName(qp), err)
}

func (q *queuePair) disconnect() error {
	q.modify.Lock()
	defer q.modify.Unlock()
	if !q.inited.Load() {
		return errs.Explain(syscall.ENOTCONN, "it was never connected")
	}
	return q.move(verbs.QPAttr{State: abi.QPSErr}, 0)
}
