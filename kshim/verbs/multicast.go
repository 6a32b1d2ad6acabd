package verbs

import (
	"net/netip"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

// AttachMulticast has a queue pair for datagrams receive what is sent to a
// multicast group, too (IBA 11.3.1): to its GID, for RoCE its IP address, and
// the queue pair number 0xffffff. EINVAL for another address or type of queue
// pair; twice is once. Destroying the queue pair is EBUSY until it has left.
func (qp *QP) AttachMulticast(group netip.Addr) error {
	return qp.ctx.call("attach to multicast group", group.String(), func() error {
		return qp.ctx.cmd.invoke(abi.CmdAttachMcast, &abi.AttachMcast{GID: group.As16(), QPHandle: qp.handle}, nil, nil)
	})
}

// DetachMulticast ends it. EINVAL if the queue pair is not in the group.
func (qp *QP) DetachMulticast(group netip.Addr) error {
	return qp.ctx.call("detach from multicast group", group.String(), func() error {
		return qp.ctx.cmd.invoke(abi.CmdDetachMcast, &abi.DetachMcast{GID: group.As16(), QPHandle: qp.handle}, nil, nil)
	})
}
