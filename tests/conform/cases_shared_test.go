//go:build linux || darwin

package conform

import (
	"time"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/verbs"
	"github.com/rdmashim/rdmashim/tests/must"
)

// sharedTests are cases of shared receive queues.
var sharedTests = []test{
	onDevice("srq/attributes", func(r *rig, ctx *verbs.Context) {
		attr := must.Get(ctx.QueryDevice())(r)
		r.say("the device makes %d, of %d receives and %d pieces", attr.MaxSRQ, attr.MaxSRQWR, attr.MaxSRQSGE)
		pd := must.Get(ctx.AllocPD())(r)
		for _, init := range []verbs.SRQInit{{}, {MaxWR: 1}, {MaxWR: 4, MaxSGE: 2, Limit: 3}, {MaxWR: 1<<20 + 1}, {MaxWR: 1, MaxSGE: 28}} {
			s, err := pd.CreateSRQ(init)
			r.say("%d receives of %d pieces: %s", init.MaxWR, init.MaxSGE, errText(err))
			if err != nil {
				continue
			}
			sayShared(r, s)
			r.result("SetLimit to 1", s.SetLimit(1))
			r.result("SetLimit to 100", s.SetLimit(100))
			sayShared(r, s)
			r.result("Dealloc", pd.Dealloc())
			r.result("Destroy", s.Destroy())
			r.result("Destroy", s.Destroy())
			r.result("SetLimit", s.SetLimit(0))
		}
	}),
	{"srq/two-queue-pairs", func(r *rig) {
		a, b := r.sharing(8)
		c, d := r.another(a, b)
		fill(a.buf[:3000], 1)
		b.recvShared(1000, 3000)
		b.recvShared(5000, 3000)
		b.recvShared(9000, 100)
		a.post(a.wr(abi.WRSend, 0, 3000))
		sayTaker(r, b.recvs(1), b, d)
		a.sends(1)
		c.post(c.wr(abi.WRSend, 0, 3000))
		sayTaker(r, b.recvs(1), b, d)
		c.sends(1)
		a.post(withImm(a.rdma(abi.WRRDMAWriteWithImm, 0, 2000, b, 20000), 7))
		sayTaker(r, b.recvs(1), b, d)
		a.sends(1)
		r.saySame("from a", a.buf[:3000], b.buf[1000:4000])
		r.saySame("from c", a.buf[:3000], b.buf[5000:8000])
		r.saySame("written", a.buf[:2000], b.buf[20000:22000])
		b.sayNoMore()
	}},
	{"srq/limit", func(r *rig) {
		a, b := r.sharing(8)
		events := make(chan verbs.Event, 16)
		defer b.ctx.Watch(func(e verbs.Event) {
			if e.SRQ != nil {
				events <- e
			}
		})()
		for range 4 {
			b.recvShared(0, 64)
		}
		r.result("SetLimit to 2", b.srq.SetLimit(2))
		for range 2 {
			a.post(a.wr(abi.WRSend, 0, 8))
			b.recvs(1)
			sayShared(r, b.srq)
		}
		a.post(a.wr(abi.WRSend, 0, 8))
		b.recvs(1)
		r.sayLimit(events, b.srq)
		sayShared(r, b.srq)
		b.recvShared(0, 64)
		r.result("SetLimit to 1", b.srq.SetLimit(1))
		for range 2 {
			a.post(a.wr(abi.WRSend, 0, 8))
			b.recvs(1)
		}
		r.sayLimit(events, b.srq)
		a.sends(5)
		r.say("%d events more", len(events))
	}},
	{"srq/empty", func(r *rig) {
		a, _ := r.sharing(4, func(c *config) { c.rnrRetry = 1 })
		a.complete(a.wr(abi.WRSend, 0, 8))
	}},
	{"srq/comes-late", func(r *rig) {
		a, b := r.sharing(4)
		a.post(a.wr(abi.WRSend, 0, 8))
		pause()
		b.recvShared(0, 64)
		b.recvs(1)
		a.sends(1)
	}},
	{"srq/error-flushes-no-receive", func(r *rig) {
		a, b := r.sharing(4)
		c, d := r.another(a, b)
		b.recvShared(0, 64)
		b.to(abi.QPSErr)
		b.sayState()
		b.recvShared(64, 64)
		b.sayNoMore()
		for range 2 {
			c.post(c.wr(abi.WRSend, 0, 8))
			sayTaker(r, b.recvs(1), b, d)
		}
		r.result("Destroy of the queue in use", b.srq.Destroy())
		r.must(b.qp.Destroy())
		r.must(d.qp.Destroy())
		r.result("Destroy of the queue", b.srq.Destroy())
	}},
	{"srq/last-request", func(r *rig) {
		a, b := r.sharing(2)
		events, stop := ofQueuePairs(b)
		defer stop()
		b.recvShared(0, 64)
		a.post(a.wr(abi.WRSend, 0, 8))
		b.recvs(1)
		b.to(abi.QPSErr)
		r.sayOfQueuePair(events, b.qp)
	}},
	{"srq/first-packet", func(r *rig) {
		a, b := r.sharing(2)
		events, stop := ofQueuePairs(b)
		defer stop()
		a.to(abi.QPSReset)
		b.to(abi.QPSReset)
		a.toRTR(b)
		a.toRTS()
		b.toRTR(a)
		b.recvShared(0, 64)
		a.post(a.wr(abi.WRSend, 0, 8))
		b.recvs(1)
		r.sayOfQueuePair(events, b.qp)
	}},
	{"srq/posts", func(r *rig) {
		a, b := r.sharing(3)
		r.say("Cap of the queue pair: %d receives", b.qp.Cap().MaxRecvWR)
		r.result("PostRecv on the queue pair", errOf(b.qp.PostRecv([]verbs.RecvWR{{ID: 1}})))
		r.posted("five")(b.srq.PostRecv(make([]verbs.RecvWR, 5)))
		a.post(a.wr(abi.WRSend, 0, 0))
		b.recvs(1)
		r.posted("too many pieces")(b.srq.PostRecv([]verbs.RecvWR{{ID: 9, SGE: make([]verbs.SGE, 9)}}))
		r.posted("two")(b.srq.PostRecv([]verbs.RecvWR{{ID: 9}, {ID: 10}}))
		for range 3 {
			a.post(a.wr(abi.WRSend, 0, 0))
		}
		b.recvs(3)
		a.sends(4)
	}},
	{"srq/datagrams", func(r *rig) {
		a, b, way := r.datagrams(func(c *config) { c.shared = 4 })
		b.recvShared(0, 1000)
		b.recvShared(2000, 1000)
		for range 2 {
			a.complete(a.datagram(abi.WRSend, 0, 100, way, b))
			b.recvs(1)
		}
	}},
}

