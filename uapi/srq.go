package uapi

import (
	"errors"
	"sync/atomic"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/verbs"
	"github.com/rdmashim/rdmashim/uapi/internal/errs"
)

// SRQConfig says how to make a shared receive queue. The zero value of every
// field but Depth means the default in parentheses.
type SRQConfig struct {
	// Depth is how many receives can wait for messages, from 1.
	Depth int
	// SGE is how long a receive's scatter/gather list may be (1).
	SGE int
	// PD is the protection domain (the device's own), which is that of its
	// queue pairs, too.
	PD PD
	// Limit asks for an event, see SetSRQLimit (0: none).
	Limit int
}

// SRQInfo describes a shared receive queue.
type SRQInfo struct {
	SRQ        SRQ
	PD         PD // protection domain; 0 is the device's own
	Depth, SGE int
	Limit      int // 0 once its event has come
}

// sharedQueue is a shared receive queue.
type sharedQueue struct {
	device *Device
	handle SRQ
	verbs  *verbs.SRQ
	config SRQConfig
	made   origin
	dead   atomic.Bool

	ids   atomic.Uint64 // ids taken by PostSRQRecv
	recvs lane[verbs.RecvWR]

	// takers counts the queue pairs that take its receives, by the queue that
	// those complete in; there is no entry for 0. Guarded by the device's mu.
	takers map[*completionQueue]int
}

// CreateSRQ creates a shared receive queue (IBA vol. 1, 10.2.9): a server of
// 10,000 connections that gives each of them 64 receives pins 640,000 buffers;
// with a shared queue it pins as many as are needed at a time. CreateQPWith,
// Dial and Request.CreateQPWith make queue pairs that take its receives
// (QPConfig.SRQ), each for its next message the oldest of all. A receive
// completes in its taker's RecvCQ, and WC.QP names the taker.
//
// CreateQPWith reserves Depth entries of a completion queue for the shared
// receives that complete there, once, however many queue pairs there are. They
// suffice for programs that post a receive again after its completion was
// polled; a program that posts others meanwhile gives the completion queue room
// for them, too.
//
// Errors:
//   - EBADF: a bad protection domain
//   - EINVAL: sizes that the device does not make
//   - ENOMEM: the device has no room
//   - EOPNOTSUPP: the device has no shared receive queues
func (d *Device) CreateSRQ(config SRQConfig) (SRQ, error) {
	srq, err := d.createSRQ(config)
	return srq, opError("CreateSRQ", "", err)
}

func (d *Device) createSRQ(config SRQConfig) (SRQ, error) {
	if d.closed.Load() {
		return -1, errDeviceClosed
	}
	config.SGE = max(config.SGE, 1)
	switch {
	case config.Depth < 1 || config.Depth > d.limits.srqDepth:
		return -1, errs.Explain(syscall.EINVAL, "a shared receive queue of %d receives; the device makes 1 … %d", config.Depth, d.limits.srqDepth)
	case config.SGE > d.limits.srqSGE:
		return -1, errs.Explain(syscall.EINVAL, "shared receives of %d pieces; the device takes 1 … %d", config.SGE, d.limits.srqSGE)
	}
	if err := config.checkLimit(config.Limit); err != nil {
		return -1, err
	}
	pd, err := d.domain(config.PD)
	if err != nil {
		return -1, err
	}
	v, err := pd.CreateSRQ(verbs.SRQInit{MaxWR: config.Depth, MaxSGE: config.SGE, Limit: config.Limit})
	if err != nil {
		return -1, d.ended(err, &d.closed, "")
	}
	s := &sharedQueue{device: d, verbs: v, config: config, made: caller(), takers: map[*completionQueue]int{}}
	return enter(d, &sharedHandles, &d.shared, s, &s.handle, v.Destroy)
}

func (config *SRQConfig) checkLimit(n int) error {
	if n < 0 || n > config.Depth {
		return errs.Explain(syscall.EINVAL, "a limit of %d receives; the queue holds 0 … %d", n, config.Depth)
	}
	return nil
}

// DestroySRQ destroys a shared receive queue, and forgets the receives that
// wait. EBUSY while queue pairs take its receives, after which nothing has
// changed.
func (d *Device) DestroySRQ(srq SRQ) error {
	return opError("DestroySRQ", srqName(srq), d.destroySRQ(srq))
}

func (d *Device) destroySRQ(srq SRQ) error {
	s, err := d.sharedQueue(srq)
	if err != nil {
		return err
	}
	d.mu.Lock()
	if len(s.takers) > 0 {
		defer d.mu.Unlock()
		return errs.Explain(syscall.EBUSY, "queue pairs take its receives; destroy them first")
	}
	won := sharedHandles.Remove(int(srq))
	if won {
		delete(d.shared, srq)
		s.dead.Store(true)
	}
	d.mu.Unlock()
	if !won {
		_, err := d.sharedQueue(srq)
		return err
	}
	return d.ended(s.verbs.Destroy(), &d.closed, "")
}

