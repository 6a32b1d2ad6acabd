//go:build linux || darwin

package conform

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/verbs"
	"github.com/rdmashim/rdmashim/tests/must"
)

var queueTests = []test{
	onDevice("cq/sizes", func(r *rig, ctx *verbs.Context) {
		for _, n := range []int{-1, 0, 1, 2, 1000, 32767, 32768, 1 << 24, 1<<31 - 1} {
			cq, err := ctx.CreateCQ(n)
			r.say("%d entries: %s", n, errText(err))
			if err == nil {
				r.must(cq.Destroy())
			}
		}
	}),
	onDevice("cq/destroy", func(r *rig, ctx *verbs.Context) {
		cq := must.Get(ctx.CreateCQ(4))(r)
		r.result("Destroy", cq.Destroy())
		r.result("Destroy", cq.Destroy())
		r.result("Poll", errOf(cq.Poll(make([]verbs.WC, 1))))
		r.result("Arm", cq.Arm(false))
		r.result("Wait", errOf(cq.Wait(r.withDeadline(), make([]verbs.WC, 1))))
	}),
	onEnds("cq/busy", func(r *rig, a, _ *end) {
		r.result("Destroy of the sends' queue", a.scq.Destroy())
		r.result("Destroy of the receives' queue", a.rcq.Destroy())
		r.result("Destroy of the queue pair", a.qp.Destroy())
		r.result("Destroy of the sends' queue", a.scq.Destroy())
		r.result("Destroy of the receives' queue", a.rcq.Destroy())
	}),
	{"cq/empty", func(r *rig) {
		cq := must.Get(r.open(0).CreateCQ(4))(r)
		r.number("Poll")(cq.Poll(make([]verbs.WC, 4)))
		r.number("Poll for none")(cq.Poll(nil))
		r.number("Wait for none")(cq.Wait(context.Background(), nil))
	}},
	{"cq/wait-deadline", func(r *rig) {
		cq := must.Get(r.open(0).CreateCQ(4))(r)
		ctx := r.within(20 * time.Millisecond)
		r.number("Wait")(cq.Wait(ctx, make([]verbs.WC, 4)))
		canceled, cancel := context.WithCancel(context.Background())
		cancel()
		r.number("Wait")(cq.Wait(canceled, make([]verbs.WC, 4)))
	}},
	{"cq/wait-then-destroy", func(r *rig) {
		cq := must.Get(r.open(0).CreateCQ(4))(r)
		done := start(func() error { return errOf(cq.Wait(r.withDeadline(), make([]verbs.WC, 4))) })
		pause()
		r.result("Destroy", cq.Destroy())
		r.result("Wait", <-done)
	}},
	onDevice("cq/wait-then-close", func(r *rig, ctx *verbs.Context) {
		cq := must.Get(ctx.CreateCQ(4))(r)
		done := start(func() error { return errOf(cq.Wait(r.withDeadline(), make([]verbs.WC, 4))) })
		pause()
		r.result("Close", ctx.Close())
		r.result("Wait", <-done)
	}),
	onPair("cq/wait-for-one", func(r *rig, a, b *end) {
		b.recv(0, 64)
		var wg sync.WaitGroup
		wg.Go(func() {
			pause()
			a.post(a.wr(abi.WRSend, 0, 64))
		})
		b.recvs(1)
		wg.Wait()
		a.sends(1)
	}),
	onPair("cq/many-waiters", func(r *rig, a, b *end) {
		var wg sync.WaitGroup
		got := make(chan verbs.WC, 8)
		for range 4 {
			wg.Go(func() {
				wcs, err := take(b.rcq, 2)
				if err != nil {
					r.Errorf("a waiter: %v", err)
				}
				for _, wc := range wcs {
					got <- wc
				}
			})
		}
		for i := range 8 {
			b.recv(64*i, 64)
			a.post(a.wr(abi.WRSend, 0, 8))
		}
		a.sends(8)
		wg.Wait()
		close(got)
		seen := map[uint64]bool{}
		for wc := range got {
			seen[wc.ID] = wc.Status == abi.WCSuccess
		}
		r.say("%d of 8 came to one of four each", len(seen))
	}),
	onEnds("cq/shared-by-both-directions", func(r *rig, a, b *end) {
		init := a.init()
		init.RecvCQ = a.scq
		qp, err := a.pd.CreateQP(init)
		r.result("CreateQP", err)
		r.must(a.qp.Destroy())
		a.qp, a.rcq = qp, a.scq
		r.connect(a, b)
		a.recv(0, 64)
		a.complete(a.rdma(abi.WRRDMAWrite, 0, 8, b, 0))
		b.send(5, a)
	}),
	onPair("cq/shared-by-queue-pairs", func(r *rig, a, b *end) {
		c, d := r.another(a, b)
		a.post(a.rdma(abi.WRRDMAWrite, 0, 10, b, 0))
		wc := a.sends(1)
		r.say("of the first: %t", wc[0].QPN == a.qp.Num())
		c.post(c.rdma(abi.WRRDMAWrite, 0, 20, d, 0))
		wc = a.sends(1)
		r.say("of the second: %t", wc[0].QPN == c.qp.Num())
	}),
	onPair("cq/poll-in-parts", func(r *rig, a, b *end) {
		a.writes(10, b)
		for _, n := range []int{1, 4, 3, 2} {
			a.sends(n)
		}
		a.sayNoMore()
	}),
	{"cq/goes-round", func(r *rig) {
		a, b := r.pair(func(c *config) { c.cqe, c.sendWR = 4, 4 })
		for range 10 {
			a.writes(4, b)
			a.sends(4)
		}
	}},
	{"cq/exactly-full", func(r *rig) {
		a, b := r.pair(func(c *config) { c.cqe, c.sendWR = 15, 15 })
		a.writes(15, b)
		// b's answers are in when this one's, on a queue of its own, is.
		b.complete(b.rdma(abi.WRRDMAWrite, 0, 8, a, 0))
		a.sends(15)
		a.sayNoMore()
	}},
	{"cq/overrun", func(r *rig) {
		a, b := r.pair(func(c *config) { c.cqe, c.sendWR = 3, 16 })
		a.writes(8, b)
		// An event tells of the loss, and may take its time.
		var wcs []verbs.WC
		var err error
		overrun := func() bool {
			wc := make([]verbs.WC, 1)
			var n int
			n, err = a.scq.Poll(wc)
			wcs = append(wcs, wc[:n]...)
			return err != nil
		}
		pause()
		r.say("an error comes: %t", eventually(overrun))
		r.result("Poll", err)
		r.say("completions before it, fewer than 8: %t, in order: %t", len(wcs) < 8, inOrder(wcs))
		r.result("Wait", errOf(a.scq.Wait(r.withDeadline(), make([]verbs.WC, 1))))
	}},
	{"cq/arm", func(r *rig) {
		cq := must.Get(r.open(0).CreateCQ(4))(r)
		r.result("Arm", cq.Arm(false))
		r.result("Arm again", cq.Arm(false))
		r.result("Arm for solicited ones", cq.Arm(true))
	}},
	onDevice("cq/many", func(r *rig, ctx *verbs.Context) {
		for i := range 200 {
			if _, err := ctx.CreateCQ(8); err != nil {
				r.say("CreateCQ %d: %s", i, errText(err))
				return
			}
		}
		r.say("200 queues")
	}),

	onEnd("qp/new", func(r *rig, e *end) {
		e.sayState()
		n := e.qp.Num()
		r.say("number has 24 bits: %t; is none of the special ones: %t", n < 1<<24, n > 1 && n != 0xffffff)
		c := e.qp.Cap()
		r.say("sends %d, receives %d, pieces %d and %d, inline at least 64: %t", c.MaxSendWR, c.MaxRecvWR, c.MaxSendSGE, c.MaxRecvSGE, c.MaxInline >= 64)
		attr := must.Get(e.qp.Query())(r)
		r.say("signals all: %t", attr.SigAll)
	}),
	onEnd("qp/sizes-granted", func(r *rig, e *end) {
		for _, c := range []struct{ sge, inline int }{{1, 0}, {1, 1}, {1, 220}, {2, 0}, {4, 64}, {4, 65}, {32, 0}, {1, 512}, {32, 512}} {
			qp, err := e.pd.CreateQP(verbs.QPInit{SendCQ: e.scq, RecvCQ: e.rcq, MaxSendWR: 4, MaxRecvWR: 4, MaxSendSGE: c.sge, MaxRecvSGE: c.sge, MaxInline: c.inline})
			if err != nil {
				r.say("%d pieces, %d inline: %s", c.sge, c.inline, errText(err))
				continue
			}
			g := qp.Cap()
			r.say("%d pieces, %d inline: granted %d pieces, %d inline, receives %d pieces", c.sge, c.inline, g.MaxSendSGE, g.MaxInline, g.MaxRecvSGE)
			r.must(qp.Destroy())
		}
	}),
	onEnd("qp/too-large", func(r *rig, e *end) {
		for _, c := range []struct {
			what string
			set  func(*verbs.QPInit)
		}{
			{"sends", func(q *verbs.QPInit) { q.MaxSendWR = 1<<20 + 1 }},
			{"receives", func(q *verbs.QPInit) { q.MaxRecvWR = 1<<20 + 1 }},
			{"pieces of a send", func(q *verbs.QPInit) { q.MaxSendSGE = 33 }},
			{"pieces of a receive", func(q *verbs.QPInit) { q.MaxRecvSGE = 33 }},
			{"inline", func(q *verbs.QPInit) { q.MaxInline = 1024 }},
			{"inline by one", func(q *verbs.QPInit) { q.MaxInline = 513 }},
			{"negative sends", func(q *verbs.QPInit) { q.MaxSendWR = -1 }},
			{"negative pieces", func(q *verbs.QPInit) { q.MaxSendSGE = -1 }},
		} {
			init := e.init()
			c.set(&init)
			r.result(c.what, errOf(e.pd.CreateQP(init)))
		}
	}),
	onEnd("qp/types", func(r *rig, e *end) {
		for _, typ := range []abi.QPType{abi.QPTRC, abi.QPTUC, abi.QPTUD, abi.QPTXRCIni, abi.QPTDriver, 7, 200} {
			init := e.init()
			init.Type = typ
			qp, err := e.pd.CreateQP(init)
			r.say("%v: %s", typ, errText(err))
			if err == nil {
				r.must(qp.Destroy())
			}
		}
	}),
	onEnd("qp/no-completion-queue", func(r *rig, e *end) {
		r.result("none for receives", errOf(e.pd.CreateQP(verbs.QPInit{SendCQ: e.scq, MaxSendWR: 1})))
		r.result("none for sends", errOf(e.pd.CreateQP(verbs.QPInit{RecvCQ: e.rcq, MaxSendWR: 1})))
		cq := must.Get(e.ctx.CreateCQ(1))(r)
		r.must(cq.Destroy())
		r.result("one that is gone", errOf(e.pd.CreateQP(verbs.QPInit{SendCQ: cq, RecvCQ: e.rcq, MaxSendWR: 1})))
	}),
	{"qp/no-depth", func(r *rig) {
		a, b := r.pair(func(c *config) { c.sendWR, c.recvWR = 0, 0 })
		a.sayPost("send", a.rdma(abi.WRRDMAWrite, 0, 8, b, 0))
		r.posted("receive")(a.qp.PostRecv([]verbs.RecvWR{{}}))
	}},
	onPair("qp/destroy", func(r *rig, a, _ *end) {
		r.result("Destroy", a.qp.Destroy())
		r.result("Destroy", a.qp.Destroy())
		r.result("Query", errOf(a.qp.Query()))
		r.result("Modify", a.qp.Modify(&verbs.QPAttr{State: abi.QPSErr}, abi.QPMaskState))
		a.sayPost("Post", a.wr(abi.WRSend, 0, 1))
		r.result("PostRecv", errOf(a.qp.PostRecv([]verbs.RecvWR{{}})))
	}),
	onPair("qp/destroyed-is-no-other", func(r *rig, a, b *end) {
		r.must(a.qp.Destroy())
		old := a.qp
		var err error
		a.qp, err = a.pd.CreateQP(a.init()) // may get the old one's handle
		r.must(err)
		r.result("Query", errOf(old.Query()))
		r.result("Modify", old.Modify(&verbs.QPAttr{State: abi.QPSErr}, abi.QPMaskState))
		r.result("Destroy", old.Destroy())
		b.to(abi.QPSReset)
		r.connect(a, b)
		a.sayState()
		r.result("Post", errOf(old.Post([]verbs.SendWR{a.wr(abi.WRSend, 0, 1)})))
	}),
	onEnd("cq/destroyed-is-no-other", func(r *rig, e *end) {
		cq := must.Get(e.ctx.CreateCQ(4))(r)
		r.must(cq.Destroy())
		_, err := e.ctx.CreateCQ(4) // may get the old one's handle
		r.must(err)
		r.result("Arm", cq.Arm(false))
		r.result("CreateQP", errOf(e.pd.CreateQP(verbs.QPInit{SendCQ: cq, RecvCQ: cq, MaxSendWR: 1})))
		r.result("Destroy", cq.Destroy())
	}),
	onDevice("pd/destroyed-is-no-other", func(r *rig, ctx *verbs.Context) {
		pd := must.Get(ctx.AllocPD())(r)
		r.must(pd.Dealloc())
		other, err := ctx.AllocPD() // may get the old one's handle
		r.must(err)
		r.result("RegMR", errOf(pd.RegMR(make([]byte, 64), 0)))
		r.result("Dealloc", pd.Dealloc())
		r.result("Dealloc of the other", other.Dealloc())
	}),
	onPair("qp/destroy-with-receives-posted", func(r *rig, a, _ *end) {
		a.offer(8, 64)
		r.result("Destroy", a.qp.Destroy())
		a.sayNoMore()
		r.result("Dereg", a.mr.Dereg())
		r.result("Destroy of the queue", a.rcq.Destroy())
		r.result("Dealloc", a.pd.Dealloc())
	}),
	onPair("qp/destroy-drops-completions", func(r *rig, a, b *end) {
		b.recv(0, 64)
		a.complete(a.wr(abi.WRSend, 0, 8))
		a.post(a.rdma(abi.WRRDMAWrite, 0, 8, b, 0))
		b.recvs(1)
		r.result("Destroy", a.qp.Destroy())
		a.sayNoMore()
	}),
	{"qp/destroy-while-sending", func(r *rig) {
		a, b := r.pair(func(c *config) { c.size = 1 << 20 })
		for range 8 {
			a.post(a.rdma(abi.WRRDMAWrite, 0, 1<<20, b, 0))
		}
		r.result("Destroy", a.qp.Destroy())
		r.result("Dereg", a.mr.Dereg())
		a.sayNoMore()
	}},
	onEnd("qp/many", func(r *rig, e *end) {
		nums := map[uint32]bool{e.qp.Num(): true}
		for i := range 100 {
			qp, err := e.pd.CreateQP(verbs.QPInit{SendCQ: e.scq, RecvCQ: e.rcq, MaxSendWR: 4, MaxRecvWR: 4})
			if err != nil {
				r.say("CreateQP %d: %s", i, errText(err))
				return
			}
			nums[qp.Num()] = true
		}
		r.say("%d numbers", len(nums))
	}),
	onEnds("qp/many-connected", func(r *rig, a, b *end) {
		for i := range 16 {
			c, d := *a, *b
			c.qp = must.Get(a.pd.CreateQP(a.init()))(r)
			d.qp = must.Get(b.pd.CreateQP(b.init()))(r)
			r.connect(&c, &d)
			fill(a.buf[:500], byte(i))
			c.post(c.rdma(abi.WRRDMAWrite, 0, 500, b, 1000*i))
			if wcs, err := take(a.scq, 1); err != nil || wcs[0].Status != abi.WCSuccess || wcs[0].QPN != c.qp.Num() {
				r.say("pair %d: %v, %s", i, wcs, errText(err))
			}
			r.saySame("target", a.buf[:500], b.buf[1000*i:1000*i+500])
		}
	}),
}

// inOrder tells whether the ids grow. One may be missing in the middle: newer
// Linux completes in a worker, which finds room again once some are taken.
func inOrder(wcs []verbs.WC) bool {
	return slices.IsSortedFunc(wcs, func(a, b verbs.WC) int { return cmp.Compare(a.ID, b.ID) })
}
