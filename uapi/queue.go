package uapi

import (
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/verbs"
	"github.com/rdmashim/rdmashim/uapi/internal/errs"
)

// completionQueue is a completion queue.
type completionQueue struct {
	device  *Device
	handle  CQ
	verbs   *verbs.CQ
	private bool // made by CreateQP, destroyed with its queue pair
	made    origin
	dead    atomic.Bool
	size    int // entries; guarded by the device's mu, as the fields below
	claimed int // entries that its queue pairs can fill, at most size
	users   int // queue pairs

	resizing sync.Mutex // held by ResizeCQ

	mu     sync.Mutex
	buf    []verbs.WC // guarded by mu: completions on their way out, pollBatch at most
	misses uint       // guarded by mu: empty polls in a row
}

// CreateCQ creates a completion queue of size entries, 1 … DeviceInfo.MaxCQE,
// for queue pairs made by CreateQPWith. It needs room for all that can be
// outstanding in the queues that it takes completions of: the sum of their
// depths, and one entry for the keepalive of each queue pair that Dial or a
// Request connects. Unsignaled requests count, since all of them complete when
// their queue pair fails. CreateQPWith refuses a queue pair that does not fit,
// so that no completion is lost.
func (d *Device) CreateCQ(size int) (CQ, error) {
	cq, err := d.createCQ(size, false)
	return cq, opError("CreateCQ", "", err)
}

func (d *Device) createCQ(size int, private bool) (CQ, error) {
	if d.closed.Load() {
		return -1, errDeviceClosed
	}
	if err := d.checkCQE(size); err != nil {
		return -1, err
	}
	v, err := d.verbs.CreateCQ(size)
	if err != nil {
		return -1, d.ended(err, &d.closed, "")
	}
	q := &completionQueue{device: d, verbs: v, size: size, private: private, made: caller()}
	return enter(d, &queueHandles, &d.queues, q, &q.handle, v.Destroy)
}

func (d *Device) checkCQE(size int) error {
	if size < 1 || size > d.limits.cqe {
		return errs.Explain(syscall.EINVAL, "a completion queue of %d entries; the device makes 1 … %d", size, d.limits.cqe)
	}
	return nil
}

// DestroyCQ destroys a completion queue, and with it the completions in it.
// EBUSY while a queue pair uses it; a queue pair's own one goes with the queue
// pair. It wakes waiters with net.ErrClosed.
func (d *Device) DestroyCQ(cq CQ) error {
	q, err := d.queue(cq)
	if err == nil && q.private {
		err = errs.Explain(syscall.EBUSY, "it belongs to its queue pair; destroy that")
	}
	if err == nil {
		err = d.destroyCQ(q)
	}
	return opError("DestroyCQ", cqName(cq), err)
}

// claim reserves n entries. Preconditions: the device's mu is held.
func (q *completionQueue) claim(n int) error {
	if need := q.claimed + n; need > q.size {
		return errs.Explain(syscall.EINVAL, "%s has %d entries; %d can be outstanding on its other queue pairs and %d on this one, unsignaled requests too: make it %d with CreateCQ or ResizeCQ, or use another one",
			cqName(q.handle), q.size, q.claimed, n, need)
	}
	q.claimed += n
	return nil
}

func (d *Device) destroyCQ(q *completionQueue) error {
	d.mu.Lock()
	if q.users > 0 {
		defer d.mu.Unlock()
		return errs.Explain(syscall.EBUSY, "%d queue pairs use it; destroy them first", q.users)
	}
	won := queueHandles.Remove(int(q.handle))
	if won {
		delete(d.queues, q.handle)
		q.dead.Store(true)
	}
	d.mu.Unlock()
	if !won {
		_, err := d.queue(q.handle)
		return err
	}
	return d.ended(q.verbs.Destroy(), &d.closed, "")
}

// ResizeCQ gives a completion queue made by CreateCQ room for size entries, 1 …
// DeviceInfo.MaxCQE. Completions that wait in it stay, in their order, and
// PollQueue and WaitQueue may go on meanwhile. A queue that has overrun is not
// mended by it.
//
// Errors, after which nothing has changed: EINVAL for a size out of range, less
// than the completions that wait or than what its queue pairs can have
// outstanding (CreateCQ); ENOMEM when there is no room.
func (d *Device) ResizeCQ(cq CQ, size int) error {
	q, err := d.queue(cq)
	if err == nil {
		err = q.resize(size)
	}
	return opError("ResizeCQ", cqName(cq), err)
}

func (q *completionQueue) resize(size int) error {
	d := q.device
	if err := d.checkCQE(size); err != nil {
		return err
	}
	q.resizing.Lock()
	defer q.resizing.Unlock()
	was, err := q.shrink(size)
	if err != nil {
		return err
	}
	err = q.verbs.Resize(size)
	d.mu.Lock()
	if q.size = size; err != nil {
		q.size = was
	}
	d.mu.Unlock()
	return d.ended(err, &q.dead, "the completion queue")
}

// shrink keeps queue pairs from claiming more than size entries from now on, if
// the present ones do not need more.
func (q *completionQueue) shrink(size int) (was int, err error) {
	q.device.mu.Lock()
	defer q.device.mu.Unlock()
	if size < q.claimed {
		return 0, errs.Explain(syscall.EINVAL, "%d entries are too few: %d can be outstanding on its queue pairs", size, q.claimed)
	}
	was = q.size
	q.size = min(was, size)
	return was, nil
}
