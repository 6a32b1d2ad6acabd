//go:build linux || darwin

package conform

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/tests/must"
)

// waits returns when an event waits in the file.
func waits(c *cmFile) {
	c.r.must(c.f.(kshim.Waiter).WaitReadable(c.r.withDeadline()))
}

// queryPath asks for an id's path records.
func (id *cmID) queryPath(room int) (answer []byte, err error) {
	return id.queryInto(abi.UCMCmdQuery, abi.UCMQueryPath, uint16(room))
}

// queryInto gives a query with room for so many bytes of its answer, and
// returns as many as were written.
func (id *cmID) queryInto(cmd abi.UCMCommand, what abi.UCMQueryOption, room uint16) (answer []byte, err error) {
	c := id.c
	for i := range c.mem {
		c.mem[i] = 0xee
	}
	body := make([]byte, abi.UCMQuerySize)
	(&abi.UCMQuery{Response: c.addr, ID: id.num, Option: what}).Put(body)
	err = c.raw(cmd, uint16(len(body)), room, body)
	n := len(c.mem)
	for n > 0 && c.mem[n-1] == 0xee {
		n--
	}
	return c.mem[:n], err
}

// sayPath writes the path records of an id down.
func (r *rig) sayPath(id *cmID, room int) {
	answer, err := id.queryPath(room)
	if err != nil {
		r.say("%s, room for %d bytes: %s", id.name, room, errText(err))
		return
	}
	r.say("%s, room for %d bytes: %d paths, %d bytes", id.name, room, le.Uint32(id.c.mem), len(answer))
	if len(answer) < abi.UCMQueryPathRespSize+abi.UCMPathRecSize {
		return
	}
	var path abi.UCMPathRec
	r.must(path.Parse(answer[abi.UCMQueryPathRespSize:]))
	rec := path.PathRec[:]
	at := must.Get(id.query(abi.UCMQueryAddr))(r)
	src, _ := at.SrcAddr.AddrPort()
	dst, _ := at.DstAddr.AddrPort()
	flow := binary.BigEndian.Uint32(rec[44:]) >> 8 & 0xfffff // behind a bit of an address of Ethernet, as the LIDs are
	r.say("  flags %#x, service %#x without its port, to the peer %t, from here %t, the ports' flow %t, hops %d", path.Flags, binary.BigEndian.Uint64(rec)&^0xffff, [16]byte(rec[8:24]) == dst.Addr().As16(),
		[16]byte(rec[24:40]) == src.Addr().As16(), flow == portFlow(src, dst), rec[47])
	r.say("  class %#x, %x, P_Key %x, QoS and SL %x, MTU %#x, rate %#x, life %#x, preference %#x, %x", rec[48], rec[49], rec[50:52], rec[52:54], rec[54], rec[55], rec[56], rec[57], rec[58:])
}

// sayAddresses writes the addresses of an id down, as they are asked for.
func (r *rig) sayAddresses(id *cmID, what abi.UCMQueryOption) {
	resp, err := id.query(what)
	if err != nil {
		r.result(id.name+": QUERY", err)
		return
	}
	one := func(s *abi.SockaddrStorage, size uint16) string {
		if gid, err := s.GID(); err == nil {
			return fmt.Sprintf("%d bytes, P_Key %#x, %s, service %#x without its port, mask %#x", size, s.Pkey(), r.place(gid), s.Service()&^0xffff, s.Mask())
		}
		a, err := s.AddrPort()
		if err != nil {
			return fmt.Sprintf("%d bytes of nothing", size)
		}
		return fmt.Sprintf("%d bytes, %s", size, r.place(a.Addr().As16()))
	}
	r.say("%s: from %s; to %s", id.name, one(&resp.SrcAddr, resp.SrcSize), one(&resp.DstAddr, resp.DstSize))
}

// ibAddr is a struct sockaddr_ib.
func ibAddr(gid netip.Addr, service uint64) (s abi.SockaddrStorage) {
	s.SetGID(gid.As16(), 0xffff, service, ^uint64(0))
	return s
}

// eachAddress gives names and addresses by turns.
func eachAddress(list ...any) func(func(string, abi.SockaddrStorage) bool) {
	return func(yield func(string, abi.SockaddrStorage) bool) {
		for i := 0; i < len(list) && yield(list[i].(string), list[i+1].(abi.SockaddrStorage)); i += 2 {
		}
	}
}

