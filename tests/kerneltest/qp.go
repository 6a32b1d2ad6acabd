package kerneltest

import (
	"net/netip"
	"sync/atomic"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/driver"
	"github.com/rdmashim/rdmashim/kshim/ring"
)

// QP is a queue pair that does nothing by itself but to flush its requests in
// ERR: a doorbell is Device.Bell's to answer.
type QP struct {
	d      *Device
	num    uint32
	Init   driver.QPInit
	Events driver.QPEvents
	SQ, RQ *ring.Queue
	state  atomic.Uint32
	dead   atomic.Bool

	// Guarded by d.mu.
	Sends, Recvs *ring.Consumer
	Modified     abi.ModifyQP // the last
	DeafInErr    bool         // a second move to ERR flushes nothing
	DeafBell     bool         // a doorbell in ERR flushes nothing
	send         ring.SendWQE
	recv         ring.RecvWQE
}

const maxInline = 512 // as rxe's

func (d *Device) CreateQP(init *driver.QPInit, u *driver.Udata, ev driver.QPEvents) (driver.QP, error) {
	defer d.step("CreateQP")()
	if len(u.Out) < abi.RXECreateQPRespSize || len(u.In) != 0 || init.Cap.MaxInline > maxInline {
		return nil, syscall.EINVAL
	}
	elem, sge, inline := ring.SendCap(int(init.Cap.MaxSendSGE), int(init.Cap.MaxInline))
	init.Cap.MaxSendSGE, init.Cap.MaxInline = uint32(sge), uint32(inline)
	q := &QP{d: d, Init: *init, Events: ev}
	if err := d.born(q, "qp"); err != nil {
		return nil, err
	}
	var resp abi.RXECreateQPResp
	q.SQ, resp.SQMI, _ = newRing(u, elem, init.Cap.MaxSendWR)
	q.RQ, resp.RQMI, _ = newRing(u, ring.RecvElemSize(int(init.Cap.MaxRecvSGE)), init.Cap.MaxRecvWR)
	q.Sends, q.Recvs = q.SQ.Consumer(), q.RQ.Consumer()
	resp.Put(u.Out)
	d.mu.Lock()
	defer d.mu.Unlock()
	q.num = d.nextQP
	d.nextQP++
	d.Last = q
	return q, nil
}

func (q *QP) Num() uint32            { return q.num }
func (q *QP) State() abi.QPState     { return abi.QPState(q.state.Load()) }
func (q *QP) SetState(s abi.QPState) { q.state.Store(uint32(s)) }
func (q *QP) Status() any            { return map[string]uint64{"rdma_sends": 5} }

func (q *QP) Modify(attr *abi.ModifyQP, mask abi.QPAttrMask) error {
	defer q.d.step("QP.Modify")()
	q.d.mu.Lock()
	defer q.d.mu.Unlock()
	q.Modified = *attr
	switch {
	case mask&abi.QPMaskState == 0:
	case attr.QPState == abi.QPSErr:
		if q.State() != abi.QPSErr || !q.DeafInErr {
			q.Fail()
		}
	case attr.QPState == abi.QPSReset:
		q.Sends.Reset()
		q.Recvs.Reset()
		fallthrough
	default:
		q.SetState(attr.QPState)
	}
	return nil
}

func (q *QP) Query() (abi.QueryQPResp, error) {
	defer q.d.step("QP.Query")()
	return abi.QueryQPResp{
		QPState: q.State(), CurQPState: q.State(), MaxSendWR: q.Init.Cap.MaxSendWR, RetryCnt: 7, Dest: abi.QPDest{DLID: 9},
	}, nil
}

func (q *QP) Doorbell() error {
	defer q.d.step("QP.Doorbell")()
	if q.dead.Load() {
		q.d.Do(func() { q.d.fault("doorbell of a destroyed queue pair") })
	}
	if q.State() < abi.QPSRTS {
		return syscall.EINVAL
	}
	if q.d.Quiet {
		return nil
	}
	q.d.Doorbells.Add(1)
	q.d.mu.Lock()
	defer q.d.mu.Unlock()
	switch {
	case q.State() == abi.QPSErr && !q.DeafBell:
		q.flushSends()
	case q.State() != abi.QPSErr && q.d.Bell != nil:
		q.d.Bell(q)
	}
	return nil
}

func (q *QP) Destroy() error {
	defer q.d.step("QP.Destroy")()
	err := q.d.died(q, func(any) bool { return false })
	if err == nil {
		q.dead.Store(true)
	}
	return err
}

func (q *QP) AttachMulticast(netip.Addr) error {
	q.d.step("QP.AttachMulticast")()
	return nil
}

func (q *QP) DetachMulticast(netip.Addr) error {
	q.d.step("QP.DetachMulticast")()
	return nil
}

// EachSend takes the requests out of the send queue. It ends at one that the
// client spoilt.
func (q *QP) EachSend(f func(w *ring.SendWQE)) {
	n, err := q.Sends.Ready()
	for ; err == nil && n > 0; n-- {
		if err = q.send.Decode(q.Sends.Slot(0)); err == nil {
			q.Sends.Release(1)
			f(&q.send)
		}
	}
}

// complete adds a request's completion.
func (q *QP) complete(w *ring.SendWQE, status abi.WCStatus) {
	q.Init.SendCQ.(*CQ).Add(&ring.WC{ID: w.WR.ID, Status: status, QPN: q.num})
}

// Succeed completes signaled requests, the way Linux does: WITH_IMM on the
// sender's side and a byte count.
func (q *QP) Succeed() {
	q.EachSend(func(w *ring.SendWQE) {
		if w.WR.Flags&abi.SendSignaled != 0 {
			q.Init.SendCQ.(*CQ).Add(&ring.WC{ID: w.WR.ID, Opcode: 77, ByteLen: w.Length, QPN: q.num, Flags: abi.WCWithImm})
		}
	})
}

// FailFirst completes the first request with an error status and nothing else,
// as Linux does, and goes to ERR.
func (q *QP) FailFirst(status abi.WCStatus) {
	q.EachSend(func(w *ring.SendWQE) {
		q.complete(w, status)
		status = abi.WCWRFlushErr
	})
	q.Fail()
}

func (q *QP) flushSends() {
	q.EachSend(func(w *ring.SendWQE) { q.complete(w, abi.WCWRFlushErr) })
}

// Fail goes to ERR and flushes the posted requests; requests posted later are
// not looked at.
func (q *QP) Fail() {
	q.SetState(abi.QPSErr)
	q.flushSends()
	for q.Recv(&ring.WC{Status: abi.WCWRFlushErr}) {
	}
}

// Recv completes the oldest receive, if there is one.
func (q *QP) Recv(wc *ring.WC) bool {
	n, err := q.Recvs.Ready()
	if err != nil || n == 0 || q.recv.Decode(q.Recvs.Slot(0)) != nil {
		return false
	}
	q.Recvs.Release(1)
	c := *wc
	c.ID, c.QPN = q.recv.WR.ID, q.num
	q.Init.RecvCQ.(*CQ).Add(&c)
	return true
}
