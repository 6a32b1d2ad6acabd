//go:build linux || darwin

package conform

import (
	"context"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
)

// uapiChangeTests are the handle API's functions for address handles and for
// changing objects.
var uapiChangeTests = []test{
	{"uapi/resize", func(r *rig) {
		a := r.uapiOpen(0)
		cq := must.Get(a.CreateCQ(8))(r)
		config := patient()
		config.SendCQ, config.RecvCQ = cq, cq
		config.SendDepth, config.RecvDepth = 2, 0 // a queue is not made smaller than that
		x := r.newHandles("a", a, config)
		y := r.newHandles("b", r.uapiOpen(1), patient())
		r.join(x, y)
		wc := make([]uapi.WC, 4)
		for _, size := range []int{100, 2, 1 << 20, 0, 9} {
			x.posted(x.PostWrite(x.qp, x.mr, 0, y.info.Addr, y.info.RKey, 8))
			r.say("to %d: %s", size, errText(a.ResizeCQ(cq, size)))
			n := must.Get(a.WaitQueue(context.Background(), cq, wc[:1]))(r)
			r.say("%d: %d %s", n, wc[0].WRID, handleText(&wc[0]))
		}
		r.must(a.DestroyQP(x.qp))
		r.must(a.DestroyCQ(cq))
		r.result("of what is gone", a.ResizeCQ(cq, 9))
	}},
	{"uapi/addresses", func(r *rig) {
		a, b := r.uapiEnds(patient())
		there := must.Get(b.LocalEndpoint(b.qp))(r)
		ah, err := a.CreateAH(there.Addr, uapi.AHConfig{})
		r.say("CreateAH: %s, a handle: %t", errText(err), ah > 0)
		r.result("DestroyAH of the other side", b.DestroyAH(ah))
		r.result("DestroyAH", a.DestroyAH(ah))
		r.result("DestroyAH", a.DestroyAH(ah))
	}},
	{"uapi/rereg-refused", func(r *rig) {
		a, _ := r.uapiEnds(patient())
		r.result("empty memory", a.ReRegMR(a.mr, []byte{}, uapiAll))
		r.result("unknown access", a.ReRegMR(a.mr, nil, 1<<20))
		r.result("remote writing alone", a.ReRegMR(a.mr, nil, uapi.AccessRemoteWrite))
		info := must.Get(a.QueryMR(a.mr))(r)
		r.say("nothing has changed: %t", info == a.info)
		r.must(a.DeregMR(a.mr))
		r.result("of what is gone", a.ReRegMR(a.mr, nil, uapiAll))
	}},
}
