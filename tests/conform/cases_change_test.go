//go:build linux || darwin

package conform

import (
	"sync"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/ring"
	"github.com/rdmashim/rdmashim/kshim/verbs"
	"github.com/rdmashim/rdmashim/tests/must"
)

// changeTests are address handles, and objects that are changed while they are
// used.
var changeTests = []test{
	onEnds("ah/create", func(r *rig, a, b *end) {
		attr := ahAttr(a.path(b))
		first, err := a.pd.CreateAH(attr)
		r.result("CreateAH", err)
		second, err := a.pd.CreateAH(attr)
		r.result("CreateAH of the same", err)
		r.say("numbers: %t, another: %t", first.Num() != 0, first.Num() != second.Num())
		r.result("Destroy", first.Destroy())
		r.result("Destroy", first.Destroy())
		r.result("Destroy of the second", second.Destroy())
	}),
	onEnds("ah/domain-in-use", func(r *rig, a, b *end) {
		pd := must.Get(a.ctx.AllocPD())(r)
		ah, err := pd.CreateAH(ahAttr(a.path(b)))
		r.result("CreateAH", err)
		r.result("Dealloc of its domain", pd.Dealloc())
		r.result("Destroy", ah.Destroy())
		r.result("Dealloc of its domain", pd.Dealloc())
		r.result("CreateAH in what is gone", errOf(pd.CreateAH(ahAttr(a.path(b)))))
	}),
	onEnds("ah/vectors", func(r *rig, a, b *end) {
		for _, v := range []struct {
			what   string
			change func(*abi.AHAttr)
		}{
			{"itself", func(v *abi.AHAttr) { *v = ahAttr(a.path(a)) }},
			{"flow label, traffic class, service level", func(v *abi.AHAttr) { v.FlowLabel, v.TrafficClass, v.SL = 0x12345, 8, 3 }},
			{"no hops", func(v *abi.AHAttr) { v.HopLimit = 0 }},
			{"port 0", func(v *abi.AHAttr) { v.PortNum = 0 }},
			{"port 2", func(v *abi.AHAttr) { v.PortNum = 2 }},
			{"no global route", func(v *abi.AHAttr) { v.IsGlobal = 0 }},
			{"an empty GID index", func(v *abi.AHAttr) { v.SGIDIndex = 200 }},
		} {
			attr := ahAttr(a.path(b))
			v.change(&attr)
			ah, err := a.pd.CreateAH(attr)
			if r.result(v.what, err) {
				r.must(ah.Destroy())
			}
		}
	}),
	onEnds("ah/many", func(r *rig, a, b *end) {
		numbers := map[uint32]bool{}
		for range 300 {
			ah := must.Get(a.pd.CreateAH(ahAttr(a.path(b))))(r)
			numbers[ah.Num()] = true
		}
		r.say("%d numbers of 300", len(numbers))
	}),
	{"cq/resize-keeps-completions", func(r *rig) {
		a, b := r.pair(func(c *config) { c.cqe = 20 })
		a.writes(5, b)
		r.result("Resize to 200", a.scq.Resize(200))
		a.writes(3, b)
		a.sends(8)
		r.result("Resize to 5", a.scq.Resize(5))
		r.say("room: %d", a.scq.Cap())
		a.complete(a.rdma(abi.WRRDMAWrite, 0, 8, b, 0))
		a.sayNoMore()
	}},
	{"cq/resize-limits", func(r *rig) {
		cq := must.Get(r.open(0).CreateCQ(10))(r)
		for _, n := range []int{-1, 0, 1, 15, 16, 32767, 32768, 1 << 24} {
			r.say("to %d: %s", n, errText(cq.Resize(n)))
		}
		r.must(cq.Destroy())
		r.result("of what is gone", cq.Resize(10))
	}},
	onPair("cq/resize-with-a-waiter", func(r *rig, a, b *end) {
		var waiter sync.WaitGroup
		waiter.Go(func() {
			wc := make([]verbs.WC, 4)
			n, err := a.scq.Wait(r.withDeadline(), wc)
			r.say("the waiter: %v, %s", wcLines(wc[:n]), errText(err))
		})
		pause()
		err := a.scq.Resize(500)
		a.post(a.rdma(abi.WRRDMAWrite, 0, 8, b, 0))
		waiter.Wait()
		r.result("Resize", err)
	}),
	onPair("cq/resize-under-traffic", func(r *rig, a, b *end) {
		const rounds = 200
		wrong := 0
		for i := range rounds {
			a.post(a.rdma(abi.WRRDMAWrite, 0, 64, b, 0), a.rdma(abi.WRRDMAWrite, 64, 64, b, 64))
			if i%5 == 0 {
				r.must(a.scq.Resize(40 + i))
			}
			wcs := must.Get(take(a.scq, 2))(r)
			if wcs[0].ID != a.nextID-1 || wcs[1].ID != a.nextID || wcs[0].Status != abi.WCSuccess {
				wrong++
			}
		}
		r.say("%d of %d rounds wrong", wrong, rounds)
		a.sayNoMore()
	}),
	onPair("cq/resize-receives", func(r *rig, a, b *end) {
		b.offer(4, 64)
		a.complete(a.wr(abi.WRSend, 0, 8), a.wr(abi.WRSend, 8, 16))
		r.result("Resize", b.rcq.Resize(300))
		a.complete(a.wr(abi.WRSend, 0, 24))
		b.recvs(3)
	}),
	onFile("abi/resize-rings", func(r *rig, w *raw) {
		qp, cq := w.connected(10, -1)
		qp.post(qp.rdmaWrite())
		eventually(func() bool { n, _ := cq.c.Ready(); return n == 1 })
		resp, mi, err := w.resize(cq.handle, 100)
		r.say("RESIZE_CQ: %s, %d entries", errText(err), resp.CQE)
		r.number("the old ring")(cq.c.Ready())
		_, other, err := w.resize(cq.handle, 20)
		r.result("again, before the first was mapped", err)
		r.result("mapping the first then", errOf(w.f.Mmap(mi.Offset, int(mi.Size))))
		cq.q = w.open(other)
		cq.c = cq.q.Consumer()
		n, err := cq.c.Ready()
		r.say("the new ring: %d, %s, %d fit", n, errText(err), cq.q.Cap())
		var wc ring.WC
		r.must(ring.DecodeWC(cq.c.Slot(0), &wc))
		r.say("its completion: %d %v", wc.ID, wc.Status)
		qp.post(qp.rdmaWrite())
		cq.take(2)
		r.result("mapping it twice", errOf(w.f.Mmap(other.Offset, int(other.Size))))
	}),
	onFile("abi/resize-too-small", func(r *rig, w *raw) {
		qp, cq := w.connected(15, -1)
		for range 9 {
			qp.post(qp.rdmaWrite())
		}
		eventually(func() bool { n, _ := cq.c.Ready(); return n == 9 })
		for _, n := range []int{1, 7, 8} {
			_, _, err := w.resize(cq.handle, n)
			r.say("to %d: %s", n, errText(err))
		}
		cq.take(2)
		resp, mi, err := w.resize(cq.handle, 7)
		r.say("to 7, when so many wait: %s, %d entries", errText(err), resp.CQE)
		q := w.open(mi)
		n, err := q.Consumer().Ready()
		r.say("%d wait of %d, %s", n, q.Cap(), errText(err))
	}),
	{"mr/rereg", func(r *rig) {
		a, b := r.pair(func(c *config) { c.mrAccess = abi.AccessLocalWrite })
		rereg := func(what string, c verbs.Rereg) {
			r.result(what, b.mr.Rereg(c))
		}
		rereg("nothing", verbs.Rereg{})
		rereg("unknown flag", verbs.Rereg{Flags: 8})
		rereg("access", verbs.Rereg{Flags: abi.ReregAccess, Access: allAccess})
		rereg("REMOTE_WRITE alone", verbs.Rereg{Flags: abi.ReregAccess, Access: abi.AccessRemoteWrite})
		r.say("access now: %v", b.mr.Access())
		old := b.buf
		fill(old, 1)
		b.buf = make([]byte, 4096)
		rereg("memory", verbs.Rereg{Flags: abi.ReregTranslation, Buf: b.buf})
		r.say("length now: %d", b.mr.Length())
		a.complete(a.rdma(abi.WRRDMAWrite, 0, 64, b, 0))
		r.sayUntouched("the old memory", old, 1)
		pd := must.Get(b.ctx.AllocPD())(r)
		rereg("domain", verbs.Rereg{Flags: abi.ReregPD, PD: pd})
		r.result("Dealloc of the new domain", pd.Dealloc())
		r.boundsOf()
	}},
}

