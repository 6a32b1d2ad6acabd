//go:build linux || darwin

package conform

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/rdmacm"
	"github.com/rdmashim/rdmashim/kshim/verbs"
	"github.com/rdmashim/rdmashim/tests/must"
)

// cmEnds are when one side can end a connection.
var cmEnds = []struct {
	name    string
	make    func(*cmPair) *cmPair
	passive bool
}{
	{"request", (*cmPair).request, false}, {"request", (*cmPair).request, true},
	{"reply", (*cmPair).reply, false}, {"reply", (*cmPair).reply, true},
	{"connected", (*cmPair).connect, false}, {"connected", (*cmPair).connect, true},
}

// cmConnectionTests are cases of a connection's two sides.
var cmConnectionTests = []test{
	onCMPair("cm/connect", func(r *rig, p *cmPair) {
		p.active = p.dial("active")
		r.result("CONNECT", p.active.connect(cmParam(p.qpnA, "hello")))
		ev := p.b.sayEvent()
		conn := ev.Conn()
		r.say("queue pair: %t, new id: %t", conn.QPNum == p.qpnA, ev.ID != p.listener.num)
		p.passive = p.b.made("passive", ev)
		resp, src, dst := p.passive.addrs()
		_, want, _ := p.active.addrs()
		r.say("at the listener: %t, from the active side: %t %t, device: %t, port %d, P_Key %#x", src == p.at, dst.Addr() == want.Addr(), dst.Port() == want.Port(),
			resp.NodeGUID != 0, resp.PortNum, resp.Pkey)
		reply := cmParam(p.qpnB, "welcome")
		reply.ResponderResources, reply.InitiatorDepth, reply.RNRRetryCount = 2, 4, 5
		r.result("ACCEPT", p.passive.accept(reply))
		ev = p.a.sayEvent()
		c := ev.Conn()
		r.say("queue pair: %t", c.QPNum == p.qpnB)
		r.say("nothing there yet: %t", p.b.idle())
		r.result("ACCEPT without a parameter", p.active.confirm())
		p.b.sayEvent()
		r.result("DISCONNECT", p.active.disconnect())
		p.b.sayEvent()
		r.result("DISCONNECT", p.passive.disconnect())
		p.a.sayEvent()
		r.say("no more events yet: %t", p.b.idle())
	}),
	onCMPair("cm/timewait", func(r *rig, p *cmPair) {
		p.ackTimeout = 8
		p.connect()
		r.must(p.passive.disconnect())
		p.a.sayEvent()
		r.must(p.active.disconnect())
		p.b.sayEvent()
		p.a.sayEvent()
		p.b.sayEvent()
		for _, id := range []*cmID{p.active, p.passive} {
			r.result(id.name+": DISCONNECT", id.disconnect())
			r.result(id.name+": INIT_QP_ATTR to RTR", errOf(id.qpAttr(abi.QPSRTR)))
			r.events(id.name + ": DESTROY_ID")(id.destroy())
		}
	}),
	{"cm/disconnect-by-passive", func(r *rig) {
		p := r.cmPair().connect()
		r.result("DISCONNECT", p.passive.disconnect())
		p.a.sayEvent()
		r.result("DISCONNECT in answer", p.active.disconnect())
		p.b.sayEvent()
	}},
	onCMPair("cm/disconnect-by-both", func(r *rig, p *cmPair) {
		p.ackTimeout = 8
		p.connect()
		done := start(p.passive.disconnect)
		r.result("DISCONNECT here", p.active.disconnect())
		r.result("DISCONNECT there", <-done)
		// The side of the first request has been asked for an answer; the other
		// side gets one, and its own answer does nothing.
		p.a.sayEvent()
		r.result("DISCONNECT in answer", p.active.disconnect())
		p.b.sayEvent()
		r.result("DISCONNECT in answer", p.passive.disconnect())
		p.a.sayEvent()
		p.b.sayEvent()
	}),
	{"cm/nobody-listens", cmNobodyListens((*cmFile).create)},
	{"cm/reject", func(r *rig) {
		for _, why := range []abi.UCMRejReason{0, abi.UCMRejConsumerDefined, abi.UCMRejVendorOptionNotSupported, abi.UCMRejInvalidServiceID, 1, 255} {
			p := r.cmPair().request()
			if r.result(fmt.Sprintf("REJECT with reason %d", why), p.passive.reject(why, "no, thanks")) {
				p.a.sayEvent()
				r.result("again", p.passive.reject(why, ""))
			}
		}
		p := r.cmPair().reply()
		r.result("REJECT of the reply", p.active.reject(0, "not like that"))
		p.b.sayEvent()
	}},
	{"cm/private-data", func(r *rig) {
		for _, n := range []int{0, 55, 56, 57, 92, 255} {
			p := r.cmPair()
			if r.result(fmt.Sprintf("CONNECT with %d bytes", n), p.dial("active").connect(cmParam(p.qpnA, strings.Repeat("q", n)))) {
				p.b.sayEvent()
			}
		}
		for _, n := range []int{0, 195, 196, 197, 255} {
			p := r.cmPair().request()
			if r.result(fmt.Sprintf("ACCEPT with %d bytes", n), p.passive.accept(cmParam(p.qpnB, strings.Repeat("p", n)))) {
				p.a.sayEvent()
			}
		}
		for _, n := range []int{0, 147, 148, 149, 255} {
			p := r.cmPair().request()
			if r.result(fmt.Sprintf("REJECT with %d bytes", n), p.passive.reject(0, strings.Repeat("j", n))) {
				p.a.sayEvent()
			}
		}
	}},
	{"cm/parameters", func(r *rig) {
		for _, edit := range []func(*abi.UCMConnParam){
			func(p *abi.UCMConnParam) { *p = abi.UCMConnParam{QPNum: p.QPNum, Valid: 1} },
			func(p *abi.UCMConnParam) { p.RetryCount, p.RNRRetryCount = 7, 7 },
			func(p *abi.UCMConnParam) { p.RetryCount, p.RNRRetryCount = 15, 200 },
			func(p *abi.UCMConnParam) { p.FlowControl, p.SRQ = 0, 1 },
			func(p *abi.UCMConnParam) { p.FlowControl, p.SRQ = 2, 2 },
			func(p *abi.UCMConnParam) { p.ResponderResources, p.InitiatorDepth = 255, 200 },
		} {
			p := r.cmPair()
			p.active = p.dial("active")
			param := cmParam(p.qpnA, "")
			edit(&param)
			r.result("CONNECT", p.active.connect(param))
			ev, ok := p.b.fetch()
			r.say("%t: %s", ok, p.b.text(&ev))
			p.passive = p.b.made("passive", ev)
			param = cmParam(p.qpnB, "")
			edit(&param)
			r.result("ACCEPT", p.passive.accept(param))
			p.a.sayEvent()
		}
		p := r.cmPair()
		param := cmParam(p.qpnA, "")
		param.Valid = 0
		r.result("CONNECT, not valid", p.dial("active").connect(param))
		p = r.cmPair().request()
		r.result("ACCEPT of a request without a parameter", p.passive.confirm())
	}},
	onCMPair("cm/queue-pair-attributes", func(r *rig, p *cmPair) {
		p.active = p.dial("active")
		r.must(p.active.setOption(abi.UCMLevelID, abi.UCMOptionTOS, 0x40))
		p.sayAttrs("before CONNECT", p.active)
		r.must(p.active.connect(cmParam(p.qpnA, "")))
		p.passive = p.b.made("passive", p.b.wantEvent(abi.UCMEventConnectRequest))
		p.sayAttrs("request", p.active, p.passive)
		reply := cmParam(p.qpnB, "")
		reply.ResponderResources, reply.InitiatorDepth, reply.RNRRetryCount = 2, 4, 5
		r.must(p.passive.accept(reply))
		p.a.wantEvent(abi.UCMEventConnectResponse)
		p.sayAttrs("reply", p.active, p.passive)
		r.must(p.active.confirm())
		p.b.wantEvent(abi.UCMEventEstablished)
		p.sayAttrs("connected", p.active, p.passive)
		r.must(p.active.disconnect())
		p.b.wantEvent(abi.UCMEventDisconnected)
		r.must(p.passive.disconnect())
		p.a.wantEvent(abi.UCMEventDisconnected)
		p.sayAttrs("disconnected", p.active, p.passive)
	}),
	{"cm/ack-timeout", func(r *rig) {
		for _, timeout := range []uint8{0, 1, 14, 22, 31} {
			p := r.cmPair()
			p.ackTimeout = timeout
			p.connect()
			for _, id := range []*cmID{p.active, p.passive} {
				a := must.Get(id.qpAttr(abi.QPSRTS))(r)
				r.say("%d: %s has timeout %d", timeout, id.name, a.Timeout)
			}
		}
	}},
	onCMPair("cm/no-access", func(r *rig, p *cmPair) {
		p.active = p.dial("active")
		r.must(p.active.connect(abi.UCMConnParam{QPNum: p.qpnA, Valid: 1}))
		p.passive = p.b.made("passive", p.b.wantEvent(abi.UCMEventConnectRequest))
		p.sayAttrs("no READs", p.passive)
		r.must(p.passive.accept(abi.UCMConnParam{QPNum: p.qpnB, Valid: 1}))
		p.a.wantEvent(abi.UCMEventConnectResponse)
		p.sayAttrs("no READs", p.active)
	}),
	onCMPair("cm/two-connections", func(r *rig, p *cmPair) {
		one, two := p.dial("one"), p.dial("two")
		first, second := cmQPN(), cmQPN()
		r.must(one.connect(cmParam(first, "one")))
		ev := p.b.sayEvent()
		r.must(two.connect(cmParam(second, "two")))
		ev2 := p.b.sayEvent()
		c1, c2 := ev.Conn(), ev2.Conn()
		r.say("told apart: %t %t, ids differ: %t", c1.QPNum == first, c2.QPNum == second, ev.ID != ev2.ID)
		pone, ptwo := p.b.made("passive one", ev), p.b.made("passive two", ev2)
		r.result("ACCEPT of two", ptwo.accept(cmParam(cmQPN(), "for two")))
		p.a.sayEvent()
		r.result("ACCEPT of one", pone.accept(cmParam(cmQPN(), "for one")))
		p.a.sayEvent()
		r.must(one.confirm())
		p.b.sayEvent()
		r.must(two.confirm())
		p.b.sayEvent()
		r.result("DESTROY_ID of one", errOf(one.destroy()))
		p.b.sayEvent()
		r.result("DESTROY_ID of the listener", errOf(p.listener.destroy()))
		r.result("DISCONNECT of two", two.disconnect())
		p.b.sayEvent()
	}),
	{"cm/stale", func(r *rig) {
		p := r.cmPair().connect()
		id := p.dial("again")
		r.result("CONNECT with the same queue pair", id.connect(cmParam(p.qpnA, "")))
		p.a.sayEvent()
		p.a.sayEvent()
		r.result("DISCONNECT in answer", p.active.disconnect())
		p.b.sayEvent()
	}},
	{"cm/backlog", func(r *rig) {
		c := r.cmFile(1)
		l := c.create("listener")
		r.must(l.bind(r.cmAddr(1, 0)))
		_, at, _ := l.addrs()
		r.must(l.listen(1))
		p := &cmPair{r: r, a: r.cmFile(0), b: c, at: at, listener: l}
		one, two := p.dial("one"), p.dial("two")
		r.must(one.connect(cmParam(cmQPN(), "one")))
		waits(c)
		r.must(two.connect(cmParam(cmQPN(), "two")))
		r.say("no answer: %t", p.a.idle())
		c.sayEvent()
		c.sayEvent() // when its sender asks again
	}},
	{"cm/gone-before-accept", func(r *rig) {
		p := r.cmPair().request()
		r.result("DESTROY_ID", errOf(p.active.destroy()))
		r.cmGone(p.passive)
		r.say("no event tells: %t", p.b.idle())
		r.result("ACCEPT", p.passive.accept(cmParam(p.qpnB, "")))
		r.result("DESTROY_ID", errOf(p.passive.destroy()))
	}},
	{"cm/destroy", func(r *rig) {
		for _, stage := range cmEnds {
			p := stage.make(r.cmPair())
			id, other := p.active, p.b
			if stage.passive {
				id, other = p.passive, p.a
			}
			_, err := id.destroy()
			r.say("%s: DESTROY_ID of %s: %s", stage.name, id.name, errText(err))
			if stage.name == "request" && !stage.passive {
				r.cmGone(p.passive)
				r.say("no event tells: %t", p.b.idle())
				continue
			}
			other.sayEvent()
		}
	}},
	onCMPair("cm/destroy-the-listener", func(r *rig, p *cmPair) {
		one, two := p.dial("one"), p.dial("two")
		r.must(one.connect(cmParam(cmQPN(), "one")))
		r.must(two.connect(cmParam(cmQPN(), "two")))
		ev := p.b.sayEvent()
		waits(p.b) // the other is there
		pone := p.b.made("passive", ev)
		r.result("DESTROY_ID", errOf(p.listener.destroy()))
		p.a.sayEvent()
		r.result("ACCEPT of who was taken", pone.accept(cmParam(cmQPN(), "")))
		p.a.sayEvent()
	}),
	{"cm/close", func(r *rig) {
		for _, stage := range cmEnds[1:] { // of a request that is withdrawn no event tells
			p := stage.make(r.cmPair())
			closed, other := p.a, p.b
			if stage.passive {
				closed, other = p.b, p.a
			}
			r.say("%s, passive %t: %s", stage.name, stage.passive, errText(closed.f.Close()))
			other.sayEvent()
		}
		p := r.cmPair()
		id := p.dial("active")
		r.must(p.b.f.Close())
		r.must(id.connect(cmParam(p.qpnA, "")))
		p.a.sayEvent()
	}},
	{"cm/established-by-data", func(r *rig) {
		p := r.cmPair().reply()
		r.result("NOTIFY", p.passive.notify(abi.EventCommEst))
		p.b.sayEvent()
		r.result("NOTIFY again", p.passive.notify(abi.EventCommEst))
		r.result("ACCEPT without a parameter", p.active.confirm())
		r.say("no more events: %t", p.b.idle())
	}},
	{"cm/client", cmClientCase},
}

