package uapi

import (
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/verbs"
)

// ResizeCQ gives a completion queue made by CreateCQ room for size entries, 1 …
// DeviceInfo.MaxCQE. Completions that wait in it stay, in their order, and Poll
// and Wait may go on meanwhile. A queue that has overrun is not mended by it.
//
// Errors, after which nothing has changed: EINVAL for a size out of range, less
// than the completions that wait or than what its queue pairs can have
// outstanding (CreateCQ); ENOMEM when there is no room.
func (c *Context) ResizeCQ(cq CQ, size int) error {
	q, err := c.queue(cq)
	if err == nil {
		err = q.resize(size)
	}
	return opError("ResizeCQ", cqName(cq), err)
}

func (q *completionQueue) resize(size int) error {
	c := q.ctx
	if size < 1 || size > c.limits.cqe {
		return explain(syscall.EINVAL, "a completion queue of %d entries; the device makes 1 … %d", size, c.limits.cqe)
	}
	q.resizing.Lock()
	defer q.resizing.Unlock()
	was, err := q.shrink(size)
	if err != nil {
		return err
	}
	err = q.verbs.Resize(size)
	c.mu.Lock()
	if q.size = size; err != nil {
		q.size = was
	}
	c.mu.Unlock()
	return c.ended(err, &q.dead, "the completion queue")
}

// shrink keeps queue pairs from claiming more than size entries from now on, if
// those that there are do not need more.
func (q *completionQueue) shrink(size int) (was int, err error) {
	q.ctx.mu.Lock()
	defer q.ctx.mu.Unlock()
	if size < q.claimed {
		return 0, explain(syscall.EINVAL, "%d entries are too few: %d can be outstanding on its queue pairs", size, q.claimed)
	}
	was = q.size
	q.size = min(was, size)
	return was, nil
}

// ReRegMR changes a memory region: what it permits, and, if buf is not nil, its
// memory. The handle stays; QueryMR tells address and keys, which may change.
// Nothing that uses the region should be outstanding: of a message that is on
// its way the rest meets the changed region.
//
// Errors, after which nothing has changed: EOPNOTSUPP where the device cannot
// (rdma_rxe of Linux 6.1 nothing of it, later ones not the memory); EINVAL for
// memory that is empty and not nil, and, as with EFAULT, as for RegMR.
func (c *Context) ReRegMR(mr MR, buf []byte, access Access) error {
	r, err := c.region(mr)
	if err == nil {
		err = c.reRegMR(r, buf, access)
	}
	return opError("ReRegMR", mrName(mr), err)
}

func (c *Context) reRegMR(r *region, buf []byte, access Access) error {
	if err := checkRegion(buf != nil && len(buf) == 0, access); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.dropped {
		_, err := c.region(r.handle)
		return err
	}
	change := verbs.Rereg{Flags: abi.ReregAccess, Access: abi.AccessFlags(access)}
	next, release := *r.state.Load(), func() {}
	if buf != nil {
		change.Flags |= abi.ReregTranslation
		change.Buf, next.buf = buf, buf
		if hold := allocations.hold(buf); hold != nil {
			release = hold
		}
	}
	if err := r.verbs.Rereg(change); err != nil {
		release()
		return c.ended(err, &c.closed, "")
	}
	next.info = r.describe()
	r.state.Store(&next)
	if buf != nil {
		r.letGo()
		r.release = release
	}
	return nil
}

// describe asks the client for a region as it is now.
func (r *region) describe() MRInfo {
	v := r.verbs
	return MRInfo{Addr: v.Addr(), Length: v.Length(), LKey: v.LKey(), RKey: v.RKey(), Access: Access(v.Access()), PD: r.pd}
}