// boundsOf holds a region that was changed to its new bounds, where it could be
// changed.
func (r *rig) boundsOf() {
	a, b := r.pair()
	big := make([]byte, 2*len(b.buf))
	switch err := b.mr.Rereg(verbs.Rereg{Flags: abi.ReregTranslation, Buf: big}); errText(err) {
	case "EOPNOTSUPP":
		return
	case "ok":
	default:
		r.Fatal(err)
	}
	fill(a.buf, 9)
	for _, c := range []struct {
		at     int
		status abi.WCStatus
	}{{len(big) - 64, abi.WCSuccess}, {len(big) - 63, abi.WCRemAccessErr}} {
		a.post(a.rdma(abi.WRRDMAWrite, 0, 64, b, c.at))
		wcs := must.Get(take(a.scq, 1))(r)
		if wcs[0].Status != c.status {
			r.Errorf("64 bytes at %d of %d: %v, not %v", c.at, len(big), wcs[0].Status, c.status)
		}
	}
	if string(big[len(big)-64:]) != string(a.buf[:64]) {
		r.Error("the new memory does not have the data")
	}
}

// resize gives RESIZE_CQ by ioctl.
func (w *raw) resize(cq uint32, cqe int) (resp abi.ResizeCQResp, mi abi.MMInfo, err error) {
	var uhw abi.RXEResizeCQResp
	err = w.command(abi.CmdResizeCQ, &abi.ResizeCQ{CQHandle: cq, CQE: uint32(cqe)}, abi.ResizeCQSize, &resp, abi.ResizeCQRespSize, &uhw, abi.RXEResizeCQRespSize)
	return resp, uhw.MI, err
}
