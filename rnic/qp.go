package rnic

import (
	"fmt"
	"sync/atomic"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/driver"
	"github.com/rdmashim/rdmashim/kshim/ring"
	"github.com/rdmashim/rdmashim/rnic/engine"
	"github.com/rdmashim/rdmashim/rnic/guard"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// QP is a queue pair, of a connection or of datagrams: its rings, and
// the engine between them.
type QP struct {
	d      *Device
	num    wire.QPN
	typ    abi.QPType
	pd     *domain
	sendCQ *CQ
	recvCQ *CQ
	ev     driver.QPEvents
	sq, rq *ring.Queue
	noRecv bool // created for no receives
	srq    *SRQ // whose receives it takes; nil: it has its own

	initial abi.QueryQPResp // attr in RESET

	places             // in the device's queues
	bell   atomic.Bool // a doorbell that finds d.mu taken may leave a note
	flying atomic.Bool // packets await an acknowledgement
	stream stream

	// All below is guarded by d.mu.
	engine transport
	attr   abi.QueryQPResp // the attributes that were set, for Query
	send   *ring.Consumer
	recv   *ring.Consumer
	taken  int  // entries of the send ring that the engine has and that are not retired
	broken bool // an index in a ring made no sense: nothing is read from the rings any more
	gone   bool // destroyed
	left   bool // the peer has ended the connection, or agreed to its end

	draining bool // in SQD, and the end of it was not reported yet
	last     bool // in ERR, and QP_LAST_WQE_REACHED was reported
	failed   failedQueues

	polled uint32       // entries of the send queue's CQ that polls had taken at the last Assist
	turns  uint64       // times that it was asked for packets
	source guard.Source // where its peer's packets come from
	nearby
	guesses uint64 // access NAKs of the engine that observe has seen
	waited  bool   // the wait for a receive that goes on was logged
	misfit  bool   // a request that contradicts itself was logged
	watch   watch  // of the receive ring in ERR
}

// CreateQP implements driver.Device.
func (d *Device) CreateQP(init *driver.QPInit, u *driver.Udata, ev driver.QPEvents) (driver.QP, error) {
	pd, err := d.domainOf(init.PD)
	if err != nil {
		return nil, err
	}
	sendCQ, ok1 := init.SendCQ.(*CQ)
	recvCQ, ok2 := init.RecvCQ.(*CQ)
	if !ok1 || !ok2 || sendCQ.d != d || recvCQ.d != d {
		return nil, fmt.Errorf("rnic: the completion queues are not of %s: %w", d.name, syscall.EINVAL)
	}
	if init.Type != abi.QPTRC && init.Type != abi.QPTUC && init.Type != abi.QPTUD {
		return nil, fmt.Errorf("rnic: queue pair type %v is not supported, only RC, UC and UD: %w", init.Type, syscall.EOPNOTSUPP)
	}
	if init.Cap.MaxInline > ring.MaxInline {
		return nil, fmt.Errorf("rnic: queue pair with %d bytes of inline data: at most %d: %w", init.Cap.MaxInline, ring.MaxInline, syscall.EINVAL)
	}
	if len(u.In) != 0 { // rxe_verbs.c:rxe_create_qp
		return nil, fmt.Errorf("rnic: CREATE_QP: %d bytes of driver data, there are none: %w", len(u.In), syscall.EINVAL)
	}
	if len(u.Out) < abi.RXECreateQPRespSize {
		return nil, shortAnswer("CREATE_QP", len(u.Out), abi.RXECreateQPRespSize)
	}
	srq, _ := init.SRQ.(*SRQ)
	if init.SRQ != nil {
		if srq == nil || srq.d != d {
			return nil, fmt.Errorf("rnic: the shared receive queue is not of %s: %w", d.name, syscall.EINVAL)
		}
		init.Cap.MaxRecvWR, init.Cap.MaxRecvSGE = 0, 0
	}
	elem, sges, inline := ring.SendCap(int(init.Cap.MaxSendSGE), int(init.Cap.MaxInline))
	sq, err1 := ring.NewIn(u.Memory, elem, max(1, int(init.Cap.MaxSendWR)))
	rq, err2 := ring.NewIn(u.Memory, ring.RecvElemSize(int(init.Cap.MaxRecvSGE)), max(1, int(init.Cap.MaxRecvWR)))
	if err1 != nil || err2 != nil {
		return nil, fmt.Errorf("rnic: queue pair with %d sends of %d bytes and %d receives: the rings are too large: %w",
			init.Cap.MaxSendWR, elem, init.Cap.MaxRecvWR, syscall.ENOMEM)
	}
	init.Cap.MaxSendSGE, init.Cap.MaxInline = uint32(sges), uint32(inline)
	q := &QP{
		d: d, typ: init.Type, pd: pd, sendCQ: sendCQ, recvCQ: recvCQ, ev: ev, sq: sq, rq: rq,
		noRecv: init.Cap.MaxRecvWR == 0, srq: srq,
		send: sq.Consumer(), recv: rq.Consumer(),
		places: places{slot: notInHeap},
	}
	q.watch.on = u.Memory != nil && srq == nil && !q.noRecv
	q.initial = initialAttr(init, sq.Cap(), rq.Cap())
	q.attr = q.initial

	if q.num, err = d.takeQPN(); err != nil {
		return nil, err
	}
	recvSGE := int(init.Cap.MaxRecvSGE)
	if srq != nil {
		recvSGE = srq.maxSGE
	}
	q.engine = d.newTransport(init.Type, engine.Config{
		QPN: q.num, PD: pd.id, Regions: d.regions, Receives: q, SigAll: init.SigAll,
		SendDepth: sq.Cap(), MaxSendSGE: sges, MaxRecvSGE: recvSGE, MaxInline: inline,
		Tuning: d.tuning, Paths: d.paths, Stash: d.stash, Self: d.caps.Local,
	})
	resp := abi.RXECreateQPResp{SQMI: publish(u, sq)}
	if srq == nil {
		resp.RQMI = publish(u, rq)
	}
	resp.Put(u.Out)

	d.mu.Lock()
	defer d.mu.Unlock()
	d.qps[q.num] = q
	sendCQ.users++
	recvCQ.users++
	if srq != nil {
		srq.users++
	}
	return q, nil
}

// takeQPN takes a free queue pair number.
func (d *Device) takeQPN() (wire.QPN, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.check(); err != nil {
		return 0, err
	}
	if len(d.qps) >= maxQP {
		return 0, fmt.Errorf("rnic: all %d queue pairs of %s are in use: %w", maxQP, d.name, syscall.ENOMEM)
	}
	n := d.numbers.Draw(func(n wire.QPN) bool { _, taken := d.qps[n]; return taken })
	d.qps[n] = nil
	return n, nil
}

// Num implements driver.QP.
func (q *QP) Num() uint32 { return uint32(q.num) }

// State implements driver.QP.
func (q *QP) State() abi.QPState {
	q.d.mu.Lock()
	defer q.d.mu.Unlock()
	return q.engine.State()
}

// Destroy implements driver.QP. The engine and the rings are used under the
// device's lock only, so a queue pair that is gone from the tables is used no
// more. Packets that it owes its peer, acknowledgements mostly, are sent
// first.
func (q *QP) Destroy() error {
	d := q.d
	d.mu.Lock()
	defer d.mu.Unlock()
	q.sendOwed()
	d.keepFinalAck(q, 1)
	q.gone = true
	// It takes nothing of its path any more. Permitted from every state.
	_ = q.engine.Modify(d.now(), abi.QPSReset, &engine.Attr{}, 0)
	q.quiesce()
	q.bell.Store(false)
	delete(d.qps, q.num)
	d.found = nil
	for group := range d.groups {
		d.leave(group, q)
	}
	d.regions.Release(uint32(q.num))
	d.numbers.Retire(q.num)
	d.forget(q)
	q.sendCQ.users--
	q.recvCQ.users--
	if q.srq != nil {
		q.srq.users--
	}
	d.retired.Add(q.engine.Counters())
	d.serveChanged(doorbellBatches) // the lists forget it, although nothing may ever happen again
	return nil
}

// sendOwed lets the queue pair have its turn at the transmitter, once: an
// acknowledgement that it holds leaves.
func (q *QP) sendOwed() {
	d, turns := q.d, q.turns
	q.engine.ReleaseAck()
	d.schedule(q)
	for q.listed && q.turns == turns && d.lost == nil && !d.closed {
		if d.sending {
			d.sent.Wait()
			continue
		}
		d.senders.moveToFront(q)
		d.transmit(1)
	}
}
