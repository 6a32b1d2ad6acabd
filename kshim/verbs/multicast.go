package verbs

import (
	"errors"
	"net/netip"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

// AttachMulticast has a queue pair for datagrams receive those to a multicast
// group, too (IBA 11.3.1): to its GID, for RoCE its IP address, and the queue
// pair number 0xffffff. EINVAL for another address or type of queue pair; twice
// is once. Destroying the queue pair is EBUSY until it has left; closing the
// context leaves.
func (qp *QP) AttachMulticast(group netip.Addr) error {
	return qp.ctx.call("attach to multicast group", group.String(), func() error {
		qp.modify.Lock()
		defer qp.modify.Unlock()
		if qp.gone {
			return errDestroyed
		}
		err := qp.ctx.cmd.invoke(abi.CmdAttachMcast, &abi.AttachMcast{GID: group.As16(), QPHandle: qp.handle}, nil, nil)
		if err == nil {
			if qp.groups == nil {
				qp.groups = map[netip.Addr]struct{}{}
			}
			qp.groups[group] = struct{}{}
		}
		return err
	})
}

// DetachMulticast ends it. EINVAL if the queue pair is not in the group.
func (qp *QP) DetachMulticast(group netip.Addr) error {
	return qp.ctx.call("detach from multicast group", group.String(), func() error {
		qp.modify.Lock()
		defer qp.modify.Unlock()
		if qp.gone {
			return errDestroyed
		}
		return qp.leave(group)
	})
}

// LeaveGroups detaches from all groups.
func (qp *QP) LeaveGroups() error {
	return qp.ctx.call("leave multicast groups", qp.name(), qp.leaveGroups)
}

func (qp *QP) leaveGroups() (err error) {
	qp.modify.Lock()
	defer qp.modify.Unlock()
	for group := range qp.groups {
		err = errors.Join(err, qp.leave(group))
	}
	return err
}

// leave is DetachMulticast. Preconditions: modify is held.
func (qp *QP) leave(group netip.Addr) error {
	delete(qp.groups, group)
	return qp.ctx.cmd.invoke(abi.CmdDetachMcast, &abi.DetachMcast{GID: group.As16(), QPHandle: qp.handle}, nil, nil)
}
