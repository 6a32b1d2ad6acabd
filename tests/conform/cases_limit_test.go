//go:build linux || darwin

package conform

import (
	"fmt"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/verbs"
	"github.com/rdmashim/rdmashim/tests/must"
)

// limitTests are cases of requests that cannot be posted, and of the most that
// can.
var limitTests = []test{
	{"limit/sends", func(r *rig) {
		a, b := r.pair(func(c *config) { c.sendWR = 5 })
		a.writes(5, b)
		a.sayPost("a sixth", a.rdma(abi.WRRDMAWrite, 0, 8, b, 0))
		a.nextID--
		a.sends(2)
		a.sayPost("then two", a.rdma(abi.WRRDMAWrite, 0, 8, b, 0), a.rdma(abi.WRRDMAWrite, 0, 8, b, 0))
		a.sayPost("and one more", a.rdma(abi.WRRDMAWrite, 0, 8, b, 0))
		a.sends(5)
	}},
	{"limit/sends-unsignaled", func(r *rig) {
		a, b := r.pair(func(c *config) { c.sendWR = 4 })
		quiet := func() verbs.SendWR { return unsignaled(a.rdma(abi.WRRDMAWrite, 0, 8, b, 0)) }
		a.post(quiet(), quiet(), quiet())
		a.post(a.rdma(abi.WRRDMAWrite, 0, 8, b, 0))
		a.sayPost("a fifth", quiet())
		a.sends(1) // frees all four
		a.sayPost("four more", quiet(), quiet(), quiet(), a.rdma(abi.WRRDMAWrite, 0, 8, b, 0))
		a.sends(1)
	}},
	{"limit/sends-batch", func(r *rig) {
		a, b := r.pair(func(c *config) { c.sendWR = 3 })
		var wrs []verbs.SendWR
		for range 5 {
			wrs = append(wrs, a.rdma(abi.WRRDMAWrite, 0, 8, b, 0))
		}
		a.sayPost("five at once", wrs...)
		a.sends(3)
		a.sayPost("the rest", wrs[3:]...)
		a.sends(2)
	}},
	onPair("limit/sends-batch-with-a-bad-one", func(r *rig, a, b *end) {
		bad := a.rdma(abi.WRRDMAWrite, 0, 8, b, 0)
		bad.SGE = make([]verbs.SGE, 33)
		a.sayPost("the second is bad", a.rdma(abi.WRRDMAWrite, 0, 8, b, 0), bad, a.rdma(abi.WRRDMAWrite, 0, 8, b, 0))
		a.sends(1)
		a.sayNoMore()
	}),
	{"limit/receives", func(r *rig) {
		a, b := r.pair(func(c *config) { c.recvWR = 3 })
		b.offer(3, 64)
		r.posted("a fourth")(b.qp.PostRecv([]verbs.RecvWR{{ID: 9}}))
		a.complete(a.wr(abi.WRSend, 0, 8))
		r.posted("before its completion was polled")(b.qp.PostRecv([]verbs.RecvWR{{ID: 9}}))
		b.recvs(1)
		r.posted("two, after it was")(b.qp.PostRecv([]verbs.RecvWR{{ID: 9}, {ID: 10}}))
	}},
	{"limit/round-and-round", func(r *rig) {
		a, b := r.pair(func(c *config) { c.sendWR, c.recvWR = 3, 3 })
		for i := range 50 {
			b.recv(64*(i%3), 64)
			a.post(a.wr(abi.WRSend, 0, i))
			s := must.Get(take(a.scq, 1))(r)
			q := must.Get(take(b.rcq, 1))(r)
			if s[0].Status != abi.WCSuccess || q[0].Status != abi.WCSuccess || int(q[0].ByteLen) != i || q[0].ID != uint64(i+1) {
				r.say("round %d: %s, %s", i, wcText(&s[0]), wcText(&q[0]))
			}
		}
		r.say("50 rounds")
	}},
	{"limit/post-in-reset", func(r *rig) { r.posts(abi.QPSReset) }},
	{"limit/post-in-init", func(r *rig) { r.posts(abi.QPSInit) }},
	{"limit/post-in-rtr", func(r *rig) { r.posts(abi.QPSRTR) }},
	{"limit/post-in-rts", func(r *rig) { r.posts(abi.QPSRTS) }},
	{"limit/post-in-drain", func(r *rig) { r.posts(abi.QPSSQD) }},
	{"limit/post-in-error", func(r *rig) { r.posts(abi.QPSErr) }},
	{"limit/pieces", func(r *rig) {
		a, b := r.pair(func(c *config) { c.sge = 2 })
		granted := a.qp.Cap().MaxSendSGE // the inline data's room serves as well
		wr := a.rdma(abi.WRRDMAWrite, 0, 0, b, 0)
		wr.SGE = nil
		for range granted {
			wr.SGE = append(wr.SGE, a.sge(0, 8))
		}
		a.sayPost("as many as granted", wr)
		wr.SGE = append(wr.SGE, a.sge(0, 8))
		a.sayPost("one more", wr)
		a.sends(1)
		recv := verbs.RecvWR{ID: 1, SGE: []verbs.SGE{a.sge(0, 8), a.sge(8, 8)}}
		r.posted("receive with two")(a.qp.PostRecv([]verbs.RecvWR{recv}))
		recv.SGE = append(recv.SGE, a.sge(16, 8))
		r.posted("receive with three")(a.qp.PostRecv([]verbs.RecvWR{recv}))
	}},
	onPair("limit/inline", func(r *rig, a, b *end) {
		wr := a.rdma(abi.WRRDMAWrite, 0, 0, b, 0)
		wr.SGE, wr.Flags = nil, wr.Flags|abi.SendInline
		wr.Inline = make([]byte, a.qp.Cap().MaxInline)
		a.sayPost("as much as granted", wr)
		wr.Inline = make([]byte, a.qp.Cap().MaxInline+1)
		a.sayPost("one byte more", wr)
		a.sends(1)
	}),
	onPair("limit/inline-and-pieces", func(r *rig, a, b *end) {
		wr := a.rdma(abi.WRRDMAWrite, 0, 8, b, 0)
		wr.Inline, wr.Flags = []byte{1}, wr.Flags|abi.SendInline
		a.sayPost("both", wr)
		wr = a.rdma(abi.WRRDMARead, 0, 8, b, 0)
		wr.SGE, wr.Inline, wr.Flags = nil, []byte{1}, wr.Flags|abi.SendInline
		a.sayPost("READ inline", wr)
		a.sayNoMore()
	}),
	onPair("limit/message", func(r *rig, a, b *end) {
		p := must.Get(a.ctx.QueryPort(1))(r)
		wr := a.rdma(abi.WRRDMAWrite, 0, 8, b, 0)
		wr.SGE[0].Length = p.MaxMsgSz + 1
		a.sayPost("a byte too many", wr)
		wr = a.rdma(abi.WRRDMARead, 0, 8, b, 0)
		wr.SGE[0].Length = 1<<31 + 1 // no int on every machine
		a.sayPost("2 GiB and a byte", wr)
		wr.SGE = []verbs.SGE{a.sge(0, 0), a.sge(0, 0), a.sge(0, 1)}
		wr.SGE[0].Length, wr.SGE[1].Length = p.MaxMsgSz/2, p.MaxMsgSz/2
		a.sayPost("in three pieces", wr)
		a.sayNoMore()
		a.sayState()
	}),
	onPair("limit/opcodes", func(r *rig, a, b *end) {
		for _, op := range []abi.WROpcode{abi.WRBindMW, abi.WRTSO, abi.WRRDMAReadWithInv, abi.WRMaskedAtomicCmpAndSwp, abi.WRMaskedAtomicFetchAndAdd, 14, 99, 1 << 31} {
			r.posted(op.String())(a.qp.Post([]verbs.SendWR{a.rdma(op, 0, 8, b, 0)}))
		}
		wr := a.rdma(abi.WRRDMAWrite, 0, 8, b, 0)
		wr.Flags |= 1 << 20
		a.sayPost("unknown flag", wr)
		a.sayNoMore()
	}),
	{"limit/atomic-length", func(r *rig) {
		for _, n := range []int{0, 4, 9, 16} {
			a, b := r.pair()
			wr := a.rdma(abi.WRAtomicFetchAndAdd, 0, n, b, 0)
			r.posted(fmt.Sprintf("%d bytes", n))(a.qp.Post([]verbs.SendWR{wr}))
		}
	}},
	onPair("limit/nothing", func(r *rig, a, _ *end) {
		a.sayPost("no request")
		r.posted("no receive")(a.qp.PostRecv(nil))
	}),
	{"limit/hundreds", func(r *rig) {
		a, b := r.pair(func(c *config) { c.sendWR, c.recvWR, c.cqe = 500, 500, 500 })
		b.offer(500, 8)
		for i := range 500 {
			a.buf[0] = byte(i)
			wr := a.wr(abi.WRSend, 0, 0)
			wr.SGE, wr.Inline, wr.Flags = nil, []byte{byte(i), 1, 2}, wr.Flags|abi.SendInline
			a.post(wr)
		}
		a.sends(500)
		b.recvs(500)
		wrong := 0
		for i := range 500 {
			if b.buf[8*i] != byte(i) {
				wrong++
			}
		}
		r.say("%d of 500 in a wrong place", wrong)
	}},
}

// posts tries a send and a receive in a state.
func (r *rig) posts(s abi.QPState) {
	a, b := r.reach(s)
	a.sayPost("send", a.rdma(abi.WRRDMAWrite, 0, 8, b, 0))
	r.posted("a receive")(a.qp.PostRecv([]verbs.RecvWR{{ID: 5}}))
	a.sayState()
}
