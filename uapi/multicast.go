package uapi

import (
	"net/netip"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/verbs"
	"github.com/rdmashim/rdmashim/uapi/internal/errs"
)

// MulticastQPN is the queue pair number of datagrams to a multicast group.
const MulticastQPN = 1<<24 - 1

// AttachMulticast has a queue pair for datagrams receive the messages to an IP
// multicast group, too: by PostSendTo with an address handle of the group, the
// number MulticastQPN and the queue pair's Q_Key. The sender's own queue pairs
// that are in the group receive it as well. Twice is once; DestroyQP leaves.
//
// Errors: EBADF for a bad handle; EINVAL for an address that is no group's, and
// for connections; ENOMEM when the group or the device is full. On a kernel
// device the interface must have joined the IP group (ip maddr), or nothing
// comes.
func (d *Device) AttachMulticast(qp QP, group netip.Addr) error {
	return d.changeGroup("AttachMulticast", qp, group, (*verbs.QP).AttachMulticast)
}

// DetachMulticast ends it. EINVAL if the queue pair is not in the group.
func (d *Device) DetachMulticast(qp QP, group netip.Addr) error {
	return d.changeGroup("DetachMulticast", qp, group, (*verbs.QP).DetachMulticast)
}

// changeGroup is AttachMulticast or DetachMulticast, by the client's.
func (d *Device) changeGroup(op string, qp QP, group netip.Addr, change func(*verbs.QP, netip.Addr) error) error {
	q, err := d.pair(qp)
	if err == nil {
		err = d.isGroup(group)
	}
	if err == nil {
		err = d.ended(change(q.verbs, group.Unmap()), &d.closed, "")
	}
	return opError(op, qpName(qp), err)
}

// isGroup refuses an address of no multicast group, or of the other IP version.
func (d *Device) isGroup(group netip.Addr) error {
	if !group.Unmap().IsMulticast() || group.Unmap().Is4() != d.chosen.addr.Addr().Is4() {
		return errs.Explain(syscall.EINVAL, "%v is not a multicast group that %v can be in", group, d.chosen.addr.Addr())
	}
	return nil
}
