//go:build linux || darwin

package conform

import (
	"encoding/binary"
	"net/netip"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/tests/must"
)

// The commands of rdma_cm whose addresses are struct sockaddr_in6, or
// sockaddr_in in its place; librdmacm gives them where it may not bind to an
// address of InfiniBand.

// in6 is an address as they have it.
func (c *cmFile) in6(a netip.AddrPort) abi.SockaddrIn6 {
	var s abi.SockaddrStorage
	if a.IsValid() {
		must.Get(s.Set(a))(c.r)
	}
	return s.In6()
}

func (id *cmID) bindIP(a abi.SockaddrIn6) error {
	return id.c.do(abi.UCMCmdBindIP, &abi.UCMBindIP{ID: id.num, Addr: a}, abi.UCMBindIPSize, nil, nil, 0)
}

func (id *cmID) resolveIP(src, dst abi.SockaddrIn6) error {
	req := abi.UCMResolveIP{ID: id.num, TimeoutMS: 10_000, SrcAddr: src, DstAddr: dst}
	return id.c.do(abi.UCMCmdResolveIP, &req, abi.UCMResolveIPSize, nil, nil, 0)
}

func (id *cmID) joinIP(at abi.SockaddrIn6) (*cmGroup, error) {
	id.c.next++
	req := abi.UCMJoinIPMcast{UID: id.c.next, ID: id.num, Addr: at}
	return id.joined(abi.UCMCmdJoinIPMcast, &req, abi.UCMJoinIPMcastSize, &req.Response, req.UID)
}

// queryRoute asks for an id's addresses and path; the option means nothing.
func (id *cmID) queryRoute(room uint16) (answer []byte, err error) {
	return id.queryInto(abi.UCMCmdQueryRoute, 77, room)
}

// sayRoute writes an id's addresses and path down, and whether QUERY says the
// same of the device.
func (r *rig) sayRoute(id *cmID) {
	answer, err := id.queryRoute(abi.UCMQueryRouteRespSize)
	var resp abi.UCMQueryRouteResp
	if err == nil {
		err = resp.Parse(answer)
	}
	if err != nil {
		r.result(id.name+": QUERY_ROUTE", err)
		return
	}
	at := must.Get(id.query(abi.UCMQueryAddr))(r)
	r.say("%s: %d paths, port %d, the device of QUERY: %t; from QUERY's source %t, to its destination %t", id.name, resp.NumPaths, resp.PortNum,
		resp.NodeGUID == at.NodeGUID && resp.IBDevIndex == at.IBDevIndex, resp.SrcAddr == at.SrcAddr.In6(), resp.DstAddr == at.DstAddr.In6())
	p, second := resp.IBRoute[:abi.UCMRouteSize], resp.IBRoute[abi.UCMRouteSize:]
	src, _ := at.SrcAddr.AddrPort()
	dst, _ := at.DstAddr.AddrPort()
	flow := "another"
	switch binary.BigEndian.Uint32(p[abi.UCMRouteFlowLabel:]) {
	case 0:
		flow = "no"
	case portFlow(src, dst):
		flow = "the ports'"
	case portFlow(dst, src):
		flow = "the peer's"
	}
	r.say("  from %s to %s, LIDs %x, raw %d, %s flow, reversible %d, P_Key %x, hops %d, class %#x, paths %d, SL %d",
		r.place([16]byte(p[abi.UCMRouteSGID:])), r.place([16]byte(p[abi.UCMRouteDGID:])), p[abi.UCMRouteDLID:][:4], p[abi.UCMRouteRawTraffic],
		flow, p[abi.UCMRouteReversible], p[abi.UCMRoutePkey:][:2],
		p[abi.UCMRouteHopLimit], p[abi.UCMRouteTrafficClass], p[abi.UCMRouteNumbPath], p[abi.UCMRouteSL])
	r.say("  MTU %d %d, rate %d %d, life %d %d, preference %d, second path: %t", p[abi.UCMRouteMTUSelector], p[abi.UCMRouteMTU], p[abi.UCMRouteRateSelector],
		p[abi.UCMRouteRate], p[abi.UCMRoutePacketLifeTimeSelector], p[abi.UCMRoutePacketLifeTime], p[abi.UCMRoutePreference],
		[abi.UCMRouteSize]byte(second) != [abi.UCMRouteSize]byte{})
}

