//go:build linux || darwin

package conform

import (
	"net/netip"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/verbs"
	"github.com/rdmashim/rdmashim/tests/must"
)

// group is a multicast group that no other program uses.
var group = netip.MustParseAddr("239.77.4.91")

const groupQPN = 0xffffff

// groupWay makes an address handle of a group.
func (e *end) groupWay(group netip.Addr) *verbs.AH {
	path := e.path(e)
	path.DGID = group.As16()
	return must.Get(e.pd.CreateAH(path.AHAttr()))(e.r)
}

// toGroup is a datagram for all of a group.
func (e *end) toGroup(offset, length int, way *verbs.AH) verbs.SendWR {
	wr := e.wr(abi.WRSend, offset, length)
	wr.AHNum, wr.RemoteQPN, wr.RemoteQKey = way.Num(), groupQPN, e.config.qkey
	return wr
}

// members is datagrams with both ends on one device, as a group is at a UDP
// port, and devices may have different ones.
func (r *rig) members() (a, b *end, way *verbs.AH) {
	r.joinIP(group)
	c := changed(forDatagrams)
	a, b = r.newEnd("a", r.open(0), c), r.newEnd("b", r.open(0), c)
	a.datagramRTS()
	b.datagramRTS()
	return a, b, a.wayTo(b)
}

// multicastTests are queue pairs in multicast groups.
var multicastTests = []test{
	{"multicast/limits", func(r *rig) {
		attr := must.Get(r.open(0).QueryDevice())(r)
		r.say("max_mcast_grp %d, max_mcast_qp_attach %d, max_total_mcast_qp_attach %d", attr.MaxMcastGrp, attr.MaxMcastQPAttach, attr.MaxTotalMcastQPAttach)
	}},
	{"multicast/attach", func(r *rig) {
		a, _ := r.datagramEnds()
		r.result("detach before", a.qp.DetachMulticast(group))
		for _, s := range []abi.QPState{abi.QPSReset, abi.QPSInit, abi.QPSRTR, abi.QPSRTS} {
			if s != abi.QPSReset {
				r.must(a.datagramStep(s))
			}
			r.say("in %v", s)
			r.result("attach", a.qp.AttachMulticast(group))
			r.result("attach again", a.qp.AttachMulticast(group))
			r.result("detach", a.qp.DetachMulticast(group))
			r.result("detach again", a.qp.DetachMulticast(group))
		}
		r.result("attach to a host", a.qp.AttachMulticast(netip.MustParseAddr("10.0.0.1")))
		r.result("attach to nothing", a.qp.AttachMulticast(netip.IPv4Unspecified()))
		r.result("attach", a.qp.AttachMulticast(group))
		r.result("attach to another", a.qp.AttachMulticast(group.Next()))
		r.result("destroy in two groups", a.qp.Destroy())
		r.result("detach", a.qp.DetachMulticast(group))
		r.result("destroy in a group", a.qp.Destroy())
		r.result("detach", a.qp.DetachMulticast(group.Next()))
		r.result("destroy in none", a.qp.Destroy())
	}},
	onPair("multicast/connections", func(r *rig, a, b *end) {
		r.result("attach", a.qp.AttachMulticast(group))
		r.result("detach", b.qp.DetachMulticast(group))
	}),
	{"multicast/too-many", func(r *rig) {
		a, _ := r.datagramEnds(func(c *config) { c.sendWR, c.recvWR, c.sge, c.inline = 1, 1, 1, 0 })
		var list []*verbs.QP
		for n := range 100 {
			qp := must.Get(a.pd.CreateQP(a.init()))(r)
			list = append(list, qp)
			if err := qp.AttachMulticast(group); err != nil {
				r.result("attach", err)
				r.say("%d queue pairs are in it", n)
				break
			}
		}
		r.must(list[0].DetachMulticast(group))
		r.result("attach after one has left", list[len(list)-1].AttachMulticast(group))
		for _, qp := range list[1:] {
			r.must(qp.DetachMulticast(group))
		}
	}},
	{"multicast/send", func(r *rig) {
		a, b, unicast := r.members()
		r.must(a.qp.AttachMulticast(group))
		r.must(b.qp.AttachMulticast(group))
		way := a.groupWay(group)
		for _, n := range []int{0, 1, 1000} {
			fill(a.buf[:n], byte(n))
			a.recv(4000, 2000)
			b.recv(0, 2000)
			a.complete(a.toGroup(0, n, way))
			for _, e := range []*end{b, a} {
				wc := e.recvs(1)
				r.say("from a: %t", len(wc) == 1 && wc[0].SrcQP == a.qp.Num() && wc[0].QPN == e.qp.Num())
			}
			r.saySame("message", a.buf[:n], b.buf[grhLen:grhLen+n])
			r.saySame("its own", a.buf[:n], a.buf[4000+grhLen:4000+grhLen+n])
			r.say("to the group: %t", netip.AddrFrom4([4]byte(b.buf[36:40])) == group)
		}
		r.must(b.qp.DetachMulticast(group))
		b.recv(0, 2000)
		a.recv(4000, 2000)
		a.complete(a.toGroup(0, 8, way))
		a.recvs(1)
		r.say("b has left")
		a.complete(a.datagram(abi.WRSend, 0, 9, unicast, b))
		b.recvs(1)
		r.must(a.qp.DetachMulticast(group))
	}},
	{"multicast/drops", func(r *rig) {
		a, b, way := r.members()
		toGroup := a.groupWay(group)
		mark := func(what string, wr verbs.SendWR) {
			r.say("%s", what)
			b.recv(0, 2000)
			a.complete(wr)
			r.settle()
			a.post(a.datagram(abi.WRSend, 0, 9, way, b)) // takes the receive
			a.sends(1)
			b.recvs(1)
			b.sayState()
		}
		mark("in no group", a.toGroup(0, 8, toGroup))
		r.must(b.qp.AttachMulticast(group))
		wr := a.toGroup(0, 8, toGroup)
		wr.RemoteQKey++
		mark("another Q_Key", wr)
		mark("another group", a.toGroup(0, 8, a.groupWay(group.Next())))
		wr = a.toGroup(0, 8, way)
		mark("to the group's number at b's address", wr)
		r.must(b.qp.DetachMulticast(group))
	}},
}
