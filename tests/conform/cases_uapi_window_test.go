//go:build linux || darwin

package conform

import (
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
)

// uapiLender is a side with a region that is closed to its peer, and a window.
type uapiLender struct {
	*handles
	mem  uapi.MR
	data []byte
	mw   uapi.MW
}

func (r *rig) uapiLend() (a *handles, b *uapiLender) {
	a, h := r.uapiPair(patient())
	b = &uapiLender{handles: h, data: make([]byte, 8192), mw: must.Get(h.CreateMW(h.qp))(r)}
	b.mem = must.Get(b.RegMR(b.data, uapi.AccessLocalWrite|uapi.AccessMWBind))(r)
	return a, b
}

// bind is a request that opens 4000 bytes to the peer, and what it is to be
// told.
func (b *uapiLender) bind(access uapi.Access) (uapi.WR, uapi.Region) {
	piece := uapi.SGE{MR: b.mem, Offset: 1000, Length: 4000}
	region := must.Get(b.NextRegion(b.mw, piece, access))(b.r)
	return uapi.WR{Op: uapi.OpBindMW, Flags: uapi.Signaled, MW: b.mw, SGE: []uapi.SGE{piece}, Access: access}, region
}

// posts are requests that must be possible to post, and that complete.
func (h *handles) posts(wrs ...uapi.WR) {
	must.Get(h.Post(h.qp, wrs))(h.r)
	n := 0
	for _, wr := range wrs {
		if wr.Flags&uapi.Signaled != 0 {
			n++
		}
	}
	h.next(n)
}

// uapiWindowTests are the handle API's memory windows. They use none beyond its
// bounds and revoke none twice: see windowTests.
var uapiWindowTests = []test{
	{"uapi/window", func(r *rig) {
		// The server lends memory for one request, and the answer ends
		// the loan.
		a, b := r.uapiLend()
		fill(a.buf[:3000], 1)
		for id := range 2 {
			a.posted(a.PostRecv(a.qp, a.mr, 60000, 100))
			b.posted(b.PostRecv(b.qp, b.mr, 0, 100))
			bind, region := b.bind(uapi.AccessRemoteWrite | uapi.AccessRemoteRead)
			told := must.Get(region.AppendBinary(b.buf[1000:1000]))(r)
			bind.Flags = 0
			b.posts(bind, uapi.WR{ID: 1, Op: uapi.OpSend, Flags: uapi.Signaled, SGE: []uapi.SGE{{MR: b.mr, Offset: 1000, Length: uint64(len(told))}}})
			a.next(1)
			var there uapi.Region
			r.must(there.UnmarshalBinary(a.buf[60000:][:uapi.RegionSize]))
			clear(b.data)
			a.posts(
				uapi.WR{ID: 10, Op: uapi.OpWrite, Flags: uapi.Signaled, SGE: []uapi.SGE{{MR: a.mr, Length: 3000}}, RemoteAddr: there.Addr, RKey: there.RKey},
				uapi.WR{ID: 11, Op: uapi.OpRead, Flags: uapi.Signaled, SGE: []uapi.SGE{{MR: a.mr, Offset: 4000, Length: 3000}}, RemoteAddr: there.Addr, RKey: there.RKey},
				uapi.WR{ID: 12, Op: uapi.OpSendInv, Flags: uapi.Signaled | uapi.Fence, SGE: []uapi.SGE{{MR: a.mr, Length: 8}}, RKey: there.RKey},
			)
			r.saySame("written", a.buf[:3000], b.data[1000:4000])
			r.saySame("read", a.buf[:3000], a.buf[4000:7000])
			wc := b.next(1)[0]
			r.say("loan %d, its key: %t", id, wc.InvRKey == region.RKey)
			if id == 1 {
				r.result("DeregMR", b.DeregMR(b.mem))
				r.say("after the loan")
				a.posted(a.PostWrite(a.qp, a.mr, 0, there.Addr, there.RKey, 8))
				a.next(1)
			}
		}
	}},
	{"uapi/window-revoked", func(r *rig) {
		a, b := r.uapiLend()
		bind, first := b.bind(uapi.AccessRemoteRead)
		revoke := uapi.WR{Op: uapi.OpLocalInv, Flags: uapi.Signaled, MW: b.mw}
		b.posts(bind)
		a.posted(a.PostRead(a.qp, a.mr, 0, first.Addr, first.RKey, 100))
		a.next(1)
		r.result("DeregMR of what is lent", b.DeregMR(b.mem))
		b.posts(revoke)
		bind, second := b.bind(uapi.AccessRemoteRead)
		b.posts(bind)
		r.say("another key: %t", first.RKey != second.RKey)
		a.posted(a.PostRead(a.qp, a.mr, 0, second.Addr, second.RKey, 100))
		a.next(1)
		a.posted(a.PostRead(a.qp, a.mr, 0, first.Addr, first.RKey, 100))
		a.next(1)
		a.sayInfo()
		r.result("DestroyMW of one that is bound", b.DestroyMW(b.mw))
		r.result("DeregMR", b.DeregMR(b.mem))
	}},
	{"uapi/window-refused", func(r *rig) {
		a, b := r.uapiLend()
		bind, _ := b.bind(uapi.AccessRemoteWrite)
		try := func(what string, change func(wr *uapi.WR)) {
			wr := bind
			wr.SGE = []uapi.SGE{bind.SGE[0]}
			change(&wr)
			_, err := b.Post(b.qp, []uapi.WR{wr})
			r.result(what, err)
		}
		try("beyond the region", func(wr *uapi.WR) { wr.SGE[0].Offset = 8000 })
		try("a region without AccessMWBind", func(wr *uapi.WR) { wr.SGE[0].MR = b.mr })
		try("no access", func(wr *uapi.WR) { wr.Access = 0 })
		try("no window", func(wr *uapi.WR) { wr.MW = 0 })
		try("a revocation of one that is free", func(wr *uapi.WR) { wr.Op = uapi.OpLocalInv })
		b.posts(bind)
		try("a binding of one that is bound", func(*uapi.WR) {})
		r.result("DestroyMW of the other side", a.DestroyMW(b.mw))
		r.result("DestroyMW", b.DestroyMW(b.mw))
		r.result("DestroyMW", b.DestroyMW(b.mw))
		try("a binding of one that is gone", func(*uapi.WR) {})
		b.sayInfo()
		r.result("CreateMW", errOf(b.CreateMW(0)))
		a.posted(a.PostWrite(a.qp, a.mr, 0, b.info.Addr, b.info.RKey+1, 8))
		a.next(1)
	}},
	{"uapi/window-ends", func(r *rig) {
		// A window that is bound ends with its queue pair, and with its device.
		for _, destroy := range []bool{true, false} {
			_, b := r.uapiLend()
			bind, _ := b.bind(uapi.AccessRemoteWrite)
			b.posts(bind)
			if destroy {
				r.result("DestroyQP", b.DestroyQP(b.qp))
				r.result("DestroyMW", b.DestroyMW(b.mw))
				r.result("DeregMR", b.DeregMR(b.mem))
			}
			r.result("Close", b.Close())
		}
	}},
}
