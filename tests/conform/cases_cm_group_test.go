//go:build linux || darwin

package conform

import (
	"net/netip"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/tests/must"
)

// cmGroup is a membership of an id; its events have the uid of one.
type cmGroup struct{ *cmID }

// join joins a group for sending and receiving.
func (id *cmID) join(at netip.Addr) (*cmGroup, error) {
	return id.joinAs(netip.AddrPortFrom(at, 0), 0, abi.UCMJoinFullMember)
}

// joinAs joins a group at an address of a size, 0 for the right one.
func (id *cmID) joinAs(at netip.AddrPort, size uint16, flag abi.UCMJoinFlag) (*cmGroup, error) {
	id.c.next++
	req := abi.UCMJoinMcast{UID: id.c.next, ID: id.num, JoinFlags: flag}
	right := must.Get(req.Addr.Set(at))(id.c.r)
	if req.AddrSize = size; size == 0 {
		req.AddrSize = right
	}
	return id.joined(abi.UCMCmdJoinMcast, &req, abi.UCMJoinMcastSize, &req.Response, req.UID)
}

// joined gives a command that joins a group, and the membership.
func (id *cmID) joined(
	cmd abi.UCMCommand, in abi.Struct, size int, response *uint64, uid uint64,
) (*cmGroup, error) {
	var resp abi.UCMCreateIDResp
	if err := id.c.do(cmd, in, size, response, &resp, abi.UCMCreateIDRespSize); err != nil {
		return nil, err
	}
	g := &cmGroup{&cmID{c: id.c, name: id.name + "'s group", num: resp.ID, uid: uid, ud: true}}
	id.c.ids[g.uid] = g.cmID
	return g, nil
}

func (g *cmGroup) leave() (reported uint32, err error) {
	req := abi.UCMDestroyID{ID: g.num}
	var resp abi.UCMDestroyIDResp
	err = g.c.do(abi.UCMCmdLeaveMcast, &req, abi.UCMDestroyIDSize, &req.Response, &resp, abi.UCMDestroyIDRespSize)
	return resp.EventsReported, err
}

// bound is an id of datagrams that is bound to a side's address.
func (c *cmFile) bound(name string, side int) *cmID {
	id := c.datagrams(name)
	c.r.must(id.bind(c.r.cmAddr(side, 0)))
	return id
}

// cmGroupTests are ids that join multicast groups.
var cmGroupTests = []test{
	{"cm/join", func(r *rig) {
		c, other := r.cmFile(0), r.cmFile(0)
		id := c.bound("id", 0)
		g, err := id.join(group)
		r.result("JOIN_MCAST", err)
		c.sayEvent()
		again, err := id.join(group)
		r.result("again", err)
		c.sayEvent()
		r.say("the same id: %t", again.num == g.num)
		send, err := id.joinAs(netip.AddrPortFrom(group.Next(), 7), 0, abi.UCMJoinSendOnlyFullMember)
		r.result("to send", err)
		c.sayEvent()
		r.sayDatagramAttr(id, abi.QPSInit)
		c, g.c = g.c, other
		r.result("LEAVE_MCAST by another file", errOf(g.leave()))
		g.c = c
		r.events("LEAVE_MCAST")(g.leave())
		r.result("again", errOf(g.leave()))
		r.events("DESTROY_ID")(id.destroy())
		r.result("LEAVE_MCAST of a destroyed id", errOf(send.leave()))
		r.say("no more events: %t", c.idle())
	}},
	onCM("cm/join-and-leave-before-the-event", func(r *rig, c *cmFile) {
		id := c.bound("id", 0)
		g := must.Get(id.join(group))(r)
		waits(c)
		r.events("LEAVE_MCAST")(g.leave())
		r.say("no event: %t", c.idle())
	}),
	onCM("cm/join-as", func(r *rig, c *cmFile) {
		id := c.bound("id", 0)
		join := func(what string, at string, size uint16, flag abi.UCMJoinFlag) {
			_, err := id.joinAs(netip.MustParseAddrPort(at), size, flag)
			if r.result(what, err) {
				c.sayEvent()
			}
		}
		join("as nothing", "239.77.4.91:0", 0, 2)
		join("as all", "239.77.4.91:0", 0, 0xffff)
		join("at 4 bytes", "239.77.4.91:0", 4, 0)
		join("at 28 bytes", "239.77.4.91:0", 28, 0)
		join("at 16 bytes of IPv6", "[ff15::4d:5b]:0", 16, 0)
		join("at nothing", "0.0.0.0:0", 0, 0)
		join("at nothing of IPv6", "[::]:0", 0, 0)
		join("at a host of the network 0", "0.1.2.3:0", 0, 0)
		join("at a host", "10.1.2.3:0", 0, 0)
		join("at a group of IPv6", "[ff15::4d:5b]:0", 0, 0)
		join("at all hosts", "224.0.0.1:0", 0, 0)
	}),
	{"cm/join-for-connections", func(r *rig) {
		id := r.cmFile(0).create("id")
		r.must(id.bind(r.cmAddr(0, 0)))
		r.result("JOIN_MCAST", errOf(id.join(group)))
	}},
	onCM("cm/join-answered-nowhere", func(r *rig, c *cmFile) {
		id := c.bound("id", 0)
		req := abi.UCMJoinMcast{Response: 0xfff0_0000_0000_0000, UID: 99, ID: id.num}
		req.AddrSize = must.Get(req.Addr.Set(netip.AddrPortFrom(group, 0)))(r)
		r.result("JOIN_MCAST", c.do(abi.UCMCmdJoinMcast, &req, abi.UCMJoinMcastSize, nil, nil, 4))
		r.result("without room", c.do(abi.UCMCmdJoinMcast, &req, abi.UCMJoinMcastSize, nil, nil, 3))
		g := must.Get(id.join(group))(r)
		c.sayEvent()
		leave := abi.UCMDestroyID{Response: 0xfff0_0000_0000_0000, ID: g.num}
		r.result("LEAVE_MCAST without room",
			c.do(abi.UCMCmdLeaveMcast, &leave, abi.UCMDestroyIDSize, nil, nil, 3))
		r.result("LEAVE_MCAST", c.do(abi.UCMCmdLeaveMcast, &leave, abi.UCMDestroyIDSize, nil, nil, 4))
		r.result("again", errOf(g.leave()))
	}),
	onCM("cm/join-and-migrate", func(r *rig, from *cmFile) {
		to := r.cmFileOf(from.k)
		id := from.bound("id", 0)
		g := must.Get(id.join(group))(r)
		waits(from)
		r.events("MIGRATE_ID")(id.migrate(to, from.fd()))
		to.ids[g.uid] = g.cmID
		to.sayEvent()
		r.result("LEAVE_MCAST by the old file", errOf(g.leave()))
		g.c = to
		r.events("LEAVE_MCAST by the new one")(g.leave())
		r.say("no more events: %t %t", from.idle(), to.idle())
	}),
	onCM("cm/join-after-resolving", func(r *rig, c *cmFile) {
		id := c.datagrams("id")
		r.must(id.setOption(abi.UCMLevelID, abi.UCMOptionTOS, 0x68))
		r.result("RESOLVE_ADDR of a group", id.resolveAddr(r.cmAddr(0, 0), netip.AddrPortFrom(group, 0)))
		c.sayEvent()
		r.result("JOIN_MCAST", errOf(id.join(group)))
		c.sayEvent()
		r.result("RESOLVE_ROUTE", id.resolveRoute())
		c.sayEvent()
		r.result("JOIN_MCAST", errOf(id.join(group)))
	}),
}
