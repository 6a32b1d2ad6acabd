//go:build linux || darwin

package conform

import (
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
)

// uapiSharing makes two pairs whose second ends take the receives of one shared
// queue, and complete in one completion queue.
func (r *rig) uapiSharing(config uapi.SRQConfig) (a, c, b, d *handles, srq uapi.SRQ) {
	client, server := r.uapiOpen(0), r.uapiOpen(1)
	srq = must.Get(server.CreateSRQ(config))(r)
	cq := must.Get(server.CreateCQ(64))(r)
	taker := patient()
	taker.RecvDepth, taker.SRQ, taker.SendCQ, taker.RecvCQ = 0, srq, cq, cq
	a, c = r.newHandles("a", client, patient()), r.newHandles("c", client, patient())
	b, d = r.newHandles("b", server, taker), r.newHandles("d", server, taker)
	r.join(a, b)
	r.join(c, d)
	return a, c, b, d, srq
}

// uapiSharedTests are the handle API's shared receive queues.
var uapiSharedTests = []test{
	{"uapi/shared", func(r *rig) {
		a, c, b, d, srq := r.uapiSharing(uapi.SRQConfig{Depth: 3})
		for at := range uint64(3) {
			b.sayPosted("receive")(b.PostSRQRecv(srq, b.mr, at*100, 100))
		}
		b.sayPosted("receive too many")(b.PostSRQRecv(srq, b.mr, 0, 100))
		copy(a.buf, "from a")
		copy(c.buf, "from c")
		for _, x := range []*handles{a, c, a} {
			x.posted(x.PostSend(x.qp, x.mr, 6))
			wc := b.next(1)[0]
			r.say("taken by b: %t, d: %t: %s", wc.QP == b.qp, wc.QP == d.qp, b.buf[wc.WRID*100:][:6])
			x.next(1)
		}
		r.result("PostRecv to the queue pair", errOf(b.PostRecv(b.qp, b.mr, 0, 8)))
		info := must.Get(b.QueryQP(b.qp))(r)
		r.say("QueryQP tells it: %t", info.SRQ == srq)
		r.result("DestroySRQ in use", b.DestroySRQ(srq))
		r.must(b.DestroyQP(b.qp))
		r.must(b.DestroyQP(d.qp))
		r.result("DestroySRQ", b.DestroySRQ(srq))
		r.result("DestroySRQ", b.DestroySRQ(srq))
		r.result("PostSRQRecv", errOf(b.PostSRQRecv(srq, b.mr, 0, 8)))
	}},
	{"uapi/shared-limit", func(r *rig) {
		a, _, b, _, srq := r.uapiSharing(uapi.SRQConfig{Depth: 4, Limit: 2})
		ctx := r.withDeadline()
		events := b.Events(ctx)
		say := func(what string) {
			info := must.Get(b.QuerySRQ(srq))(r)
			r.say("%s: %d receives of %d pieces, limit %d", what, info.Depth, info.SGE, info.Limit)
		}
		r.number("PostSRQ")(b.PostSRQ(srq, []uapi.WR{{Op: uapi.OpRecv, ID: 5}, {Op: uapi.OpRecv, ID: 6}, {Op: uapi.OpRecv, ID: 7}, {Op: uapi.OpSend}}))
		say("made")
		for range 2 {
			a.posted(a.PostSend(a.qp, a.mr, 0))
			b.next(1)
		}
		for e := range events {
			if e.SRQ != 0 {
				r.say("%s of it: %t", e.Type, e.SRQ == srq)
				break
			}
		}
		say("told")
		r.result("SetSRQLimit 3", b.SetSRQLimit(srq, 3))
		say("set")
		r.result("SetSRQLimit 5", b.SetSRQLimit(srq, 5))
		a.next(2)
	}},
	{"uapi/shared-outlives", func(r *rig) {
		// A receive that was taken comes back though its queue pair is gone,
		// and the others go on.
		a, c, b, d, srq := r.uapiSharing(uapi.SRQConfig{Depth: 4})
		for range 2 {
			b.posted(b.PostSRQRecv(srq, b.mr, 0, 100))
		}
		a.posted(a.PostSend(a.qp, a.mr, 8))
		a.next(1) // acknowledged, and so completed at b
		gone := b.qp
		r.must(b.DestroyQP(b.qp))
		b.qp = d.qp
		wc := b.next(1)[0]
		r.say("of the destroyed one: %t", wc.QP == gone)
		c.posted(c.PostSend(c.qp, c.mr, 8))
		b.next(1)
		c.next(1)
	}},
	{"uapi/shared-refused", func(r *rig) {
		x, other := r.uapiOpen(0), r.uapiOpen(1)
		for _, config := range []uapi.SRQConfig{{}, {Depth: -1}, {Depth: 1<<20 + 1}, {Depth: 1, SGE: 28}, {Depth: 4, Limit: 5}, {Depth: 4, Limit: -1}, {Depth: 4, PD: 99}} {
			r.result("CreateSRQ", errOf(x.CreateSRQ(config)))
		}
		pd := must.Get(x.CreatePD())(r)
		srq := must.Get(x.CreateSRQ(uapi.SRQConfig{Depth: 4, PD: pd}))(r)
		r.result("DestroyPD", x.DestroyPD(pd))
		mr := must.Get(x.RegMR(make([]byte, 64), uapiAll))(r)
		r.result("receive in another domain", errOf(x.PostSRQRecv(srq, mr, 0, 8)))
		r.result("PostSRQRecv of the other side", errOf(other.PostSRQRecv(srq, mr, 0, 8)))
		cq := must.Get(x.CreateCQ(4))(r)
		for _, config := range []uapi.QPConfig{{SRQ: srq}, {SRQ: srq, PD: pd, RecvDepth: 1}, {SRQ: srq, PD: pd, SendDepth: 1, SendCQ: cq}, {SRQ: 99}} {
			r.result("CreateQPWith", errOf(x.CreateQPWith(config)))
		}
		for range 2 { // the second reserves no more
			r.result("CreateQPWith", errOf(x.CreateQPWith(uapi.QPConfig{SRQ: srq, PD: pd, RecvCQ: cq})))
		}
		r.result("ResizeCQ", x.ResizeCQ(cq, 3))
	}},
}