// sharing is pair with a shared receive queue at b of n receives.
func (r *rig) sharing(n int, change ...func(*config)) (a, b *end) {
	c := changed(change...)
	a = r.newEnd("a", r.open(0), c)
	c.shared = n
	b = r.newEnd("b", r.open(1), c)
	r.connect(a, b)
	return a, b
}

// sayLimit waits for an event and adds it.
func (r *rig) sayLimit(events <-chan verbs.Event, s *verbs.SRQ) {
	select {
	case e := <-events:
		r.say("%v, of the queue: %t", e.Type, e.SRQ == s)
	case <-r.withDeadline().Done():
		r.say("no event")
	}
}

// ofQueuePairs returns the events of an end's queue pairs.
func ofQueuePairs(e *end) (events <-chan verbs.Event, stop func()) {
	all := make(chan verbs.Event, 16)
	return all, e.ctx.Watch(func(ev verbs.Event) {
		if ev.QP != nil {
			all <- ev
		}
	})
}

// sayOfQueuePair gives an event a chance to come, and adds it.
func (r *rig) sayOfQueuePair(events <-chan verbs.Event, q *verbs.QP) {
	select {
	case e := <-events:
		r.say("%v, of the queue pair: %t", e.Type, e.QP == q)
	case <-r.within(50 * time.Millisecond).Done():
		r.say("no event")
	}
}

// another makes queue pairs beside those of two ends, and connects them.
func (r *rig) another(a, b *end) (c, d *end) {
	c, d = &end{}, &end{}
	*c, *d = *a, *b
	c.name, d.name = "c", "d"
	c.qp = must.Get(a.pd.CreateQP(a.init()))(r)
	d.qp = must.Get(b.pd.CreateQP(b.init()))(r)
	r.connect(c, d)
	return c, d
}

// recvShared posts a shared receive with the next id over a piece of the
// buffer.
func (e *end) recvShared(offset, length int) {
	e.nextID++
	must.Get(e.srq.PostRecv([]verbs.RecvWR{{ID: e.nextID, SGE: []verbs.SGE{e.sge(offset, length)}}}))(e.r)
}

func sayShared(r *rig, s *verbs.SRQ) {
	attr := must.Get(s.Query())(r)
	r.say("%d receives, %d pieces, limit %d", attr.MaxWR, attr.MaxSGE, attr.Limit)
}

// sayTaker adds the queue pair that took a receive.
func sayTaker(r *rig, wcs []verbs.WC, ends ...*end) {
	for i := range wcs {
		for _, e := range ends {
			if wcs[i].QPN == e.qp.Num() {
				r.say("taken by %s", e.name)
			}
		}
	}
}
