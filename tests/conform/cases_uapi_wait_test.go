//go:build linux || darwin

package conform

import (
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
)

// uapiWaitTests are the handle API's waits that a program wakes, and those for
// several completion queues.
var uapiWaitTests = []test{
	onHandles("uapi/wake", func(r *rig, a, b *handles) {
		info := must.Get(a.QueryQP(a.qp))(r)
		cqs := []uapi.CQ{info.SendCQ}
		ctx := r.withDeadline()
		wc := make([]uapi.WC, 4)
		r.must(a.WakeCQ(cqs[0]))
		r.number("a wait after WakeCQ")(a.WaitCQ(ctx, a.qp, wc))
		var n int
		var err error
		done := make(chan struct{})
		go func() {
			defer close(done)
			n, err = a.WaitAny(ctx, cqs, wc)
		}()
		r.must(a.WakeCQ(cqs[0]))
		<-done
		r.say("one that may block: %d, %s", n, errText(err))
		a.write(b)
		r.result("WakeCQ of the other side", b.WakeCQ(cqs[0]))
		r.must(a.DestroyQP(a.qp))
		r.result("WakeCQ of what is gone", a.WakeCQ(cqs[0]))
		r.result("WaitAny of what is gone", errOf(a.WaitAny(ctx, cqs, wc)))
	}),
	{"uapi/wait-any", func(r *rig) {
		// Each of two queue pairs has a queue of its own; whichever completes
		// first, both come.
		a, b := r.uapiPair(patient())
		x := r.newHandles("x", a.Device, patient())
		y := r.newHandles("y", b.Device, patient())
		r.join(x, y)
		var cqs []uapi.CQ
		for _, h := range []*handles{a, x} {
			info := must.Get(h.QueryQP(h.qp))(r)
			cqs = append(cqs, info.SendCQ)
		}
		ctx := r.withDeadline()
		came := map[uapi.QP]int{}
		wc := make([]uapi.WC, 4)
		for range 3 {
			a.posted(a.PostWrite(a.qp, a.mr, 0, b.info.Addr, b.info.RKey, 8))
			x.posted(x.PostWrite(x.qp, x.mr, 0, y.info.Addr, y.info.RKey, 8))
			for got := 0; got < 2; {
				n := must.Get(a.WaitAny(ctx, cqs, wc))(r)
				for _, c := range wc[:n] {
					r.must(c.Err())
					came[c.QP]++
				}
				got += n
			}
		}
		r.say("completions: %d of a, %d of x", came[a.qp], came[x.qp])
		r.result("WaitAny of nothing", errOf(a.WaitAny(ctx, nil, wc)))
	}},
}
