package rnic

import (
	"fmt"
	"net/netip"
	"slices"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/driver"
	"github.com/rdmashim/rdmashim/rnic/engine"
	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// multicastTable is the members of the groups in which a device has queue
// pairs, by the group's address. The link has joined exactly these.
type multicastTable map[netip.Addr][]*QP

var _ driver.MulticastQP = (*QP)(nil)

// AttachMulticast implements driver.MulticastQP. ENOMEM for too many groups or
// members (rxe_mcast.c).
func (q *QP) AttachMulticast(group netip.Addr) error {
	d := q.d
	group = wire.Bare(group)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.check(); err != nil {
		return err
	}
	members := d.groups[group]
	switch {
	case slices.Contains(members, q):
		return nil
	case len(members) == 0 && len(d.groups) >= maxGroups, len(members) >= maxMembers:
		return fmt.Errorf("rnic: attach to %v: %s is in %d groups, and %d queue pairs are in this one: %w", group, d.name, len(d.groups), len(members), syscall.ENOMEM)
	case len(members) == 0:
		if err := d.link.Join(group); err != nil {
			return fmt.Errorf("rnic: attach to %v: %w", group, err)
		}
	}
	if d.groups == nil {
		d.groups = multicastTable{}
	}
	d.groups[group] = append(members, q)
	return nil
}

// DetachMulticast implements driver.MulticastQP.
func (q *QP) DetachMulticast(group netip.Addr) error {
	q.d.mu.Lock()
	defer q.d.mu.Unlock()
	if !q.d.leave(wire.Bare(group), q) {
		return fmt.Errorf("rnic: detach from %v: queue pair %v is not in it: %w", group, q.num, syscall.EINVAL)
	}
	return nil
}

// leave takes a queue pair out of a group, and the link with the last one.
// Preconditions, here and below: d.mu is held.
func (d *Device) leave(group netip.Addr, q *QP) bool {
	members := d.groups[group]
	i := slices.Index(members, q)
	if i < 0 {
		return false
	}
	if members = slices.Delete(members, i, i+1); len(members) > 0 {
		d.groups[group] = members
		return true
	}
	delete(d.groups, group)
	d.link.Leave(group)
	return true
}

// deliverGroup hands a copy of a packet to each member of its group. Its
// destination queue pair is that of all multicast packets (IBA 9.6.1.2).
func (d *Device) deliverGroup(in *link.Packet, p *wire.Packet) {
	members := d.groups[in.Group]
	if p.DestQPN != wire.MulticastQPN || len(members) == 0 {
		d.count.dropQPN++
		return
	}
	for _, q := range members {
		q.engine.(*engine.Datagrams).ReceiveAt(in.Group, in.Peer.Addr(), p)
		d.schedule(q)
	}
}
