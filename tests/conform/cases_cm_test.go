//go:build linux || darwin

package conform

import (
	"net/netip"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/tests/must"
)

// noHost is an address that is no machine's (RFC 5737).
var noHost = netip.MustParseAddrPort("192.0.2.1:7471")

// cmTests are the connection manager's commands before there is a connection.
var cmTests = []test{
	onCM("cm/header", func(r *rig, c *cmFile) {
		r.result("3 bytes", errOf(c.f.Write([]byte{1, 2, 3})))
		r.result("no such command", c.raw(23, 0, 0, nil))
		r.result("GET_OPTION", c.raw(abi.UCMCmdGetOption, 0, 0, make([]byte, 64)))
		r.result("fewer bytes than said", c.raw(abi.UCMCmdListen, 8, 0, make([]byte, 4)))
		r.result("more bytes than said", c.raw(abi.UCMCmdListen, 8, 0, make([]byte, 64)))
		short := make([]byte, abi.UCMCreateIDSize)
		(&abi.UCMCreateID{UID: 1, Response: c.addr, PS: abi.UCMPSTCP, QPType: abi.QPTRC}).Put(short)
		r.result("CREATE_ID, too short", c.raw(abi.UCMCmdCreateID, uint16(len(short)-4), 4, short[:len(short)-4]))
		r.result("CREATE_ID, no room", c.raw(abi.UCMCmdCreateID, uint16(len(short)), 2, short))
		r.result("CREATE_ID, too much room", c.raw(abi.UCMCmdCreateID, uint16(len(short)), 64, short))
		(&abi.UCMCreateID{UID: 1, Response: 0xfff0_0000_0000_0000, PS: abi.UCMPSTCP, QPType: abi.QPTRC}).Put(short)
		r.result("CREATE_ID, bad address", c.raw(abi.UCMCmdCreateID, uint16(len(short)), 4, short))
		r.result("GET_EVENT, no event", errOf(c.event()))
		r.result("GET_EVENT, no room", c.raw(abi.UCMCmdGetEvent, 8, 16, make([]byte, 8)))
	}),
	{"cm/ids", func(r *rig) {
		c, other := r.cmFile(0), r.cmFile(0)
		for _, ps := range []abi.UCMPortSpace{0, 1, 0x0107, 0xffff} {
			req := abi.UCMCreateID{UID: 1, PS: ps, QPType: abi.QPTRC}
			var resp abi.UCMCreateIDResp
			err := c.do(abi.UCMCmdCreateID, &req, abi.UCMCreateIDSize, &req.Response, &resp, abi.UCMCreateIDRespSize)
			r.say("port space %#x: %s", uint16(ps), errText(err))
		}
		id := c.create("id")
		r.say("another: %t", c.create("another").num != id.num)
		stranger := &cmID{c: other, num: id.num}
		r.result("BIND by another file", stranger.bind(r.cmAddr(0, 0)))
		r.result("DESTROY_ID by another file", errOf(stranger.destroy()))
		none := &cmID{c: c, num: 0x7fffff00}
		r.result("BIND of none", none.bind(r.cmAddr(0, 0)))
		r.result("CONNECT of none", none.connect(cmParam(1, "")))
		r.events("DESTROY_ID")(id.destroy())
		r.result("again", errOf(id.destroy()))
		id = c.create("id")
		r.must(id.resolveAddr(netip.AddrPort{}, r.cmAddr(1, 1)))
		c.sayEvent()
		r.must(id.resolveRoute())
		c.sayEvent()
		r.events("DESTROY_ID")(id.destroy())
	}},
	{"cm/bind", func(r *rig) {
		c := r.cmFile(1)
		bind := func(what string, a netip.AddrPort) *cmID {
			id := c.create(what)
			r.result(what, id.bind(a))
			return id
		}
		bind("no host", noHost)
		id := bind("a free port", r.cmAddr(1, 0))
		resp := must.Get(id.query(abi.UCMQueryAddr))(r)
		at := must.Get(resp.SrcAddr.AddrPort())(r)
		dst, _ := resp.DstAddr.AddrPort()
		r.say("address is the side's: %t, port is chosen: %t, peer: %v, device: %t, port %d, P_Key %#x", at.Addr() == r.cmAddr(1, 0).Addr(),
			at.Port() != 0, dst.IsValid(), resp.NodeGUID != 0, resp.PortNum, resp.Pkey)
		r.result("again", id.bind(r.cmAddr(1, 0)))
		bind("the same", at)
		bind("a wildcard with its port", netip.AddrPortFrom(netip.IPv4Unspecified(), at.Port()))
		bind("a wildcard of IPv6 with its port", netip.AddrPortFrom(netip.IPv6Unspecified(), at.Port()))
		six := c.create("a wildcard of IPv6 only")
		r.result("AFONLY", six.setOption(abi.UCMLevelID, abi.UCMOptionAFOnly, 1, 0, 0, 0))
		r.result(six.name, six.bind(netip.AddrPortFrom(netip.IPv6Unspecified(), at.Port())))
		wild := bind("a wildcard", netip.AddrPortFrom(netip.IPv4Unspecified(), 0))
		resp = must.Get(wild.query(abi.UCMQueryAddr))(r)
		all := must.Get(resp.SrcAddr.AddrPort())(r)
		r.say("device: %t, port is chosen: %t", resp.NodeGUID != 0, all.Port() != 0)
		bind("an address with the wildcard's port", r.cmAddr(1, all.Port()))
		must.Get(id.destroy())(r)
		bind("the same, once it is free", at)
	}},
	onCM("cm/bind-sizes", func(r *rig, c *cmFile) {
		for _, size := range []uint16{0, 4, 15, 17, 28, 128, 200} {
			id := c.create("id")
			req := abi.UCMBind{ID: id.num}
			must.Get(req.Addr.Set(r.cmAddr(0, 0)))(r)
			req.AddrSize = size
			r.say("%d bytes: %s", size, errText(c.do(abi.UCMCmdBind, &req, abi.UCMBindSize, nil, nil, 0)))
			res := abi.UCMResolveAddr{ID: id.num, TimeoutMS: 1000, DstSize: size, DstAddr: req.Addr}
			r.say("to %d bytes: %s", size, errText(c.do(abi.UCMCmdResolveAddr, &res, abi.UCMResolveAddrSize, nil, nil, 0)))
		}
	}),
	{"cm/reuse-address", func(r *rig) {
		c := r.cmFile(1)
		reuse := func(name string, on byte) *cmID {
			id := c.create(name)
			r.result(name, id.setOption(abi.UCMLevelID, abi.UCMOptionReuseAddr, on, 0, 0, 0))
			return id
		}
		one := reuse("one", 1)
		r.must(one.bind(r.cmAddr(1, 0)))
		_, at, _ := one.addrs()
		two := reuse("two", 1)
		r.result("BIND of two", two.bind(at))
		three := reuse("three", 0)
		r.result("BIND of three", three.bind(at))
		r.result("LISTEN of one", one.listen(1))
		r.result("LISTEN of two", two.listen(1))
		four := reuse("four", 1)
		r.result("BIND of four to what listens", four.bind(at))
	}},
	{"cm/listen", func(r *rig) {
		c := r.cmFile(1)
		bound := func(at netip.AddrPort) *cmID {
			id := c.create("id")
			r.must(id.bind(at))
			return id
		}
		r.result("LISTEN, not bound", c.create("id").listen(1))
		id := bound(r.cmAddr(1, 0))
		r.result("LISTEN", id.listen(1))
		r.result("again", id.listen(1))
		r.result("LISTEN with backlog 0", bound(r.cmAddr(1, 0)).listen(0))
		r.result("LISTEN with a large backlog", bound(r.cmAddr(1, 0)).listen(1<<31))
		r.result("LISTEN on all devices", bound(netip.MustParseAddrPort("0.0.0.0:0")).listen(1))
		r.result("LISTEN on all devices, IPv6", bound(netip.MustParseAddrPort("[::]:0")).listen(1))
	}},
	onCM("cm/resolve", func(r *rig, c *cmFile) {
		resolve := func(what string, src, dst netip.AddrPort) *cmID {
			id := c.create("id")
			r.result(what, id.resolveAddr(src, dst))
			return id
		}
		resolve("no route", netip.AddrPort{}, netip.MustParseAddrPort("[2001:db8::1]:7471")) // no side has IPv6
		resolve("from an address of nobody", noHost, r.cmAddr(1, 1))
		id := c.create("id")
		r.result("RESOLVE_ROUTE at once", id.resolveRoute())
		id = resolve("an address", netip.AddrPort{}, r.cmAddr(1, 1))
		c.sayEvent()
		r.result("again", id.resolveAddr(netip.AddrPort{}, r.cmAddr(1, 1)))
		r.result("RESOLVE_ROUTE", id.resolveRoute())
		c.sayEvent()
		r.result("RESOLVE_ROUTE again", id.resolveRoute())
		resp, src, dst := id.addrs()
		r.say("from this side: %t, from a port: %t, to %t, device: %t, port %d, P_Key %#x, sizes %d %d", src.Addr() == r.cmAddr(0, 0).Addr(), src.Port() != 0,
			dst == r.cmAddr(1, 1), resp.NodeGUID != 0, resp.PortNum, resp.Pkey, resp.SrcSize, resp.DstSize)
		resolve("from an address", r.cmAddr(0, 0), r.cmAddr(1, 1))
		c.sayEvent()
		bound := c.create("bound")
		r.must(bound.bind(r.cmAddr(0, 0)))
		r.result("from where it is bound", bound.resolveAddr(netip.AddrPort{}, r.cmAddr(1, 1)))
		c.sayEvent()
		r.say("no more events: %t", c.idle())
	}),
	onCM("cm/migrate", func(r *rig, from *cmFile) {
		to := r.cmFileOf(from.k)
		id, other := from.create("id"), from.create("other")
		r.result("from a descriptor that is not open", errOf(id.migrate(to, 1<<20)))
		r.result("from a file that has it not", errOf(id.migrate(to, to.fd())))
		r.must(id.resolveAddr(netip.AddrPort{}, r.cmAddr(1, 1)))
		waits(from)
		r.must(other.resolveAddr(netip.AddrPort{}, r.cmAddr(1, 1)))
		reported, err := id.migrate(to, from.fd())
		r.result("with an event that waits", err)
		r.say("events that were read: %d", reported)
		to.sayEvent()
		from.sayEvent()
		id.c = from
		r.result("RESOLVE_ROUTE by the old file", id.resolveRoute())
		id.c = to
		r.result("RESOLVE_ROUTE by the new one", id.resolveRoute())
		to.sayEvent()
		reported, err = id.migrate(to, to.fd())
		r.result("to where it is", err)
		r.say("events that were read: %d", reported)
		reported, err = id.destroy()
		r.result("DESTROY_ID", err)
		r.say("events that were read: %d; more events: %t %t", reported, !from.idle(), !to.idle())
	}),
	onCM("cm/options", func(r *rig, c *cmFile) {
		id := c.create("id")
		set := func(level abi.UCMOptionLevel, o abi.UCMOption, value ...byte) {
			r.say("level %d, option %d, %d bytes: %s", level, o, len(value), errText(id.setOption(level, o, value...)))
		}
		set(abi.UCMLevelID, abi.UCMOptionTOS, 8)
		set(abi.UCMLevelID, abi.UCMOptionTOS, 8, 0)
		set(abi.UCMLevelID, abi.UCMOptionTOS)
		set(abi.UCMLevelID, abi.UCMOptionReuseAddr, 1)
		set(abi.UCMLevelID, abi.UCMOptionReuseAddr, 1, 0, 0, 0)
		set(abi.UCMLevelID, abi.UCMOptionReuseAddr, 2, 0, 0, 0)
		set(abi.UCMLevelID, abi.UCMOptionAFOnly, 1)
		set(abi.UCMLevelID, abi.UCMOptionAFOnly, 1, 0, 0, 0)
		set(abi.UCMLevelID, abi.UCMOptionAckTimeout, 14)
		set(abi.UCMLevelID, abi.UCMOptionAckTimeout, 31)
		set(abi.UCMLevelID, abi.UCMOptionAckTimeout, 32)
		set(abi.UCMLevelID, abi.UCMOptionAckTimeout, 14, 0)
		set(abi.UCMLevelID, 4, 1, 0, 0, 0)
		set(2, 0, 1)
		id.num = 0x7fffff00
		set(abi.UCMLevelID, abi.UCMOptionTOS, 8)
	}),
}