// sayAttrs writes what INIT_QP_ATTR answers.
func (p *cmPair) sayAttrs(when string, ids ...*cmID) {
	for _, id := range ids {
		for _, state := range []abi.QPState{abi.QPSInit, abi.QPSRTR, abi.QPSRTS} {
			a, err := id.qpAttr(state)
			if err != nil {
				p.r.say("%s, %s to %v: %s", when, id.name, state, errText(err))
				continue
			}
			av := &a.AHAttr
			p.r.say("%s, %s to %v: mask %#x, state %d, access %v, P_Key %d, port %d, MTU %d, Q_Key %d, peer's queue pair %t, READs %d %d, timer %d, timeout %d, retries %d %d",
				when, id.name, state, uint32(a.QPAttrMask), a.QPState, a.QPAccessFlags, a.PkeyIndex, a.PortNum, a.PathMTU, a.QKey,
				a.DestQPNum == p.qpnA || a.DestQPNum == p.qpnB, a.MaxRdAtomic, a.MaxDestRdAtomic, a.MinRNRTimer, a.Timeout, a.RetryCnt, a.RNRRetry)
			if state == abi.QPSRTR {
				dgid := netip.AddrFrom16(av.DGID).Unmap()
				p.r.say("  to the other side: %t, hop limit %d, class %d, SL %d, global %d, port %d",
					dgid == p.r.cmAddr(0, 0).Addr() || dgid == p.r.cmAddr(1, 0).Addr(), av.HopLimit, av.TrafficClass, av.SL, av.IsGlobal, av.PortNum)
			}
		}
	}
}

