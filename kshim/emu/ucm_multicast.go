package emu

import (
	"encoding/binary"
	"net/netip"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

// ucmGroup is struct ucma_multicast: an id's membership in a group. It tells
// the program how to reach the group; the device joins when a queue pair is
// attached.
type ucmGroup struct {
	num      uint32
	of       *ucmID
	uid      uint64
	reported uint32 // guarded by the mu of of's file
}

// groupQPN is the queue pair number of packets to groups (IBA 9.6.1.2).
const groupQPN = 0xffffff

// linuxENOTSUPP is the error of Linux for joining a group of IPv6, which is no
// errno of programs (cma.c: cma_iboe_join_multicast).
const linuxENOTSUPP = syscall.Errno(524)

// joinMcast is rdma_join_multicast.
func (c *ucmCall) joinMcast() error {
	var req abi.UCMJoinMcast
	_ = req.Parse(c.in)
	return c.joinGroup(&req)
}

// joinIPMcast is JOIN_MCAST of a struct sockaddr_in6.
func (c *ucmCall) joinIPMcast() error {
	var old abi.UCMJoinIPMcast
	_ = old.Parse(c.in)
	req := abi.UCMJoinMcast{Response: old.Response, UID: old.UID, ID: old.ID, JoinFlags: abi.UCMJoinFullMember}
	req.Addr, req.AddrSize = old.Addr.Storage()
	return c.joinGroup(&req)
}

// joinGroup makes a membership, and the event of its success.
func (c *ucmCall) joinGroup(req *abi.UCMJoinMcast) error {
	at, err := sockaddr(&req.Addr, req.AddrSize)
	switch {
	case err != nil:
		return err
	case req.JoinFlags > abi.UCMJoinSendOnlyFullMember:
		return fail(syscall.EINVAL, "there is no such way to join")
	}
	return c.with(req.ID, func(id *ucmID) error {
		if err := id.mayJoin(at.Addr()); err != nil {
			return err
		}
		qkey, err := id.useQKey(abi.UCMUDPQKey)
		if err != nil {
			return err
		}
		core := &id.ns.cm
		g := &ucmGroup{of: id, uid: req.UID}
		core.enter(g)
		if err := c.answer(req.Response, &abi.UCMCreateIDResp{ID: g.num}, abi.UCMCreateIDRespSize); err != nil {
			core.part(g)
			return err
		}
		if id.groups == nil {
			id.groups = map[*ucmGroup]struct{}{}
		}
		id.groups[g] = struct{}{}
		g.joined(udParam(id.way(gid16(at)), groupQPN, qkey, nil))
		return nil
	})
}

// mayJoin tells why an id cannot join a group at an address. Preconditions:
// id.mu is held.
func (id *ucmID) mayJoin(at netip.Addr) error {
	switch {
	case id.dev == nil, id.state != ucmBound && id.state != ucmAddrResolved:
		return fail(syscall.EINVAL, "the id is not bound to a device, or its route is resolved")
	case id.typ != abi.QPTUD:
		return fail(syscall.EINVAL, "an id of connections joins no group")
	case id.lost:
		return fail(syscall.ENODEV, "no network device has a route to the id's address")
	case at.IsUnspecified():
		return fail(syscall.EINVAL, "%v is no group", at)
	case at.Is6():
		return fail(linuxENOTSUPP, "groups of IPv6 are not joined over RoCE")
	}
	return nil
}

// joined raises the event of a join.
func (g *ucmGroup) joined(param *abi.UCMUDParam) {
	f, waits := g.of.lockFile(), false
	if g.of.uid != 0 {
		resp := abi.UCMEventResp{UID: g.uid, ID: g.num, Event: abi.UCMEventMulticastJoin}
		param.Put(resp.Param[:])
		waits = f.add(ucmEvent{of: g.of, group: g, resp: resp})
	}
	f.mu.Unlock()
	if waits {
		f.notify()
	}
}

// enter gives a membership the lowest free number.
func (c *ucmCore) enter(g *ucmGroup) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.groups == nil {
		c.groups = map[uint32]*ucmGroup{}
	}
	for c.groups[g.num] != nil {
		g.num++
	}
	c.groups[g.num] = g
}

// part ends a membership; false when it has ended.
func (c *ucmCore) part(g *ucmGroup) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.groups[g.num] != g {
		return false
	}
	delete(c.groups, g.num)
	return true
}

// leaveMcast ends a membership, and drops its event if that still waits.
func (c *ucmCall) leaveMcast() error {
	core := &c.f.proc.ns.cm
	num := binary.LittleEndian.Uint32(c.in[8:])
	core.mu.Lock()
	g := core.groups[num]
	core.mu.Unlock()
	switch {
	case g == nil:
		return fail(syscall.ENOENT, "membership %d does not exist", num)
	case g.of.file.Load() != c.f:
		return fail(syscall.EINVAL, "membership %d is another file's", num)
	case !core.part(g):
		return fail(syscall.ENOENT, "membership %d does not exist", num)
	}
	g.of.mu.Lock()
	delete(g.of.groups, g)
	g.of.mu.Unlock()
	f := g.of.lockFile()
	f.take(func(ev *ucmEvent) bool { return ev.group == g })
	reported := g.reported
	f.mu.Unlock()
	return c.answer(binary.LittleEndian.Uint64(c.in), &abi.UCMDestroyIDResp{EventsReported: reported}, abi.UCMDestroyIDRespSize)
}