// portFlow is the flow label that Linux makes of an id's ports.
func portFlow(src, dst netip.AddrPort) uint32 {
	return (uint32(src.Port())*31 + uint32(dst.Port())) & 0xfffff
}

// strange is an address of a family that no command takes, or that does not
// fit.
func strange(family byte) abi.SockaddrIn6 { return abi.SockaddrIn6{0: family, 8: 1} }

// cmOlderTests give the older commands.
var cmOlderTests = []test{
	{"cm/bind-ip", func(r *rig) {
		c, other := r.cmFile(1), r.cmFile(1)
		bind := func(what string, a abi.SockaddrIn6) *cmID {
			id := c.create(what)
			if r.result(what, id.bindIP(a)) {
				r.sayAddresses(id, abi.UCMQueryAddr)
			}
			return id
		}
		bind("no family", strange(0))
		bind("a family of nothing", strange(99))
		bind("the family of InfiniBand", strange(abi.AFIB))
		bind("no host", c.in6(noHost))
		id := bind("a free port", c.in6(r.cmAddr(1, 0)))
		r.result("again", id.bindIP(c.in6(r.cmAddr(1, 0))))
		resp := must.Get(id.query(abi.UCMQueryAddr))(r)
		bind("the same", resp.SrcAddr.In6())
		bind("a wildcard", c.in6(netip.MustParseAddrPort("0.0.0.0:0")))
		bind("a wildcard of IPv6", c.in6(netip.MustParseAddrPort("[::]:0")))
		r.result("LISTEN", id.listen(1))
		r.result("BIND_IP of none", (&cmID{c: c, num: 0x7fffff00}).bindIP(c.in6(r.cmAddr(1, 0))))
		r.result("no family of none", (&cmID{c: c, num: 0x7fffff00}).bindIP(strange(0)))
		r.result("by another file", (&cmID{c: other, num: id.num}).bindIP(c.in6(r.cmAddr(1, 0))))
	}},
	{"cm/resolve-ip", func(r *rig) {
		c, other := r.cmFile(0), r.cmFile(0)
		here, there, none := c.in6(r.cmAddr(0, 0)), c.in6(r.cmAddr(1, 1)), abi.SockaddrIn6{}
		resolve := func(what string, src, dst abi.SockaddrIn6) *cmID {
			id := c.create(what)
			if r.result(what, id.resolveIP(src, dst)) {
				c.sayEvent()
				r.sayAddresses(id, abi.UCMQueryAddr)
			}
			return id
		}
		resolve("to no family", none, none)
		resolve("to a family of nothing", none, strange(99))
		resolve("to the family of InfiniBand", none, strange(abi.AFIB))
		resolve("from a family of nothing", strange(99), there)
		resolve("from the family of InfiniBand", strange(abi.AFIB), there)
		resolve("from an address of nobody", c.in6(noHost), there)
		resolve("no route", none, c.in6(netip.MustParseAddrPort("[2001:db8::1]:7471")))
		resolve("from an address", here, there)
		id := resolve("an address", none, there)
		r.result("again", id.resolveIP(none, there))
		r.result("RESOLVE_ROUTE", id.resolveRoute())
		c.sayEvent()
		bound := c.create("bound")
		r.must(bound.bindIP(here))
		r.result("from where it is bound", bound.resolveIP(none, there))
		c.sayEvent()
		loop := c.create("loopback")
		r.result("loopback", loop.resolveIP(none, c.in6(netip.MustParseAddrPort("0.0.0.0:7"))))
		c.sayEvent()
		r.result("RESOLVE_IP of none", (&cmID{c: c, num: 0x7fffff00}).resolveIP(none, there))
		r.result("to no family of none", (&cmID{c: c, num: 0x7fffff00}).resolveIP(none, none))
		r.result("by another file", (&cmID{c: other, num: id.num}).resolveIP(none, there))
	}},
	onCMPair("cm/query-route", func(r *rig, p *cmPair) {
		id, wild, ib := p.a.create("id"), p.a.create("wildcard"), p.a.create("of InfiniBand")
		r.sayRoute(id)
		r.must(wild.bindIP(p.a.in6(netip.MustParseAddrPort("0.0.0.0:0"))))
		r.sayRoute(wild)
		req := abi.UCMBind{ID: ib.num, AddrSize: abi.SockaddrIBSize, Addr: ibAddr(netip.IPv6Unspecified(), serviceTCP)}
		r.must(p.a.do(abi.UCMCmdBind, &req, abi.UCMBindSize, nil, nil, 0))
		r.sayRoute(ib)
		r.sayRoute(p.listener)
		r.must(id.setOption(abi.UCMLevelID, abi.UCMOptionTOS, 0x68))
		r.must(id.resolveIP(abi.SockaddrIn6{}, p.a.in6(p.at)))
		p.a.wantEvent(abi.UCMEventAddrResolved)
		id.name = "address resolved"
		r.sayRoute(id)
		r.must(id.resolveRoute())
		p.a.wantEvent(abi.UCMEventRouteResolved)
		id.name = "route resolved"
		r.sayRoute(id)
		p.request()
		r.sayRoute(p.active)
		r.sayRoute(p.passive)
		q := r.cmAsk().question()
		r.sayRoute(q.asks)
		r.sayRoute(q.answers)
		for _, room := range []uint16{0, 8, 199, 200, 203, 204, 208, 300} {
			answer, err := id.queryRoute(room)
			r.say("room for %d bytes: %s, %d written", room, errText(err), len(answer))
		}
		r.result("QUERY_ROUTE of none", errOf((&cmID{c: p.a, num: 0x7fffff00}).queryRoute(abi.UCMQueryRouteRespSize)))
		r.result("by another file", errOf((&cmID{c: r.cmFileOf(p.a.k), num: id.num}).queryRoute(abi.UCMQueryRouteRespSize)))
	}),
	onCM("cm/reserved-and-sizes", func(r *rig, c *cmFile) {
		id := c.create("id")
		bind := abi.UCMBind{ID: id.num, AddrSize: abi.SockaddrInSize, Reserved: 1}
		must.Get(bind.Addr.Set(r.cmAddr(0, 0)))(r)
		r.result("BIND with reserved bits", c.do(abi.UCMCmdBind, &bind, abi.UCMBindSize, nil, nil, 0))
		to := abi.UCMResolveAddr{TimeoutMS: 1000, DstSize: abi.SockaddrInSize, Reserved: 1}
		must.Get(to.DstAddr.Set(r.cmAddr(1, 1)))(r)
		resolve := func(what string) {
			to.ID = c.create(what).num
			r.result(what, c.do(abi.UCMCmdResolveAddr, &to, abi.UCMResolveAddrSize, nil, nil, 0))
		}
		resolve("RESOLVE_ADDR with reserved bits")
		to.Reserved = 0
		must.Get(to.SrcAddr.Set(noHost))(r)
		resolve("from nobody's address without a size")
		to.SrcAddr[0] = 99
		resolve("from no family's without a size")
		to.SrcSize = abi.SockaddrInSize
		resolve("from no family's with a size")
		to.SrcSize = 4
		to.SrcAddr[0] = abi.AFInet
		resolve("from one of a wrong size")
	}),
	onCM("cm/option-wrong", func(r *rig, c *cmFile) {
		for _, id := range []*cmID{c.create("id"), {c: c, num: 0x7fffff00}} {
			set := func(what string, level abi.UCMOptionLevel, o abi.UCMOption, addr uint64, n uint32) {
				req := abi.UCMSetOption{OptVal: addr, ID: id.num, Level: level, OptName: o, OptLen: n}
				r.result(what, c.do(abi.UCMCmdSetOption, &req, abi.UCMSetOptionSize, nil, nil, 0))
			}
			const nowhere = 0xfff0_0000_0000_0000
			set("no such option", abi.UCMLevelID, 9, c.addr, 1)
			set("no such option, nowhere", abi.UCMLevelID, 9, nowhere, 1)
			set("no such level, nowhere", 7, 0, nowhere, 1)
			set("TOS of no bytes, nowhere", abi.UCMLevelID, abi.UCMOptionTOS, nowhere, 0)
			set("TOS of 5 bytes, nowhere", abi.UCMLevelID, abi.UCMOptionTOS, nowhere, 5)
			set("TOS of 5 bytes", abi.UCMLevelID, abi.UCMOptionTOS, c.addr, 5)
			set("TOS of 1 GiB, nowhere", abi.UCMLevelID, abi.UCMOptionTOS, nowhere, 1<<30)
			set("no such option of InfiniBand", abi.UCMLevelIB, 9, c.addr, 72)
			set("a path of 71 bytes", abi.UCMLevelIB, abi.UCMOptionIBPath, c.addr, 71)
			set("no path", abi.UCMLevelIB, abi.UCMOptionIBPath, c.addr, 0)
		}
	}),
	onCMPair("cm/option-path", func(r *rig, p *cmPair) {
		id := p.a.create("id")
		set := func(flags ...uint32) error {
			var value []byte
			for i, f := range flags {
				rec := abi.UCMPathRec{Flags: f}
				for j := range rec.PathRec {
					rec.PathRec[j] = byte(0x81 + 16*i + j)
				}
				here, there := r.cmAddr(0, 0).Addr().As16(), p.at.Addr().As16()
				copy(rec.PathRec[8:], there[:])
				copy(rec.PathRec[24:], here[:])
				copy(rec.PathRec[50:], []byte{0xff, 0xff, 0, 0, 0x83, 0x80, 0x92}) // P_Key, class, MTU, rate, life
				value = append(value, make([]byte, abi.UCMPathRecSize)...)
				rec.Put(value[i*abi.UCMPathRecSize:])
			}
			return id.setOption(abi.UCMLevelIB, abi.UCMOptionIBPath, value...)
		}
		const whole, alternate = 0x2b, 0x2d // GMP, primary or alternate, both ways
		r.result("of a new id", set(whole))
		r.must(id.resolveAddr(netip.AddrPort{}, p.at))
		p.a.wantEvent(abi.UCMEventAddrResolved)
		r.result("an alternate path", set(alternate))
		r.result("two of none", set(0, alternate))
		r.result("an alternate path and a primary one", set(alternate, whole))
		p.a.sayEvent()
		r.result("again", set(whole))
		answer, err := id.queryPath(abi.UCMQueryPathRespSize + abi.UCMPathRecSize + 1) // as cm/query-path
		r.must(err)
		rec := answer[abi.UCMQueryPathRespSize+8:][:64]
		r.say("service %x, to the peer %t, class %x, reversible and paths %x, P_Key %x, %x, %x, preference %x, reserved %x", rec[:8], [16]byte(rec[8:24]) == p.at.Addr().As16(),
			rec[48], rec[49], rec[50:52], rec[52:54], rec[54:57], rec[57], rec[58:])
		r.say("flow and hops %x", binary.BigEndian.Uint32(rec[44:])&0x0fffffff)
		r.sayRoute(id)
		r.result("CONNECT", id.connect(cmParam(cmQPN(), "")))
		passive := p.b.made("passive", p.b.wantEvent(abi.UCMEventConnectRequest))
		attr := must.Get(passive.qpAttr(abi.QPSRTR))(r)
		r.say("class %#x, flow %#x", attr.AHAttr.TrafficClass, attr.AHAttr.FlowLabel)
	}),
	onCM("cm/join-ip", func(r *rig, c *cmFile) {
		id := c.bound("id", 0)
		join := func(what string, at abi.SockaddrIn6) *cmGroup {
			g, err := id.joinIP(at)
			if r.result(what, err) {
				c.sayEvent()
			}
			return g
		}
		join("no family", strange(0))
		join("a family of nothing", strange(99))
		join("the family of InfiniBand", strange(abi.AFIB))
		join("nothing", c.in6(netip.MustParseAddrPort("0.0.0.0:0")))
		join("a group of IPv6", c.in6(netip.MustParseAddrPort("[ff15::4d:5b]:0")))
		g := join("a group", c.in6(netip.AddrPortFrom(group, 0)))
		r.events("LEAVE_MCAST")(g.leave())
		r.result("JOIN_IP_MCAST of none", errOf((&cmID{c: c, num: 0x7fffff00}).joinIP(c.in6(netip.AddrPortFrom(group, 0)))))
		r.result("by another file", errOf((&cmID{c: r.cmFile(0), num: id.num}).joinIP(c.in6(netip.AddrPortFrom(group, 0)))))
		conn := c.create("of connections")
		r.must(conn.bindIP(c.in6(r.cmAddr(0, 0))))
		r.result("of connections", errOf(conn.joinIP(c.in6(netip.AddrPortFrom(group, 0)))))
		req := abi.UCMJoinIPMcast{Response: 0xfff0_0000_0000_0000, UID: 99, ID: id.num, Addr: c.in6(netip.AddrPortFrom(group, 0))}
		r.result("answered nowhere", c.do(abi.UCMCmdJoinIPMcast, &req, abi.UCMJoinIPMcastSize, nil, nil, 4))
		r.result("without room", c.do(abi.UCMCmdJoinIPMcast, &req, abi.UCMJoinIPMcastSize, nil, nil, 3))
		r.say("no more events: %t", c.idle())
	}),
}