// cmClientCase is a connection by kshim/rdmacm with data over it.
func cmClientCase(r *rig) {
	var ch [2]*rdmacm.Channel
	var ends [2]*end
	for side := range ch {
		on := r.sys.cmSide[side]
		k := r.process(on)
		ch[side] = must.Get(rdmacm.Open(k))(r)
		r.Cleanup(func() { r.must(ch[side].Close()) })
		ctx := must.Get(verbs.Open(k, r.sys.device[on]))(r)
		r.Cleanup(func() { r.must(ctx.Close()) })
		ends[side] = r.newEnd(string(rune('a'+side)), ctx, defaults())
	}
	a, b := ends[0], ends[1]
	ctx := r.withDeadline()
	l := must.Get(ch[1].Listen(r.cmAddr(1, 0), 4, rdmacm.Options{}))(r)
	defer l.Close()
	served := make(chan error, 1)
	var req *rdmacm.Request
	go func() {
		var err error
		if req, err = l.Accept(ctx); err == nil {
			err = req.Accept(ctx, b.qp, rdmacm.ConnParam{ResponderResources: 4, InitiatorDepth: 4, Private: []byte("welcome")})
		}
		served <- err
	}()
	id := must.Get(ch[0].Resolve(ctx, netip.AddrPort{}, l.Addr(), rdmacm.Options{}))(r)
	peer, err := id.Connect(ctx, a.qp, rdmacm.ConnParam{ResponderResources: 2, InitiatorDepth: 2, RetryCount: 7, RNRRetryCount: 7, Private: []byte("hello")})
	r.result("Connect", err)
	r.result("Accept", <-served)
	r.say("%q %q, %d %d, %d %d", strings.TrimRight(string(peer.Private), "\x00"), strings.TrimRight(string(req.Peer.Private), "\x00"),
		peer.ResponderResources, peer.InitiatorDepth, req.Peer.ResponderResources, req.Peer.InitiatorDepth)
	for _, e := range ends {
		q := must.Get(e.qp.Query())(r)
		r.say("%s: %v, READs %d %d, RNR retries %d", e.name, q.State, q.MaxRdAtomic, q.MaxDestRdAtomic, q.RNRRetry)
	}
	for i, op := range []abi.WROpcode{abi.WRRDMAWrite, abi.WRRDMARead} {
		for j, e := range ends {
			other := ends[1-j]
			from, to := e, other
			if op == abi.WRRDMARead {
				from, to = other, e
			}
			copy(from.buf, strings.Repeat(string(rune('a'+2*i+j)), 64))
			_, err := e.qp.Post([]verbs.SendWR{{ID: 1, Opcode: op, Flags: abi.SendSignaled, RemoteAddr: other.mr.Addr() + 4096*uint64(1-min(i, 1)), RKey: other.mr.RKey(),
				SGE: []verbs.SGE{{Addr: e.mr.Addr() + 4096*uint64(min(i, 1)), Length: 64, LKey: e.mr.LKey()}}}})
			r.must(err)
			var wc [1]verbs.WC
			must.Get(e.scq.Wait(ctx, wc[:]))(r)
			r.say("%s %v: %v, the bytes are there: %t", e.name, op, wc[0].Status, string(to.buf[4096:4160]) == string(from.buf[:64]))
			clear(to.buf[4096:4160])
		}
	}
	r.result("Disconnect", id.Disconnect())
	for _, end := range []*rdmacm.ID{id, req.ID} {
		select {
		case <-end.Context().Done():
		case <-ctx.Done():
		}
		var gone *rdmacm.DisconnectedError
		cause := context.Cause(end.Context())
		r.say("%s, disconnected: %t", errText(cause), errors.As(cause, &gone))
		r.must(end.Destroy())
	}
}
