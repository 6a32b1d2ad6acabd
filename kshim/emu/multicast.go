package emu

import (
	"net/netip"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/driver"
)

// membership is struct ib_uverbs_mcast_entry: a group that a queue pair is in.
// It counts as a user of the queue pair, which is not destroyed before it has
// left, but with its file.
type membership struct {
	gid [16]byte
	lid uint16
}

// attachMcast is uverbs_cmd.c:ib_uverbs_attach_mcast. To attach twice is to
// attach once.
func attachMcast(c *call) error {
	req := decode[abi.AttachMcast](c)
	return c.onGroups(req.QPHandle, func(o *object, q *queuePair) error {
		return q.attach(o, membership{req.GID, req.Mlid})
	})
}

// attach makes the queue pair a member. Preconditions: q.modify is held.
func (q *queuePair) attach(o *object, m membership) error {
	if q.groups[m] {
		return nil
	}
	group := netip.AddrFrom16(m.gid)
	qp, ok := q.qp.(driver.MulticastQP)
	switch {
	case !ok:
		return fail(syscall.EOPNOTSUPP, "the device has no multicast")
	case !group.Unmap().IsMulticast():
		return fail(syscall.EINVAL, "%v is not a multicast group", group.Unmap())
	case q.typ != abi.QPTUD:
		return fail(syscall.EINVAL, "a queue pair of type %v is in no multicast group", q.typ)
	}
	if err := qp.AttachMulticast(group); err != nil {
		return err
	}
	if q.groups == nil {
		q.groups = map[membership]bool{}
	}
	q.groups[m] = true
	o.users.Add(1)
	return nil
}

func detachMcast(c *call) error {
	req := decode[abi.DetachMcast](c)
	return c.onGroups(req.QPHandle, func(o *object, q *queuePair) error {
		m := membership{req.GID, req.Mlid}
		if !q.groups[m] {
			return fail(syscall.EINVAL, "the queue pair is not in group %v", netip.AddrFrom16(m.gid).Unmap())
		}
		delete(q.groups, m)
		o.users.Add(-1)
		return q.qp.(driver.MulticastQP).DetachMulticast(netip.AddrFrom16(m.gid))
	})
}

// onGroups calls do with a queue pair whose groups do not change meanwhile.
func (c *call) onGroups(handle uint32, do func(*object, *queuePair) error) error {
	o, err := c.file.acquire(kindQP, handle)
	if err != nil {
		return err
	}
	defer o.release()
	q := o.body.(*queuePair)
	q.modify.Lock()
	defer q.modify.Unlock()
	return do(o, q)
}
