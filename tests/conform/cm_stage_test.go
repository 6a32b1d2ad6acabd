//go:build linux || darwin

package conform

import (
	"net/netip"
	"strings"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/tests/must"
)

// cmPair is two files, one of which listens, and the two ends of a connection
// on its way.
type cmPair struct {
	r               *rig
	a, b            *cmFile
	listener        *cmID
	at              netip.AddrPort // where it listens
	active, passive *cmID
	qpnA, qpnB      uint32
	ackTimeout      uint8 // of the active side, 0 for the kernel's
}

func (r *rig) cmPair() *cmPair {
	p := &cmPair{r: r, a: r.cmFile(0), b: r.cmFile(1), qpnA: cmQPN(), qpnB: cmQPN()}
	p.listener = p.b.create("listener")
	p.at = p.listener.serve()
	return p
}

// serve lets an id of side 1 listen, and returns where.
func (id *cmID) serve() netip.AddrPort {
	r := id.c.r
	r.must(id.bind(r.cmAddr(1, 0)))
	_, at, _ := id.addrs()
	r.must(id.listen(16))
	return at
}

// resolve finds an id's route.
func (id *cmID) resolve(to netip.AddrPort) {
	r := id.c.r
	r.must(id.resolveAddr(netip.AddrPort{}, to))
	id.c.wantEvent(abi.UCMEventAddrResolved)
	r.must(id.resolveRoute())
	id.c.wantEvent(abi.UCMEventRouteResolved)
}

// dial makes an id of file a whose route to the listener is resolved.
func (p *cmPair) dial(name string) *cmID {
	id := p.a.create(name)
	if p.ackTimeout != 0 {
		p.r.must(id.setOption(abi.UCMLevelID, abi.UCMOptionAckTimeout, p.ackTimeout))
	}
	id.resolve(p.at)
	return id
}

// request brings the pair to where the passive side has a request.
func (p *cmPair) request() *cmPair {
	p.active = p.dial("active")
	p.r.must(p.active.connect(cmParam(p.qpnA, "hello")))
	p.passive = p.b.made("passive", p.b.wantEvent(abi.UCMEventConnectRequest))
	return p
}

// reply goes on to where the active side has the reply.
func (p *cmPair) reply() *cmPair {
	p.request()
	p.r.must(p.passive.accept(cmParam(p.qpnB, "welcome")))
	p.a.wantEvent(abi.UCMEventConnectResponse)
	return p
}

// connect goes on to where both sides are connected.
func (p *cmPair) connect() *cmPair {
	p.reply()
	p.r.must(p.active.confirm())
	p.b.wantEvent(abi.UCMEventEstablished)
	return p
}

// cmNobodyListens connects to a port without a listener.
func cmNobodyListens(create func(*cmFile, string) *cmID) func(*rig) {
	return func(r *rig) {
		c := r.cmFile(0)
		id := create(c, "id")
		r.must(id.resolveAddr(netip.AddrPort{}, r.cmAddr(1, 1)))
		c.sayEvent()
		r.must(id.resolveRoute())
		c.sayEvent()
		r.result("CONNECT", id.connect(cmParam(cmQPN(), "hello")))
		c.sayEvent()
		r.result("CONNECT again", id.connect(cmParam(cmQPN(), "hello")))
		r.result("DISCONNECT", id.disconnect())
	}
}

// cmStage is a state in which an id can be.
type cmStage struct {
	name string
	make func(r *rig) *cmID
}

// cmEarlyStages are those before a peer hears of an id, of either port space.
func cmEarlyStages(create func(*cmFile, string) *cmID, listening, routed func(*rig) *cmID) []cmStage {
	return []cmStage{
		{"new", func(r *rig) *cmID { return create(r.cmFile(0), "id") }},
		{"bound", func(r *rig) *cmID {
			id := create(r.cmFile(0), "id")
			r.must(id.bind(r.cmAddr(0, 0)))
			return id
		}},
		{"bound to a wildcard", func(r *rig) *cmID {
			id := create(r.cmFile(0), "id")
			r.must(id.bind(netip.MustParseAddrPort("0.0.0.0:0")))
			return id
		}},
		{"listening", listening},
		{"address resolved", func(r *rig) *cmID {
			id := create(r.cmFile(0), "id")
			r.must(id.resolveAddr(netip.AddrPort{}, r.cmAddr(1, 1)))
			id.c.wantEvent(abi.UCMEventAddrResolved)
			return id
		}},
		{"route resolved", routed},
	}
}

