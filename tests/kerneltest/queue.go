package kerneltest

import (
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/driver"
	"github.com/rdmashim/rdmashim/kshim/ring"
)

// newRing returns a ring of at most 1,023 entries, and where it can be mapped.
func newRing(u *driver.Udata, elem int, n uint32) (*ring.Queue, abi.MMInfo, error) {
	q, err := ring.NewIn(u.Memory, elem, int(min(max(n, 1), 1023)))
	if err != nil {
		return nil, abi.MMInfo{}, syscall.EINVAL
	}
	return q, abi.MMInfo{Offset: u.Mmap(q.Mapping()), Size: uint32(len(q.Mapping()))}, nil
}

type CQ struct {
	d       *Device
	Events  driver.CQEvents
	Queue   *ring.Queue
	entries *ring.Producer // guarded by d.mu
	Armed   bool           // guarded by d.mu
	cqe     int
}

func (d *Device) CreateCQ(cqe int, u *driver.Udata, ev driver.CQEvents) (driver.CQ, error) {
	defer d.step("CreateCQ")()
	if len(u.Out) < abi.RXECreateCQRespSize {
		return nil, syscall.EINVAL
	}
	q := &CQ{d: d, Events: ev, cqe: cqe}
	if err := d.born(q, "cq"); err != nil {
		return nil, err
	}
	var mi abi.MMInfo
	q.Queue, mi, _ = newRing(u, ring.CQElemSize, uint32(cqe))
	q.entries = q.Queue.Producer()
	(&abi.RXECreateCQResp{MI: mi}).Put(u.Out)
	d.Do(func() { d.LastCQ = q })
	return q, nil
}

func (q *CQ) Resize(cqe int, u *driver.Udata) error {
	defer q.d.step("CQ.Resize")()
	if len(u.Out) < abi.RXEResizeCQRespSize {
		return syscall.EINVAL
	}
	to, mi, err := newRing(u, ring.CQElemSize, uint32(cqe))
	if err != nil {
		return err
	}
	q.d.mu.Lock()
	defer q.d.mu.Unlock()
	if q.d.Refuse != nil {
		return q.d.Refuse
	}
	if n, err := q.entries.Waiting(); err != nil || n > cqe {
		return syscall.EINVAL
	}
	entries, err := q.entries.MoveTo(to)
	if err != nil {
		return syscall.EINVAL
	}
	q.Queue, q.entries, q.cqe = to, entries, cqe
	(&abi.RXEResizeCQResp{MI: mi}).Put(u.Out)
	return nil
}

func (q *CQ) CQE() int { return q.cqe }

func (q *CQ) Arm(bool) error {
	defer q.d.step("CQ.Arm")()
	q.d.Do(func() { q.Armed = true })
	return nil
}

func (q *CQ) Destroy() error {
	defer q.d.step("CQ.Destroy")()
	return q.d.died(q, func(o any) bool {
		p, ok := o.(*QP)
		return ok && (p.Init.SendCQ == driver.CQ(q) || p.Init.RecvCQ == driver.CQ(q))
	})
}

// Add adds a completion and raises the event if one was asked for. A completion
// that finds the ring full is lost. Preconditions: the device's lock is held,
// as for all the steps of queues.
func (q *CQ) Add(wc *ring.WC) {
	if free, err := q.entries.Free(); err != nil || free == 0 || ring.EncodeWC(q.entries.Slot(0), wc) != nil {
		q.Events.Error()
		return
	}
	q.entries.Publish(1)
	if q.Armed {
		q.Armed = false
		q.Events.Completion()
	}
}