// PostSRQRecv posts a receive to a shared receive queue: length bytes at
// localOffset of the region, which needs AccessLocalWrite and the queue's
// protection domain, are for a message of any of its queue pairs. The id comes
// back in WC.WRID; ids count up from 0 for each queue. The ids of receives
// posted to queue pairs, and of sends, are apart: WC.Opcode and WC.QP tell.
//
// A shared receive outlives its queue pairs: if a queue pair fails, only the
// receive of the message under way is gone. When a queue pair is destroyed in
// the middle of a message, that receive ends without a completion.
//
// Errors: EBADF for a bad handle; EINVAL for a range outside the region or
// another protection domain; ENOMEM when Depth receives wait.
func (d *Device) PostSRQRecv(srq SRQ, mr MR, localOffset, length uint64) (WRID, error) {
	one := [1]WR{{Op: OpRecv, SGE: []SGE{{MR: mr, Offset: localOffset, Length: length}}}}
	s, err := d.sharedQueue(srq)
	if err == nil {
		_, err = s.post(one[:], true)
	}
	if err != nil {
		return -1, opError("PostSRQRecv", srqName(srq), err)
	}
	return one[0].ID, nil
}

// PostSRQ posts receives (OpRecv) in order, under the caller's ids, and returns
// how many. If that is less than len(wrs), the error is the next one's.
func (d *Device) PostSRQ(srq SRQ, wrs []WR) (int, error) {
	s, err := d.sharedQueue(srq)
	posted := 0
	for posted < len(wrs) && err == nil {
		var n int
		n, err = s.post(wrs[posted:min(len(wrs), posted+postBatch)], false)
		posted += n
	}
	return posted, opError("PostSRQ", srqName(srq), err)
}

// post posts receives; number has the first get the queue's next id.
func (s *sharedQueue) post(wrs []WR, number bool) (int, error) {
	l := &s.recvs
	l.mu.Lock()
	defer l.mu.Unlock()
	if number {
		wrs[0].ID = WRID(s.ids.Load())
	}
	l.empty(len(wrs))
	var bad error
	for i := range wrs {
		var list []verbs.SGE
		if wrs[i].Op != OpRecv {
			bad = errs.Explain(syscall.EINVAL, "%v is posted to a queue pair; a shared receive queue takes receives", wrs[i].Op)
			break
		}
		if list, bad = s.device.gather(&l.sges, &wrs[i], s.config.SGE, maxReceive, s.config.PD); bad != nil {
			break
		}
		l.wrs = append(l.wrs, verbs.RecvWR{ID: uint64(wrs[i].ID), SGE: list})
	}
	if len(l.wrs) == 0 {
		return 0, bad
	}
	n, err := s.verbs.PostRecv(l.wrs)
	if number && n > 0 {
		s.ids.Add(1)
	}
	switch {
	case err == nil:
		err = bad
	case errors.Is(err, syscall.ENOMEM):
		err = errs.Explain(syscall.ENOMEM, "%d receives wait, as many as it was made for", s.config.Depth)
	}
	return n, s.device.ended(err, &s.dead, "the shared receive queue")
}

// SetSRQLimit asks for one event SRQ_LIMIT_REACHED (Events), which comes when a
// message leaves fewer than n receives waiting, 1 … Depth: then is the time to
// post more. 0 asks for none.
func (d *Device) SetSRQLimit(srq SRQ, n int) error {
	s, err := d.sharedQueue(srq)
	if err == nil {
		err = s.config.checkLimit(n)
	}
	if err == nil {
		err = d.ended(s.verbs.SetLimit(n), &s.dead, "the shared receive queue")
	}
	return opError("SetSRQLimit", srqName(srq), err)
}

// QuerySRQ describes a shared receive queue.
func (d *Device) QuerySRQ(srq SRQ) (SRQInfo, error) {
	s, err := d.sharedQueue(srq)
	var attr verbs.SRQAttr
	if err == nil {
		attr, err = s.verbs.Query()
		err = d.ended(err, &s.dead, "the shared receive queue")
	}
	if err != nil {
		return SRQInfo{}, opError("QuerySRQ", srqName(srq), err)
	}
	return SRQInfo{SRQ: srq, PD: s.config.PD, Depth: s.config.Depth, SGE: s.config.SGE, Limit: attr.Limit}, nil
}

// sharedQueue is the shared receive queue behind a handle, or EBADF.
func (d *Device) sharedQueue(srq SRQ) (*sharedQueue, error) {
	if s := sharedHandles.Get(int(srq)); s != nil && s.device == d {
		return s, nil
	}
	return nil, d.badHandle("%s is no shared receive queue of this device: zero, destroyed, or another device's", srqName(srq))
}

// sharing is the shared receive queue of a queue pair's configuration.
func (d *Device) sharing(config *QPConfig) (*sharedQueue, error) {
	s, err := d.sharedQueue(config.SRQ)
	switch {
	case err != nil:
	case config.RecvDepth != 0:
		err = errs.Explain(syscall.EINVAL, "RecvDepth %d and %s: it has receives of its own or takes shared ones", config.RecvDepth, srqName(config.SRQ))
	case config.PD != s.config.PD:
		err = otherDomain(srqName(config.SRQ), s.config.PD, config.PD)
	}
	return s, err
}

// take enters a queue pair that completes in cq, and reserves entries there if
// it is the first. Preconditions: the device's mu is held.
func (s *sharedQueue) take(cq *completionQueue) error {
	if s.dead.Load() {
		return kshim.ClosedError("the shared receive queue is closed")
	}
	if s.takers[cq] == 0 {
		if err := cq.claim(s.config.Depth); err != nil {
			return err
		}
	}
	s.takers[cq]++
	return nil
}

// give undoes take. Preconditions: the device's mu is held.
func (s *sharedQueue) give(cq *completionQueue) {
	if s.takers[cq]--; s.takers[cq] == 0 {
		delete(s.takers, cq)
		cq.claimed -= s.config.Depth
	}
}
