//go:build linux || darwin

package conform

import (
	"bytes"
	"fmt"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/verbs"
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
)

// datagramTests are queue pairs of unreliable datagrams.
var datagramTests = []test{
	{"ud/states", func(r *rig) {
		e, _ := r.datagramEnds()
		sayAttr := func() {
			attr := must.Get(e.qp.Query())(r)
			r.say("%v: Q_Key %#x, rq_psn %#x, sq_psn %#x, path MTU %d, destination %#x", attr.State, attr.QKey, attr.RQPSN, attr.SQPSN,
				attr.PathMTU, attr.DestQPNum)
		}
		sayAttr()
		for _, s := range []abi.QPState{abi.QPSInit, abi.QPSRTR, abi.QPSRTS} {
			r.result(s.String(), e.datagramStep(s))
			sayAttr()
		}
		e.to(abi.QPSErr)
		sayAttr()
		e.to(abi.QPSReset)
		e.sayState()
	}},
	{"ud/masks", func(r *rig) {
		e, peer := r.datagramEnds()
		try := func(what string, s abi.QPState, mask abi.QPAttrMask) {
			attr := verbs.QPAttr{
				State: s, PortNum: 1, QKey: 5, SQPSN: 7, PathMTU: abi.MTU1024, AV: e.path(peer), DestQPNum: peer.qp.Num(),
				AccessFlags: allAccess, Timeout: 10, RetryCnt: 3, RNRRetry: 3, MaxRdAtomic: 1, MaxDestRdAtomic: 1,
			}
			r.result(what, e.qp.Modify(&attr, mask))
		}
		const state = abi.QPMaskState
		try("RESET to RTR", abi.QPSRTR, state)
		try("RESET to INIT without a Q_Key", abi.QPSInit, maskInit&^abi.QPMaskAccessFlags)
		try("RESET to INIT with access", abi.QPSInit, maskDatagramInit|abi.QPMaskAccessFlags)
		try("RESET to INIT without a port", abi.QPSInit, maskDatagramInit&^abi.QPMaskPort)
		try("RESET to INIT", abi.QPSInit, maskDatagramInit)
		try("INIT to INIT with a Q_Key", abi.QPSInit, state|abi.QPMaskQKey)
		try("INIT to RTR with a path", abi.QPSRTR, state|abi.QPMaskAV)
		try("INIT to RTR with a path MTU", abi.QPSRTR, state|abi.QPMaskPathMTU)
		try("INIT to RTR with a destination", abi.QPSRTR, state|abi.QPMaskDestQPN)
		try("INIT to RTR with rq_psn", abi.QPSRTR, state|abi.QPMaskRQPSN)
		try("INIT to RTS", abi.QPSRTS, maskDatagramRTS)
		try("INIT to RTR with a Q_Key", abi.QPSRTR, state|abi.QPMaskQKey)
		try("RTR to RTS without a PSN", abi.QPSRTS, state)
		try("RTR to RTS as for RC", abi.QPSRTS, maskRTS)
		try("RTR to RTS", abi.QPSRTS, maskDatagramRTS)
		try("RTS to RTS with a Q_Key", abi.QPSRTS, state|abi.QPMaskQKey)
		try("a Q_Key", 0, abi.QPMaskQKey)
		try("a P_Key", 0, abi.QPMaskPkeyIndex)
		try("RTS to SQD", abi.QPSSQD, state)
		e.drained()
		try("SQD with P_Key and Q_Key", 0, abi.QPMaskPkeyIndex|abi.QPMaskQKey)
		try("SQD with a path", 0, abi.QPMaskAV)
		try("SQD to RTS", abi.QPSRTS, state|abi.QPMaskQKey)
	}},
	onDatagrams("ud/send", func(r *rig, a, b *end, way *verbs.AH) {
		for _, n := range []int{0, 1, 2, 3, 4, portMTU - 1, portMTU} {
			fill(a.buf[:n], byte(n))
			fill(b.buf[:2*portMTU], 99)
			b.recv(0, 2*portMTU)
			a.complete(a.datagram(abi.WRSend, 0, n, way, b))
			wc := b.recvs(1)
			r.say("from a: %t", len(wc) == 1 && wc[0].SrcQP == a.qp.Num() && wc[0].QPN == b.qp.Num() && wc[0].PkeyIndex == 0)
			r.saySame("message", a.buf[:n], b.buf[grhLen:grhLen+n])
			want := filled(2*portMTU, 99)
			r.saySame("behind it", want[grhLen+n:], b.buf[grhLen+n:2*portMTU])
		}
	}),
	onDatagrams("ud/immediate", func(r *rig, a, b *end, way *verbs.AH) {
		for i, imm := range []uint32{0, 1, 0x01020304, 0xffffffff} {
			b.recv(0, 100)
			a.complete(withImm(a.datagram(abi.WRSendWithImm, 0, i, way, b), imm))
			b.recvs(1)
		}
	}),
	onDatagrams("ud/route-header", func(r *rig, a, b *end, way *verbs.AH) {
		for _, n := range []int{0, 1, 5, 1000} {
			b.recv(0, grhLen+n)
			a.complete(a.datagram(abi.WRSend, 0, n, way, b))
			b.recvs(1)
			b.sayGRH(b.buf, a)
		}
		b.recv(0, grhLen)
		a.complete(a.datagram(abi.WRSendWithImm, 0, 0, way, b))
		b.recvs(1)
		b.sayGRH(b.buf, a)
	}),
	onDatagrams("ud/longer-than-the-port's-mtu", func(r *rig, a, b *end, way *verbs.AH) {
		b.recv(0, 8<<10)
		for _, n := range []int{portMTU + 1, 2 * portMTU, 8 << 10} {
			a.complete(a.datagram(abi.WRSend, 0, n, way, b))
		}
		a.sayMark(way, b)
		a.sayState()
		a.sayPSNs()
		b.sayPSNs()
	}),
	onDatagrams("ud/scatter", func(r *rig, a, b *end, way *verbs.AH) {
		fill(a.buf[:1000], 31)
		b.nextID++
		must.Get(b.qp.PostRecv([]verbs.RecvWR{{ID: b.nextID, SGE: []verbs.SGE{b.sge(0, 30), b.sge(2000, 20), b.sge(3000, 0), b.sge(4000, 2000)}}}))(r)
		wr := a.datagram(abi.WRSend, 0, 0, way, b)
		wr.SGE = []verbs.SGE{a.sge(0, 1), a.sge(1, 99), a.sge(100, 900)}
		a.complete(wr)
		b.recvs(1)
		all := append(append(append([]byte{}, b.buf[:30]...), b.buf[2000:2020]...), b.buf[4000:6000]...)
		b.sayGRH(all, a)
		r.saySame("message", a.buf[:1000], all[grhLen:grhLen+1000])
	}),
	onDatagrams("ud/inline", func(r *rig, a, b *end, way *verbs.AH) {
		for _, n := range []int{0, 1, 64} {
			data := make([]byte, n)
			fill(data, 32)
			want := bytes.Clone(data)
			b.recv(0, 200)
			wr := a.datagram(abi.WRSend, 0, 0, way, b)
			wr.SGE, wr.Inline, wr.Flags = nil, data, wr.Flags|abi.SendInline
			a.post(wr)
			clear(data)
			a.sends(1)
			b.recvs(1)
			r.saySame("message", want, b.buf[grhLen:grhLen+n])
		}
	}),
	onDatagrams("ud/both-ways-at-once", func(r *rig, a, b *end, way *verbs.AH) {
		back := b.wayTo(a)
		for i := range 8 {
			b.recv(1000*i, 500)
			a.recv(1000*i, 500)
		}
		for i := range 8 {
			a.post(a.datagram(abi.WRSend, 9000, 10*i, way, b))
			b.post(b.datagram(abi.WRSend, 9000, 10*i+1, back, a))
		}
		a.sends(8)
		b.sends(8)
		a.recvs(8)
		b.recvs(8)
	}),
	onDatagrams("ud/one-to-many", func(r *rig, a, b *end, way *verbs.AH) {
		others := make([]*verbs.QP, 4)
		for i := range others {
			others[i] = must.Get(b.pd.CreateQP(b.init()))(r)
			e := *b
			e.qp = others[i]
			e.datagramRTS()
			e.recv(1000*i, 100)
			a.complete(a.datagram(abi.WRSend, 0, i, way, &e))
			for _, wc := range e.recvs(1) {
				r.say("at its place: %t", wc.QPN == others[i].Num() && wc.SrcQP == a.qp.Num())
			}
		}
	}),
	onDatagrams("ud/to-itself", func(r *rig, a, _ *end, _ *verbs.AH) {
		way := a.wayTo(a)
		fill(a.buf[:100], 33)
		a.recv(1000, 200)
		a.complete(a.datagram(abi.WRSend, 0, 100, way, a))
		for _, wc := range a.recvs(1) {
			r.say("from itself: %t", wc.SrcQP == a.qp.Num())
		}
		a.sayGRH(a.buf[1000:], a)
		r.saySame("message", a.buf[:100], a.buf[1000+grhLen:1100+grhLen])
	}),
	onDatagrams("ud/another-q-key", func(r *rig, a, b *end, way *verbs.AH) {
		b.recv(0, 100)
		wr := a.datagram(abi.WRSend, 0, 8, way, b)
		wr.RemoteQKey++
		a.complete(wr)
		a.sayMark(way, b)
		b.sayState()

		r.must(b.qp.Modify(&verbs.QPAttr{State: abi.QPSRTS, QKey: 77}, abi.QPMaskState|abi.QPMaskQKey))
		b.recv(0, 100)
		a.complete(a.datagram(abi.WRSend, 0, 9, way, b))
		b.config.qkey = 77
		a.sayMark(way, b)
	}),
	onDatagrams("ud/no-receive", func(r *rig, a, b *end, way *verbs.AH) {
		for range 3 {
			a.complete(a.datagram(abi.WRSend, 0, 8, way, b))
		}
		r.settle()
		a.sayMark(way, b)
		b.sayNoMore()
	}),
	{"ud/short-receive-or-a-controlled-q-key", func(r *rig) {
		for _, c := range []struct{ room, n int }{{grhLen, 0}, {grhLen + 9, 10}, {grhLen - 1, 0}, {0, 0}, {10, 100}} {
			a, b, way := r.datagrams()
			fill(b.buf[:200], 34)
			b.recv(0, c.room)
			a.complete(a.datagram(abi.WRSend, 0, c.n, way, b))
			b.recvs(1)
			b.sayState()
			want := filled(200, 34)
			r.saySame(fmt.Sprintf("behind %d", c.room), want[c.room:], b.buf[c.room:200])
		}
		a, b, way := r.datagrams()
		b.recv(0, 100)
		wr := a.datagram(abi.WRSend, 0, 8, way, b)
		wr.RemoteQKey = 0x80000005 // stands for the sender's own, which is the receiver's, too
		a.complete(wr)
		b.recv(0, 100)
		a.complete(a.datagram(abi.WRSend, 0, 9, way, b))
		b.recvs(1)
	}},
	onDatagrams("ud/to-nobody", func(r *rig, a, b *end, way *verbs.AH) {
		gone := must.Get(b.pd.CreateQP(b.init()))(r)
		to := *b
		to.qp = gone
		a.post(a.datagram(abi.WRSend, 0, 8, way, &to)) // in RESET
		a.sends(1)
		r.must(gone.Destroy())
		a.complete(a.datagram(abi.WRSend, 0, 8, way, &to))
		a.sayMark(way, b)
	}),
	{"ud/in-every-state", func(r *rig) {
		a, b := r.datagramEnds()
		a.datagramRTS()
		way := a.wayTo(b)
		send := func(s abi.QPState) {
			wr := a.datagram(abi.WRSend, 0, 8, way, b)
			wr.Flags |= abi.SendSolicited
			a.complete(wr)
			r.settle()
		}
		b.sayPost("in RESET", b.datagram(abi.WRSend, 0, 1, way, b))
		r.must(b.datagramStep(abi.QPSInit))
		b.offer(3, 100)
		send(abi.QPSInit)
		b.sayPost("in INIT", b.datagram(abi.WRSend, 0, 1, way, b))
		b.sayNoMore()
		r.must(b.datagramStep(abi.QPSRTR))
		send(abi.QPSRTR)
		b.recvs(1)
		b.sayPost("in RTR", b.datagram(abi.WRSend, 0, 1, way, b))
		r.must(b.datagramStep(abi.QPSRTS))
		b.drain()
		send(abi.QPSSQD)
		b.recvs(1)
		b.to(abi.QPSErr)
		b.recvs(1)
		b.recv(0, 100)
		b.recvs(1)
		send(abi.QPSErr)
		b.sayNoMore()
	}},
	onDatagrams("ud/flush", func(r *rig, a, b *end, way *verbs.AH) {
		a.offer(3, 100)
		a.to(abi.QPSErr)
		a.recvs(3)
		a.complete(a.datagram(abi.WRSend, 0, 8, way, b), a.datagram(abi.WRSendWithImm, 0, 8, way, b))
		a.to(abi.QPSReset)
		a.datagramRTS()
		a.sayMark(way, b)
		a.sayNoMore()
	}),
	onDatagrams("ud/drain", func(r *rig, a, b *end, way *verbs.AH) {
		b.recv(0, 100)
		a.complete(a.datagram(abi.WRSend, 0, 8, way, b))
		a.drain()
		a.post(a.datagram(abi.WRSend, 0, 9, way, b))
		pause()
		b.recvs(1)
		a.sayNoMore()
		b.recv(0, 100)
		r.must(a.qp.Modify(&verbs.QPAttr{State: abi.QPSRTS}, abi.QPMaskState))
		a.sends(1)
		b.recvs(1)
	}),
	{"ud/no-address-handle", func(r *rig) {
		for _, what := range []string{"none such", "destroyed", "of another domain"} {
			a, b, way := r.datagrams()
			wr := a.datagram(abi.WRSend, 0, 8, way, b)
			switch what {
			case "none such":
				wr.AHNum = 0x7ff0
			case "destroyed":
				r.must(way.Destroy())
			case "of another domain":
				pd := must.Get(a.ctx.AllocPD())(r)
				ah := must.Get(pd.CreateAH(way.Attr()))(r)
				wr.AHNum = ah.Num()
			}
			r.say("%s:", what)
			a.recv(0, 100)
			a.complete(wr)
			a.recvs(1)
			a.sayState()
		}
	}},
	{"ud/after-a-failure", func(r *rig) {
		// Requests posted to a stopped queue pair are flushed, whichever side
		// it stopped on.
		a, b, way := r.datagrams()
		wr := a.datagram(abi.WRSend, 0, 8, way, b)
		wr.AHNum = 0x7ff0
		a.recv(0, 100)
		a.complete(wr)
		a.recvs(1)
		a.recv(0, 100)
		a.recv(0, 100)
		a.recvs(2)
		a.complete(a.datagram(abi.WRSend, 0, 8, way, b))

		a, b, way = r.datagrams()
		back := b.wayTo(a)
		b.recv(0, grhLen)
		a.complete(a.datagram(abi.WRSend, 0, 8, way, b))
		if wcs, err := take(b.rcq, 1); err != nil || wcs[0].Status == abi.WCSuccess { // which error it is, another case says
			r.say("a message longer than the receive: %v, %s", wcs, errText(err))
		}
		b.recv(0, 100)
		b.recvs(1)
		b.complete(b.datagram(abi.WRSend, 0, 8, back, a))
	}},
	{"ud/other-operations", func(r *rig) {
		for _, op := range []abi.WROpcode{
			abi.WRRDMAWrite, abi.WRRDMAWriteWithImm, abi.WRRDMARead, abi.WRAtomicFetchAndAdd, abi.WRAtomicCmpAndSwp, abi.WRSendWithInv,
		} {
			a, b, way := r.datagrams()
			wr := a.datagram(op, 0, 8, way, b)
			if op != abi.WRSendWithInv {
				wr.RemoteAddr, wr.RKey = b.mr.Addr(), b.mr.RKey()
			}
			r.say("%v:", op)
			a.complete(wr)
			a.sayState()
		}
	}},
	onDatagrams("ud/unsignaled", func(r *rig, a, b *end, way *verbs.AH) {
		for i := range 20 { // more than the queue holds
			b.recv(0, 100)
			wr := a.datagram(abi.WRSend, 0, i, way, b)
			if i%4 != 3 {
				wr.Flags = 0
			}
			a.post(wr)
			if i%4 == 3 {
				a.sends(1)
			}
			b.recvs(1)
		}
		a.sayNoMore()
	}),
	onDatagrams("ud/flags", func(r *rig, a, b *end, way *verbs.AH) {
		for _, flags := range []abi.SendFlags{0, abi.SendSolicited} {
			b.recv(0, 100)
			wr := a.datagram(abi.WRSend, 0, 8, way, b)
			wr.Flags |= flags | abi.SendFence // the fence means nothing here
			a.complete(wr)
			b.recvs(1)
		}
	}),
	{"ud/from-a-connection", func(r *rig) {
		// A reliable connection to a queue pair of datagrams, and the reverse.
		c, d := r.ends(func(c *config) { c.timeout, c.retry = 8, 1 })
		a, b, way := r.datagrams()
		to := *d
		to.qp = b.qp
		c.toRTR(&to)
		c.toRTS()
		b.recv(0, 100)
		c.complete(c.wr(abi.WRSend, 0, 8))
		a.sayMark(way, b)

		c, d = r.pair()
		d.recv(0, 100)
		to.qp = d.qp
		a.complete(a.datagram(abi.WRSend, 0, 8, way, &to))
		c.send(5, d)
	}},
	{"ud/uapi", func(r *rig) {
		a, b := r.uapiEnds(uapi.QPConfig{Type: uapi.TypeUD, QKey: testQKey, SendDepth: 8, RecvDepth: 8, Inline: 16})
		there := must.Get(b.LocalEndpoint(b.qp))(r)
		info, err := a.QueryQP(a.qp)
		r.say("QueryQP: %s, %v %v, Q_Key %#x, MTU %d", errText(err), info.Type, info.State, info.QKey, info.MTU)
		ah, err := a.CreateAH(there.Addr, uapi.AHConfig{})
		r.result("CreateAH", err)
		fill(a.buf[:100], 40)
		r.result("PostRecv", errOf(b.PostRecv(b.qp, b.mr, 0, uapi.GRHLen+100)))
		r.result("PostSendTo", errOf(a.PostSendTo(a.qp, ah, there.QPN, testQKey, a.mr, 0, 100)))
		a.next(1)
		b.next(1)
		r.saySame("message", a.buf[:100], b.buf[uapi.GRHLen:uapi.GRHLen+100])
		here := must.Get(a.LocalEndpoint(a.qp))(r)
		src, err := uapi.DatagramSource(b.buf)
		r.say("DatagramSource: %s, the sender: %t", errText(err), src == here.Addr.Addr())
		r.result("longer than the MTU", errOf(a.PostSendTo(a.qp, ah, there.QPN, testQKey, a.mr, 0, portMTU+1)))
		r.result("a receive without room for the route header", errOf(a.PostRecv(a.qp, a.mr, 0, uapi.GRHLen-1)))
		r.result("PostSend", errOf(a.PostSend(a.qp, a.mr, 1)))
		r.result("PostWrite", errOf(a.PostWrite(a.qp, a.mr, 0, 0, 0, 1)))
		r.result("ConnectQP", a.ConnectQP(a.qp, there))
		r.result("Disconnect", b.Disconnect(b.qp))
		r.result("PostRecv", errOf(b.PostRecv(b.qp, b.mr, 0, 100)))
		b.next(1)
		r.result("DestroyAH", a.DestroyAH(ah))
		r.result("PostSendTo", errOf(a.PostSendTo(a.qp, ah, there.QPN, testQKey, a.mr, 0, 1)))
	}},
}