// cmStages are those of connections' ids.
var cmStages = append(cmEarlyStages((*cmFile).create,
	func(r *rig) *cmID { return r.cmPair().listener },
	func(r *rig) *cmID { return r.cmPair().dial("id") }), []cmStage{
	{"request sent", func(r *rig) *cmID { return r.cmPair().request().active }},
	{"reply received", func(r *rig) *cmID { return r.cmPair().reply().active }},
	{"connected actively", func(r *rig) *cmID { return r.cmPair().connect().active }},
	{"disconnect sent", func(r *rig) *cmID {
		p := r.cmPair().connect()
		r.must(p.active.disconnect())
		p.b.wantEvent(abi.UCMEventDisconnected)
		return p.active
	}},
	{"disconnected", func(r *rig) *cmID {
		p := r.cmPair().connect()
		r.must(p.active.disconnect())
		p.b.wantEvent(abi.UCMEventDisconnected)
		r.must(p.passive.disconnect())
		p.a.wantEvent(abi.UCMEventDisconnected)
		return p.active
	}},
	{"rejected", func(r *rig) *cmID {
		p := r.cmPair().request()
		r.must(p.passive.reject(0, ""))
		p.a.wantEvent(abi.UCMEventRejected)
		return p.active
	}},
	{"request received", func(r *rig) *cmID { return r.cmPair().request().passive }},
	{"request given up", func(r *rig) *cmID {
		p := r.cmPair().request()
		must.Get(p.active.destroy())(r)
		r.cmGone(p.passive)
		return p.passive
	}},
	{"reply sent", func(r *rig) *cmID { return r.cmPair().reply().passive }},
	{"reply refused", func(r *rig) *cmID {
		p := r.cmPair().reply()
		r.must(p.active.reject(0, ""))
		p.b.wantEvent(abi.UCMEventRejected)
		return p.passive
	}},
	{"connected passively", func(r *rig) *cmID { return r.cmPair().connect().passive }},
	{"disconnect received", func(r *rig) *cmID {
		p := r.cmPair().connect()
		r.must(p.active.disconnect())
		p.b.wantEvent(abi.UCMEventDisconnected)
		return p.passive
	}},
	{"refused", func(r *rig) *cmID {
		p := r.cmPair().request()
		r.must(p.passive.reject(0, ""))
		p.a.wantEvent(abi.UCMEventRejected)
		return p.passive
	}},
}...)

// cmGone waits until the kernel knows that the sender of a request has
// withdrawn it, of which no event tells.
func (r *rig) cmGone(passive *cmID) {
	if !eventually(func() bool { _, err := passive.qpAttr(abi.QPSRTR); return err != nil }) {
		r.Fatal("the request is still there")
	}
}