// The services of port spaces, without ports (IBA annex A11).
const serviceTCP, serviceUDP, serviceIB = uint64(abi.UCMPSTCP) << 16, uint64(abi.UCMPSUDP) << 16, uint64(abi.UCMPSIB) << 16

// cmQueryTests ask for addresses and paths.
var cmQueryTests = []test{
	{"cm/query-path", func(r *rig) {
		const most = abi.UCMQueryPathRespSize + 6*abi.UCMPathRecSize
		p := r.cmPair()
		id := p.a.create("id")
		r.sayPath(id, most)
		r.must(id.setOption(abi.UCMLevelID, abi.UCMOptionTOS, 0x68))
		r.must(id.resolveAddr(netip.AddrPort{}, p.at))
		p.a.wantEvent(abi.UCMEventAddrResolved)
		r.sayPath(id, most)
		r.must(id.resolveRoute())
		p.a.wantEvent(abi.UCMEventRouteResolved)
		// Not 80: what has just room is left out by older Linux (6.1.176).
		for _, room := range []int{0, 4, 7, 8, 40, 79, 81, 152, most} {
			r.sayPath(id, room)
		}
		p.request()
		r.sayPath(p.active, most)
		r.sayPath(p.passive, most)
		r.sayPath(p.listener, most)
		q := r.cmAsk().question()
		r.sayPath(q.asks, most)
		r.sayPath(q.answers, most)
	}},
	{"cm/query-addresses", func(r *rig) {
		p := r.cmPair().request()
		q := r.cmAsk().question()
		wild, local, id := p.a.create("wildcard"), p.a.create("loopback"), p.a.create("new")
		r.must(wild.bind(netip.MustParseAddrPort("0.0.0.0:0")))
		r.must(local.bind(netip.MustParseAddrPort("[::1]:0")))
		for _, what := range []abi.UCMQueryOption{abi.UCMQueryAddr, abi.UCMQueryGID} {
			for _, id := range []*cmID{id, wild, local, p.listener, p.active, p.passive, q.listener, q.asks, q.answers} {
				r.sayAddresses(id, what)
			}
		}
		for _, room := range []uint16{0, 4, 272, 279, 280} {
			for _, what := range []abi.UCMQueryOption{abi.UCMQueryAddr, abi.UCMQueryGID, 3} {
				_, err := id.queryInto(abi.UCMCmdQuery, what, room)
				r.result(fmt.Sprintf("QUERY %d, room for %d bytes", what, room), err)
			}
		}
	}},
	onCM("cm/addresses-of-infiniband", func(r *rig, c *cmFile) {
		here := netip.AddrFrom16(r.cmAddr(0, 0).Addr().As16())
		for _, ps := range []abi.UCMPortSpace{abi.UCMPSTCP, abi.UCMPSUDP, abi.UCMPSIB} {
			for _, a := range []struct {
				name string
				addr abi.SockaddrStorage
				size uint16
			}{
				{"any", ibAddr(netip.IPv6Unspecified(), 0), 48},
				{"any for TCP", ibAddr(netip.IPv6Unspecified(), serviceTCP), 48},
				{"any for UDP", ibAddr(netip.IPv6Unspecified(), serviceUDP), 48},
				{"any for IB", ibAddr(netip.IPv6Unspecified(), serviceIB), 48},
				{"any for another", ibAddr(netip.IPv6Unspecified(), 0x1234_0000_0000), 48},
				{"any with a port", ibAddr(netip.IPv6Unspecified(), serviceTCP|1), 48},
				{"in 28 bytes", ibAddr(netip.IPv6Unspecified(), serviceTCP), 28},
				{"here", ibAddr(here, serviceTCP), 48},
				{"here for UDP", ibAddr(here, serviceUDP), 48},
			} {
				id := must.Get(c.createIn(a.name, ps, abi.QPTRC))(r)
				id.ud = ps == abi.UCMPSUDP
				req := abi.UCMBind{ID: id.num, AddrSize: a.size, Addr: a.addr}
				if r.result(fmt.Sprintf("%v, %s", ps, a.name), c.do(abi.UCMCmdBind, &req, abi.UCMBindSize, nil, nil, 0)) {
					r.sayAddresses(id, abi.UCMQueryAddr)
					r.sayAddresses(id, abi.UCMQueryGID)
					r.result("LISTEN", id.listen(4))
				}
				must.Get(id.destroy())(r)
			}
		}
	}),
	onCM("cm/resolve-addresses-of-infiniband", func(r *rig, c *cmFile) {
		here := netip.AddrFrom16(r.cmAddr(0, 0).Addr().As16())
		for name, addr := range eachAddress(
			"any", ibAddr(netip.IPv6Unspecified(), serviceTCP), "another service", ibAddr(netip.IPv6Unspecified(), 0x1234_0000_0000),
			"here", ibAddr(here, serviceTCP|7), "here for UDP", ibAddr(here, serviceUDP|7), "near", ibAddr(noHost.Addr(), serviceTCP|7),
			"far", ibAddr(netip.MustParseAddr("2001:db8::1"), serviceTCP|7),
		) {
			id := c.create(name)
			to := abi.UCMResolveAddr{ID: id.num, TimeoutMS: 1000, DstSize: abi.SockaddrIBSize, DstAddr: addr}
			if r.result("RESOLVE_ADDR to "+name, c.do(abi.UCMCmdResolveAddr, &to, abi.UCMResolveAddrSize, nil, nil, 0)) {
				c.sayEvent()
				r.sayAddresses(id, abi.UCMQueryAddr)
				r.result("RESOLVE_ROUTE", id.resolveRoute())
			}
		}
	}),
	{"cm/addresses-of-infiniband-listen", func(r *rig) {
		c, d := r.cmFile(1), r.cmFile(0)
		l := c.create("listener")
		req := abi.UCMBind{ID: l.num, AddrSize: abi.SockaddrIBSize, Addr: ibAddr(netip.IPv6Unspecified(), serviceTCP)}
		r.must(c.do(abi.UCMCmdBind, &req, abi.UCMBindSize, nil, nil, 0))
		resp := must.Get(l.query(abi.UCMQueryGID))(r)
		r.must(l.listen(4))
		id := d.create("id")
		id.resolve(r.cmAddr(1, uint16(resp.SrcAddr.Service())))
		r.must(id.connect(cmParam(cmQPN(), "")))
		d.sayEvent()
		r.say("no request: %t", c.idle())
	}},
	{"cm/listen-for-one-family", func(r *rig) {
		for _, create := range []func(*cmFile, string) *cmID{(*cmFile).create, (*cmFile).datagrams} {
			c, d := r.cmFile(1), r.cmFile(0)
			l := create(c, "listener")
			r.must(l.setOption(abi.UCMLevelID, abi.UCMOptionAFOnly, 1, 0, 0, 0))
			r.must(l.bind(netip.MustParseAddrPort("[::]:0")))
			_, at, _ := l.addrs()
			r.must(l.listen(4))
			id := create(d, "id")
			id.resolve(r.cmAddr(1, at.Port()))
			r.must(id.connect(cmParam(cmQPN(), "")))
			d.sayEvent()
			r.say("no request: %t", c.idle())
			other := create(c, "listener for IPv4")
			r.must(other.setOption(abi.UCMLevelID, abi.UCMOptionAFOnly, 1, 0, 0, 0))
			r.result("BIND to the same port", other.bind(netip.AddrPortFrom(netip.IPv4Unspecified(), at.Port())))
			r.result("LISTEN", other.listen(4))
			id = create(d, "id")
			id.resolve(r.cmAddr(1, at.Port()))
			r.must(id.connect(cmParam(cmQPN(), "")))
			c.sayEvent()
		}
	}},
	onCM("cm/resolve-loopback", func(r *rig, c *cmFile) {
		id := c.create("id")
		r.result("RESOLVE_ADDR", id.resolveAddr(netip.AddrPort{}, netip.MustParseAddrPort("0.0.0.0:7")))
		c.sayEvent()
		resp, src, dst := id.addrs()
		r.say("from %v to %v, P_Key %#x", src.Addr(), dst, resp.Pkey)
		r.result("RESOLVE_ROUTE", id.resolveRoute())
	}),
}
