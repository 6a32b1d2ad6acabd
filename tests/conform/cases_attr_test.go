//go:build linux || darwin

package conform

import (
	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/verbs"
	"github.com/rdmashim/rdmashim/tests/must"
)

// attrTests are the ranges of attributes.
var attrTests = []test{
	attrTest("port", "to INIT", func(a *verbs.QPAttr, v int) { a.PortNum = uint8(v) }, 0, 1, 2, 255),
	attrTest("pkey-index", "to INIT", func(a *verbs.QPAttr, v int) { a.PkeyIndex = uint16(v) }, 0, 1, 63, 64, 65535),
	attrTest("access", "to INIT", func(a *verbs.QPAttr, v int) { a.AccessFlags = abi.AccessFlags(v) }, 0, 1, 2, 4, 8, 15, 16, 1<<31-1),
	attrTest("path-mtu", "to RTR", func(a *verbs.QPAttr, v int) { a.PathMTU = abi.MTU(v) }, 0, 1, 2, 3, 4, 5, 6, 255),
	attrTest("destination", "to RTR", func(a *verbs.QPAttr, v int) { a.DestQPNum = uint32(v) }, 0, 1, 0xffffff, 0x1000000, 0x7fffffff),
	attrTest("rq-psn", "to RTR", func(a *verbs.QPAttr, v int) { a.RQPSN = uint32(v) }, 0, 0xffffff, 0x1000000, 0x7fffffff),
	attrTest("min-rnr-timer", "to RTR", func(a *verbs.QPAttr, v int) { a.MinRNRTimer = uint8(v) }, 0, 1, 31, 32, 255),
	// Downwards, since older Linux (6.1.176) clears as many of the old
	// resources as there will be new ones (rxe_qp.c: free_rd_atomic_resources).
	attrTest("max-dest-rd-atomic", "to RTR", func(a *verbs.QPAttr, v int) { a.MaxDestRdAtomic = uint8(v) }, 128, 16, 3, 1, 0, 129, 255),
	attrTest("path-port", "to RTR", func(a *verbs.QPAttr, v int) { a.AV.PortNum = uint8(v) }, 0, 1, 2),
	attrTest("path-global", "to RTR", func(a *verbs.QPAttr, v int) { a.AV.IsGlobal = uint8(v) }, 0, 1, 255),
	attrTest("path-source-index", "to RTR", func(a *verbs.QPAttr, v int) { a.AV.SGIDIndex = uint8(v) }, 200, 255),
	attrTest("path-hop-limit", "to RTR", func(a *verbs.QPAttr, v int) { a.AV.HopLimit = uint8(v) }, 0, 1, 255),
	attrTest("path-traffic-class", "to RTR", func(a *verbs.QPAttr, v int) { a.AV.TrafficClass = uint8(v) }, 0, 104, 255),
	attrTest("path-service-level", "to RTR", func(a *verbs.QPAttr, v int) { a.AV.SL = uint8(v) }, 0, 15, 16),
	attrTest("timeout", "to RTS", func(a *verbs.QPAttr, v int) { a.Timeout = uint8(v) }, 0, 1, 31, 32, 255),
	attrTest("retry-counts", "to RTS", func(a *verbs.QPAttr, v int) { a.RetryCnt, a.RNRRetry = uint8(v)&15, uint8(v)>>4 }, 0x00, 0x77, 0x78, 0x87),
	attrTest("max-rd-atomic", "to RTS", func(a *verbs.QPAttr, v int) { a.MaxRdAtomic = uint8(v) }, 0, 1, 16, 128, 129, 255),
	attrTest("sq-psn", "to RTS", func(a *verbs.QPAttr, v int) { a.SQPSN = uint32(v) }, 0, 0xffffff, 0x1000000, 0x7fffffff),
	onEnds("attr/path-unspecified", func(r *rig, a, b *end) {
		a.toInit()
		attr := a.attrRTR(b)
		attr.AV.DGID = [16]byte{}
		r.result("to nobody", a.qp.Modify(&attr, maskRTR))
		a.sayState()
	}),
}

// attrTest tries values of one attribute in the transition that takes it, each
// on its own.
func attrTest(name, step string, set func(*verbs.QPAttr, int), values ...int) test {
	return test{"attr/" + name, func(r *rig) {
		a, b := r.ends()
		for _, v := range values {
			if a.qp.State() != abi.QPSReset {
				a.to(abi.QPSReset)
			}
			attr, mask := a.attrInit(), maskInit
			switch step {
			case "to RTR":
				a.toInit()
				attr, mask = a.attrRTR(b), maskRTR
			case "to RTS":
				a.toRTR(b)
				attr, mask = a.attrRTS(), maskRTS
			}
			set(&attr, v)
			err := a.qp.Modify(&attr, mask)
			r.say("%s %s with %#x: %s", name, step, v, errText(err))
			if err != nil {
				continue
			}
			got := must.Get(a.qp.Query())(r)
			want := got
			set(&want, v)
			if want != got {
				r.say("%#x is not what Query gives", v)
			}
		}
	}}
}
