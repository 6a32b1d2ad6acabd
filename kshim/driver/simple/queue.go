package simple

import (
	"sync"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/driver"
	"github.com/rdmashim/rdmashim/kshim/ring"
)

// queue is a completion queue: a ring that the client maps and polls.
type queue struct {
	*ring.Queue
	events  driver.CQEvents
	mu      sync.Mutex
	entries *ring.Producer // guarded by mu
	armed   bool           // guarded by mu
}

func (d *Device) CreateCQ(cqe int, u *driver.Udata, events driver.CQEvents) (driver.CQ, error) {
	q, err := ring.NewIn(u.Memory, ring.CQElemSize, cqe)
	if err != nil || len(u.Out) < abi.RXECreateCQRespSize {
		return nil, syscall.EINVAL
	}
	(&abi.RXECreateCQResp{MI: mapped(u, q)}).Put(u.Out)
	return &queue{Queue: q, events: events, entries: q.Producer()}, nil
}

// mapped tells a client where it can map a ring.
func mapped(u *driver.Udata, q *ring.Queue) abi.MMInfo {
	return abi.MMInfo{Offset: u.Mmap(q.Mapping()), Size: uint32(len(q.Mapping()))}
}

func (q *queue) CQE() int                        { return q.Cap() }
func (q *queue) Resize(int, *driver.Udata) error { return syscall.EOPNOTSUPP }
func (q *queue) Destroy() error                  { return nil }

func (q *queue) Arm(bool) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.armed = true
	return nil
}

// add puts a completion into the ring. A completion that finds it full is lost.
func (q *queue) add(wc *ring.WC) {
	q.mu.Lock()
	defer q.mu.Unlock()
	free, err := q.entries.Free()
	if err != nil || free == 0 || ring.EncodeWC(q.entries.Slot(0), wc) != nil {
		q.events.Error()
		return
	}
	q.entries.Publish(1)
	if q.armed {
		q.armed = false
		q.events.Completion()
	}
}

// pair is a queue pair.
type pair struct {
	d     *Device
	qpn   uint32
	cq    *queue
	all   bool // every work request completes, also unsignaled ones
	mu    sync.Mutex
	sends *ring.Consumer  // guarded by mu
	attr  abi.QueryQPResp // guarded by mu
	entry ring.SendWQE    // guarded by mu
}

func (d *Device) CreateQP(init *driver.QPInit, u *driver.Udata, _ driver.QPEvents) (driver.QP, error) {
	size, _, _ := ring.SendCap(int(init.Cap.MaxSendSGE), 0)
	sq, err1 := ring.NewIn(u.Memory, size, int(max(1, init.Cap.MaxSendWR)))
	rq, err2 := ring.NewIn(u.Memory, ring.RecvElemSize(1), int(max(1, init.Cap.MaxRecvWR)))
	if err1 != nil || err2 != nil || len(u.Out) < abi.RXECreateQPRespSize {
		return nil, syscall.EINVAL
	}
	(&abi.RXECreateQPResp{SQMI: mapped(u, sq), RQMI: mapped(u, rq)}).Put(u.Out)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lastQPN++
	return &pair{d: d, qpn: d.lastQPN, sends: sq.Consumer(), cq: init.SendCQ.(*queue), all: init.SigAll}, nil
}

func (q *pair) Num() uint32        { return q.qpn }
func (q *pair) Status() any        { return nil }
func (q *pair) Destroy() error     { return nil }
func (q *pair) State() abi.QPState { a, _ := q.Query(); return a.QPState }

func (q *pair) Query() (abi.QueryQPResp, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.attr, nil
}

func (q *pair) Modify(attr *abi.ModifyQP, mask abi.QPAttrMask) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if mask&abi.QPMaskState != 0 { // the core has checked the transition
		q.attr.QPState = attr.QPState
	}
	return nil
}

// Doorbell takes the work requests out of the ring, one copy each, and
// completes them.
func (q *pair) Doorbell() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.attr.QPState != abi.QPSRTS {
		return syscall.EINVAL
	}
	n, err := q.sends.Ready()
	for ; n > 0 && err == nil; n-- {
		if err = q.entry.Decode(q.sends.Slot(0)); err != nil {
			return syscall.EINVAL
		}
		wr := &q.entry.WR
		wc := ring.WC{ID: wr.ID, QPN: q.qpn, Opcode: abi.WCRDMAWrite, ByteLen: q.entry.Length, Status: q.d.execute(wr)}
		q.sends.Release(1)
		if q.all || wr.Flags&abi.SendSignaled != 0 || wc.Status != abi.WCSuccess {
			q.cq.add(&wc)
		}
	}
	return err
}