// cmCommands are the commands that an id takes in any state.
var cmCommands = []struct {
	name string
	give func(r *rig, id *cmID) error
}{
	{"BIND", func(r *rig, id *cmID) error { return id.bind(r.cmAddr(0, 0)) }},
	{"BIND_IP", func(r *rig, id *cmID) error { return id.bindIP(id.c.in6(r.cmAddr(0, 0))) }},
	{"LISTEN", func(_ *rig, id *cmID) error { return id.listen(4) }},
	{"RESOLVE_ADDR", func(r *rig, id *cmID) error { return id.resolveAddr(netip.AddrPort{}, r.cmAddr(1, 1)) }},
	{"RESOLVE_IP", func(r *rig, id *cmID) error { return id.resolveIP(abi.SockaddrIn6{}, id.c.in6(r.cmAddr(1, 1))) }},
	{"RESOLVE_ROUTE", func(_ *rig, id *cmID) error { return id.resolveRoute() }},
	{"QUERY of addresses", func(_ *rig, id *cmID) error { _, err := id.query(abi.UCMQueryAddr); return err }},
	{"QUERY of GIDs", func(_ *rig, id *cmID) error { _, err := id.query(abi.UCMQueryGID); return err }},
	{"QUERY_ROUTE", func(_ *rig, id *cmID) error { _, err := id.queryRoute(abi.UCMQueryRouteRespSize); return err }},
	{"CONNECT", func(_ *rig, id *cmID) error { return id.connect(cmParam(cmQPN(), "")) }},
	{"ACCEPT", func(_ *rig, id *cmID) error { return id.accept(cmParam(cmQPN(), "")) }},
	{"ACCEPT without a parameter", func(_ *rig, id *cmID) error { return id.confirm() }},
	{"REJECT", func(_ *rig, id *cmID) error { return id.reject(0, "") }},
	{"DISCONNECT", func(_ *rig, id *cmID) error { return id.disconnect() }},
	{"DISCONNECT twice", func(r *rig, id *cmID) error {
		_ = id.disconnect()
		return id.disconnect()
	}},
	{"INIT_QP_ATTR to RESET", cmToState(abi.QPSReset)},
	{"INIT_QP_ATTR to INIT", cmToState(abi.QPSInit)},
	{"INIT_QP_ATTR to RTR", cmToState(abi.QPSRTR)},
	{"INIT_QP_ATTR to RTS", cmToState(abi.QPSRTS)},
	{"INIT_QP_ATTR to ERR", cmToState(abi.QPSErr)},
	{"NOTIFY of COMM_EST", func(_ *rig, id *cmID) error { return id.notify(abi.EventCommEst) }},
	{"NOTIFY of another event", func(_ *rig, id *cmID) error { return id.notify(abi.EventQPFatal) }},
	{"SET_OPTION TOS", func(_ *rig, id *cmID) error { return id.setOption(abi.UCMLevelID, abi.UCMOptionTOS, 4) }},
	{"SET_OPTION REUSEADDR", func(_ *rig, id *cmID) error { return id.setOption(abi.UCMLevelID, abi.UCMOptionReuseAddr, 1, 0, 0, 0) }},
	{"SET_OPTION AFONLY", func(_ *rig, id *cmID) error { return id.setOption(abi.UCMLevelID, abi.UCMOptionAFOnly, 1, 0, 0, 0) }},
	{"SET_OPTION ACK_TIMEOUT", func(_ *rig, id *cmID) error { return id.setOption(abi.UCMLevelID, abi.UCMOptionAckTimeout, 10) }},
	{"JOIN_MCAST", func(_ *rig, id *cmID) error { _, err := id.join(group); return err }},
	{"JOIN_IP_MCAST", func(_ *rig, id *cmID) error { _, err := id.joinIP(id.c.in6(netip.AddrPortFrom(group, 0))); return err }},
	{"DESTROY_ID", func(_ *rig, id *cmID) error { _, err := id.destroy(); return err }},
}

func cmToState(s abi.QPState) func(*rig, *cmID) error {
	return func(_ *rig, id *cmID) error {
		_, err := id.qpAttr(s)
		return err
	}
}

// cmStateTests give each command to an id in each state.
func cmStateTests() []test {
	return append(cmStateTestsOf("cm/when-", cmStages), cmStateTestsOf("cm/datagrams-when-", cmDatagramStages)...)
}

func cmStateTestsOf(prefix string, stages []cmStage) (tests []test) {
	for _, stage := range stages {
		tests = append(tests, test{prefix + strings.ReplaceAll(stage.name, " ", "-"), func(r *rig) {
			for _, cmd := range cmCommands {
				// A refusal does not end the message that waits for an answer,
				// so that the id is kept by ib_cm for half a minute.
				waits := stage.name == "request sent" || stage.name == "reply sent"
				if waits && (strings.HasPrefix(cmd.name, "ACCEPT") || cmd.name == "REJECT") {
					continue
				}
				r.result(cmd.name, cmd.give(r, stage.make(r)))
			}
		}})
	}
	return tests
}
