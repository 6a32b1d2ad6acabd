//go:build linux || darwin

package conform

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/tests/must"
)

// cmDatagramTests are ids of datagrams, of which one asks for the queue pair
// that the other has.
var cmDatagramTests = []test{
	onCM("cm/port-spaces", func(r *rig, c *cmFile) {
		for _, ps := range []abi.UCMPortSpace{abi.UCMPSIPoIB, abi.UCMPSTCP, abi.UCMPSUDP, abi.UCMPSIB} {
			for _, typ := range []abi.QPType{abi.QPTRC, abi.QPTUC, abi.QPTUD, 77} {
				id, err := c.createIn("id", ps, typ)
				r.say("%v, type %d: %s", ps, typ, errText(err))
				if err == nil {
					r.result("BIND", id.bind(r.cmAddr(0, 0)))
				}
			}
		}
		id := must.Get(c.createIn("IPoIB", abi.UCMPSIPoIB, abi.QPTUD))(r)
		r.result("RESOLVE_ADDR", id.resolveAddr(netip.AddrPort{}, r.cmAddr(1, 1)))
		c.sayEvent()
		datagrams := c.datagrams("datagrams")
		r.must(datagrams.bind(r.cmAddr(0, 0)))
		_, at, _ := datagrams.addrs()
		r.result("the same port for connections", c.create("connections").bind(at))
		r.result("the same port for datagrams", c.datagrams("others").bind(at))
	}),
	{"cm/ask", func(r *rig) {
		p := r.cmAsk()
		id := p.a.datagrams("asking")
		r.result("RESOLVE_ADDR", id.resolveAddr(netip.AddrPort{}, p.at))
		p.a.sayEvent()
		r.result("RESOLVE_ROUTE", id.resolveRoute())
		p.a.sayEvent()
		for s := abi.QPSReset; s <= abi.QPSErr; s++ {
			r.sayDatagramAttr(id, s)
		}
		r.result("CONNECT", id.connect(cmParam(p.qpn, "where?")))
		ev := p.b.sayEvent()
		r.say("queue pair: %#x, new id: %t", ev.UD().QPNum, ev.ID != p.listener.num)
		p.answers = p.b.made("answering", ev)
		resp, src, dst := p.answers.addrs()
		_, want, _ := id.addrs()
		r.say("at the listener: %t, from the asking side: %t, device: %t, port %d, P_Key %#x", src == p.at, dst == want, resp.NodeGUID != 0, resp.PortNum, resp.Pkey)
		r.sayDatagramAttr(p.answers, abi.QPSInit)
		r.sayDatagramAttr(p.answers, abi.QPSRTR)
		r.result("ACCEPT", p.answers.accept(cmParam(p.qpn, "here")))
		ev = p.a.sayEvent()
		r.say("queue pair: %t, the ports' flow: %t", ev.UD().QPNum == p.qpn, ev.UD().AHAttr.FlowLabel == (uint32(want.Port())*31+uint32(p.at.Port()))&0xfffff)
		r.sayDatagramAttr(id, abi.QPSRTS)
		for _, id := range []*cmID{id, p.answers} {
			r.result(id.name+": DISCONNECT", id.disconnect())
			r.events(id.name + ": DESTROY_ID")(id.destroy())
		}
		r.say("no more events: %t %t", p.a.idle(), p.b.idle())
	}},
	{"cm/ask-several", func(r *rig) {
		p := r.cmAsk()
		var ids []*cmID
		for _, name := range []string{"one", "two", "three"} {
			ids = append(ids, p.dial(name))
		}
		for i, id := range ids {
			r.must(id.connect(cmParam(p.qpn, id.name)))
			made := p.b.made("for "+id.name, p.b.sayEvent())
			if i == 1 {
				r.must(made.reject(0, "no"))
			} else {
				r.must(made.accept(cmParam(p.qpn+uint32(i), "yes")))
			}
			ev := p.a.sayEvent()
			r.say("queue pair: %t", ev.UD().QPNum == p.qpn+uint32(i))
		}
	}},
	{"cm/ask-with-tos", func(r *rig) {
		p := r.cmAsk()
		id := p.a.datagrams("asking")
		r.must(id.setOption(abi.UCMLevelID, abi.UCMOptionTOS, 0x68))
		id.resolve(p.at)
		r.must(id.connect(cmParam(p.qpn, "")))
		r.must(p.b.made("answering", p.b.sayEvent()).accept(cmParam(p.qpn, "")))
		p.a.sayEvent()
	}},
	{"cm/ask-without-a-queue-pair", func(r *rig) {
		p := r.cmAsk().question()
		r.result("ACCEPT without a parameter", p.answers.confirm())
		ev := p.a.sayEvent()
		r.say("queue pair: %#x", ev.UD().QPNum)
	}},
	{"cm/ask-where-nobody-listens", cmNobodyListens((*cmFile).datagrams)},
	onCMPair("cm/ask-where-connections-are-served", func(r *rig, p *cmPair) {
		id := p.a.datagrams("id")
		r.must(id.resolveAddr(netip.AddrPort{}, p.at))
		p.a.sayEvent()
		r.must(id.resolveRoute())
		p.a.sayEvent()
		r.must(id.connect(cmParam(cmQPN(), "hello")))
		p.a.sayEvent()
	}),
	{"cm/ask-and-be-refused", func(r *rig) {
		for _, why := range []abi.UCMRejReason{0, abi.UCMRejConsumerDefined, abi.UCMRejVendorOptionNotSupported, 1} {
			p := r.cmAsk().question()
			if r.result(fmt.Sprintf("REJECT with reason %d", why), p.answers.reject(why, "no, thanks")) {
				p.a.sayEvent()
				r.result("again", p.answers.reject(why, ""))
				r.result("ACCEPT", p.answers.accept(cmParam(p.qpn, "")))
			}
		}
		p := r.cmAsk().question()
		r.result("DESTROY_ID", errOf(p.answers.destroy()))
		p.a.sayEvent()
		p = r.cmAsk()
		id := p.dial("id")
		r.must(id.connect(cmParam(p.qpn, "")))
		waits(p.b)
		r.must(p.b.f.Close())
		p.a.sayEvent()
	}},
	{"cm/ask-with-private-data", func(r *rig) {
		for _, n := range []int{0, 179, 180, 181, 255} {
			p := r.cmAsk()
			if r.result(fmt.Sprintf("CONNECT with %d bytes", n), p.dial("asking").connect(cmParam(p.qpn, strings.Repeat("q", n)))) {
				p.b.sayEvent()
			}
		}
		for _, n := range []int{0, 135, 136, 137, 255} {
			p := r.cmAsk().question()
			err := p.answers.accept(cmParam(p.qpn, strings.Repeat("p", n)))
			r.say("ACCEPT with %d bytes: %s", n, errText(err))
			p.a.sayEvent()
		}
		for _, n := range []int{0, 135, 136, 137} {
			p := r.cmAsk().question()
			if r.result(fmt.Sprintf("REJECT with %d bytes", n), p.answers.reject(0, strings.Repeat("j", n))) {
				p.a.sayEvent()
			}
		}
	}},
}
