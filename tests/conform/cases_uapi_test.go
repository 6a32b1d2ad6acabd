//go:build linux || darwin

package conform

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/stats"
)

// uapiTests are the handle API's calls, on the same kernels.
var uapiTests = []test{
	{"uapi/open-unknown", func(r *rig) {
		for _, name := range []string{"nothing0", "host:nothing0", "a b", "soft:nowhere"} {
			r.result(fmt.Sprintf("%q", name), errOf(uapi.Open(name, uapi.OpenConfig{})))
		}
	}},
	{"uapi/device", func(r *rig) {
		d := r.uapiOpen(0)
		info, err := d.QueryDevice()
		r.result("QueryDevice", err)
		r.say("driver %s, port %d %s, MTU %d of %d", info.Driver, info.Port, info.PortState, info.MTU, info.MaxMTU)
		r.say("max message %d, pieces %d, rd_atomic %d, cqe %d, depth %d", info.MaxMessage, info.MaxSGE, info.MaxRdAtomic, info.MaxCQE, info.MaxDepth)
		r.say("address: %t, GIDs: %t, reason: %t", info.Address.Addr().IsValid(), len(info.GIDs) > 0, info.GIDReason != "")
	}},
	{"uapi/devices", func(r *rig) {
		c := r.uapiOpen(0)
		mine := must.Get(c.QueryDevice())(r)
		list, err := uapi.Devices()
		r.result("Devices", err)
		found := false
		for _, d := range list {
			found = found || d.Device == mine.Device && d.Open
		}
		r.say("the open one is listed as open: %t", found)
	}},
	{"uapi/options", func(r *rig) {
		for _, o := range []struct {
			what   string
			config uapi.OpenConfig
		}{
			{"port 2", uapi.OpenConfig{Port: 2}}, {"GID 900", uapi.OpenConfig{GIDIndex: new(900)}}, {"MTU 1000", uapi.OpenConfig{MTU: 1000}},
			{"MTU 4096", uapi.OpenConfig{MTU: 4096}}, {"MTU 512", uapi.OpenConfig{MTU: 512}},
		} {
			d, err := uapi.Open(r.sys.uapi[0], o.config)
			if err != nil {
				r.say("%s: %s", o.what, errText(err))
				continue
			}
			info := must.Get(d.QueryDevice())(r)
			r.say("%s: ok, MTU %d", o.what, info.MTU)
			r.must(d.Close())
		}
	}},
	{"uapi/register", func(r *rig) {
		d := r.uapiOpen(0)
		buf := make([]byte, 1000)
		mr, err := d.RegMR(buf, uapiAll)
		r.result("RegMR", err)
		info, err := d.QueryMR(mr)
		r.say("QueryMR: %s, %d bytes, %v, keys alike: %t", errText(err), info.Length, info.Access, info.LKey == info.RKey)
		r.result("DeregMR", d.DeregMR(mr))
		r.result("DeregMR", d.DeregMR(mr))
		r.result("QueryMR", errOf(d.QueryMR(mr)))
		for _, bad := range []struct {
			what   string
			buf    []byte
			access uapi.Access
		}{{"nothing", nil, 0}, {"remote write alone", buf, uapi.AccessRemoteWrite}, {"unknown access", buf, 1 << 30}} {
			mr, err := d.RegMR(bad.buf, bad.access)
			r.say("%s: %d, %s", bad.what, mr, errText(err))
		}
	}},
	{"uapi/register-alloc", func(r *rig) {
		d := r.uapiOpen(0)
		mem, err := uapi.Alloc(10000)
		r.result("Alloc", err)
		mr, err := d.RegMR(mem, uapiAll)
		r.result("RegMR", err)
		r.result("Free while registered", uapi.Free(mem))
		r.result("DeregMR", d.DeregMR(mr))
		r.result("Free", uapi.Free(mem))
	}},
	{"uapi/create", func(r *rig) {
		d := r.uapiOpen(0)
		for _, s := range [][2]int{{1, 1}, {0, 0}, {100, 7}, {-1, 1}, {1, -1}, {1 << 21, 1}, {40000, 1}} {
			qp, err := d.CreateQP(s[0], s[1])
			r.say("%d sends, %d receives: a number: %t, %s", s[0], s[1], qp > 0, errText(err))
			if err == nil {
				r.result("DestroyQP", d.DestroyQP(qp))
				r.result("DestroyQP", d.DestroyQP(qp))
			}
		}
	}},
	{"uapi/completion-queues", func(r *rig) {
		d := r.uapiOpen(0)
		for _, n := range []int{0, -1, 1, 32767, 32768} {
			cq, err := d.CreateCQ(n)
			r.say("%d entries: %s", n, errText(err))
			if err == nil {
				r.must(d.DestroyCQ(cq))
			}
		}
		cq := must.Get(d.CreateCQ(16))(r)
		qp, err := d.CreateQPWith(uapi.QPConfig{SendCQ: cq, RecvCQ: cq, SendDepth: 4, RecvDepth: 4})
		r.result("CreateQPWith", err)
		r.result("DestroyCQ in use", d.DestroyCQ(cq))
		r.result("DestroyQP", d.DestroyQP(qp))
		r.result("DestroyCQ", d.DestroyCQ(cq))
		r.result("PollQueue", errOf(d.PollQueue(cq, make([]uapi.WC, 1))))
		r.result("CreateQPWith on what is gone", errOf(d.CreateQPWith(uapi.QPConfig{SendCQ: cq, SendDepth: 4})))
	}},
	{"uapi/not-connected", func(r *rig) {
		a, b := r.uapiEnds(patient())
		a.sayPosted("PostWrite")(a.PostWrite(a.qp, a.mr, 0, b.info.Addr, b.info.RKey, 8))
		a.sayPosted("PostRecv")(a.PostRecv(a.qp, a.mr, 0, 8))
		r.result("LocalEndpoint", errOf(a.LocalEndpoint(a.qp)))
		a.sayPosted("PostRecv")(a.PostRecv(a.qp, a.mr, 0, 8))
		r.result("Disconnect", a.Disconnect(a.qp))
	}},
	{"uapi/endpoint", func(r *rig) {
		a, _ := r.uapiEnds(patient())
		e, err := a.LocalEndpoint(a.qp)
		r.result("LocalEndpoint", err)
		r.say("number right: %t, MTU %d, rd_atomic %d, valid: %s", e.QPN == uint32(a.qp), e.MTU, e.MaxRdAtomic, errText(e.Validate()))
		again, err := uapi.ParseEndpoint(e.String())
		r.say("there and back: %t, %s", again == e, errText(err))
		a.sayInfo()
	}},
	{"uapi/connect-refuses", func(r *rig) {
		a, b := r.uapiEnds(patient())
		e := must.Get(b.LocalEndpoint(b.qp))(r)
		r.result("to nobody", a.ConnectQP(a.qp, uapi.Endpoint{}))
		bad := e
		bad.MTU = 1000
		r.result("with a bad MTU", a.ConnectQP(a.qp, bad))
		bad = e
		bad.QPN = 1 << 24
		r.result("with a bad number", a.ConnectQP(a.qp, bad))
		bad = e
		bad.Addr = netip.MustParseAddrPort("[2001:db8::1]:4791")
		r.result("to the other IP version", a.ConnectQP(a.qp, bad))
		r.result("well", a.ConnectQP(a.qp, e))
		r.result("again", a.ConnectQP(a.qp, e))
		r.result("one that is not there", a.ConnectQP(uapi.QP(1<<24-2), e))
	}},
	{"uapi/connect-takes-the-smaller", func(r *rig) {
		a := r.newHandles("a", r.uapiOpen(0), uapi.QPConfig{SendDepth: 4, RecvDepth: 4, MTU: 512, MaxRdAtomic: 4, Timeout: time.Second})
		b := r.newHandles("b", r.uapiOpen(1), uapi.QPConfig{SendDepth: 4, RecvDepth: 4, MaxRdAtomic: 8, Timeout: time.Second})
		r.join(a, b)
		for _, h := range []*handles{a, b} {
			info := must.Get(h.QueryQP(h.qp))(r)
			r.say("%s: %v, MTU %d, rd_atomic %d, timeout %v, retry %d, rnr_retry %d", h.name, info.State, info.MTU, info.MaxRdAtomic, info.Timeout, info.Retry, info.RNRRetry)
		}
		fill(a.buf[:3000], 61)
		a.posted(a.PostWrite(a.qp, a.mr, 0, b.info.Addr, b.info.RKey, 3000))
		a.next(1)
		r.saySame("target", a.buf[:3000], b.buf[:3000])
	}},
	{"uapi/connect-over", func(r *rig) {
		a, b := r.uapiEnds(patient())
		x, y := net.Pipe()
		defer x.Close()
		defer y.Close()
		done := make(chan error, 1)
		go func() {
			peer, err := b.ConnectOver(r.withDeadline(), y, b.qp, []uapi.MR{b.mr}, []byte("b"))
			if err == nil && string(peer.Data) != "a" {
				err = net.ErrWriteToConnected
			}
			done <- err
		}()
		peer, err := a.ConnectOver(r.withDeadline(), x, a.qp, []uapi.MR{a.mr}, []byte("a"))
		r.result("a", err)
		r.result("b", <-done)
		r.say("peer's data %q, regions %d", peer.Data, len(peer.Regions))
		a.posted(a.PostWrite(a.qp, a.mr, 0, peer.Regions[0].Addr, peer.Regions[0].RKey, 100))
		a.next(1)
	}},
	onHandles("uapi/write", func(r *rig, a, b *handles) {
		fill(a.buf[:5000], 62)
		a.sayPosted("PostWrite")(a.PostWrite(a.qp, a.mr, 100, b.info.Addr+7, b.info.RKey, 4000))
		a.next(1)
		r.saySame("target", a.buf[100:4100], b.buf[7:4007])
	}),
	onHandles("uapi/read", func(r *rig, a, b *handles) {
		fill(b.buf[:5000], 63)
		a.sayPosted("PostRead")(a.PostRead(a.qp, a.mr, 100, b.info.Addr+7, b.info.RKey, 4000))
		a.next(1)
		r.saySame("target", b.buf[7:4007], a.buf[100:4100])
	}),
	onHandles("uapi/send", func(r *rig, a, b *handles) {
		fill(a.buf[:5000], 64)
		b.sayPosted("PostRecv")(b.PostRecv(b.qp, b.mr, 50, 6000))
		a.sayPosted("PostSend")(a.PostSend(a.qp, a.mr, 5000))
		a.next(1)
		b.next(1)
		r.saySame("target", a.buf[:5000], b.buf[50:5050])
	}),
	onHandles("uapi/immediates", func(r *rig, a, b *handles) {
		b.posted(b.PostRecv(b.qp, b.mr, 0, 100))
		b.posted(b.PostRecv(b.qp, b.mr, 0, 100))
		a.posted(a.PostSendImm(a.qp, a.mr, 10, 0xfedcba98))
		a.posted(a.WriteImm(a.qp, uapi.SGE{MR: a.mr, Length: 20}, b.info.Region(), 1))
		a.next(2)
		b.next(2)
	}),
	onHandles("uapi/atomics", func(r *rig, a, b *handles) {
		binary.NativeEndian.PutUint64(b.buf[8:], 40)
		word := must.Get(b.info.Region().Slice(8, 8))(r)
		a.posted(a.FetchAdd(a.qp, uapi.SGE{MR: a.mr, Length: 8}, word, 2))
		a.next(1)
		a.posted(a.CompareSwap(a.qp, uapi.SGE{MR: a.mr, Offset: 8, Length: 8}, word, 42, 7))
		a.next(1)
		r.say("old values %d and %d, word %d", binary.NativeEndian.Uint64(a.buf), binary.NativeEndian.Uint64(a.buf[8:]), binary.NativeEndian.Uint64(b.buf[8:]))
		a.sayPosted("misaligned")(a.FetchAdd(a.qp, uapi.SGE{MR: a.mr, Length: 8}, must.Get(b.info.Region().Slice(4, 8))(r), 2))
		must.Get(a.Post(a.qp, []uapi.WR{{ID: 9, Op: uapi.OpFetchAdd, Flags: uapi.Signaled, SGE: []uapi.SGE{{MR: a.mr, Length: 8}}, RemoteAddr: b.info.Addr + 4, RKey: b.info.RKey}}))(r)
		a.next(1)
	}),
	onHandles("uapi/post-refuses", func(r *rig, a, b *handles) {
		size := uint64(len(a.buf))
		a.sayPosted("beyond the region")(a.PostWrite(a.qp, a.mr, size-7, b.info.Addr, b.info.RKey, 8))
		a.sayPosted("far beyond the region")(a.PostWrite(a.qp, a.mr, 1<<63, b.info.Addr, b.info.RKey, 8))
		a.sayPosted("a region that is not there")(a.PostWrite(a.qp, a.mr+1, 0, b.info.Addr, b.info.RKey, 8))
		a.sayPosted("no queue pair")(a.PostWrite(0, a.mr, 0, b.info.Addr, b.info.RKey, 8))
		a.sayPosted("a message beyond the region")(a.PostSend(a.qp, a.mr, size+1))
		a.sayPosted("a receive beyond the region")(a.PostRecv(a.qp, a.mr, 0, size+1))
		a.sayInfo()
	}),
	onHandles("uapi/remote-errors", func(r *rig, a, _ *handles) {
		a.posted(a.PostWrite(a.qp, a.mr, 0, 0x80000000, 12345, 8))
		a.next(1)
		a.sayInfo()
		a, b := r.uapiPair(patient())
		a.posted(a.PostRead(a.qp, a.mr, 0, b.info.Addr+b.info.Length-4, b.info.RKey, 8))
		a.next(1)
	}),
	{"uapi/no-access", func(r *rig) {
		c := patient()
		c.Access = uapi.AccessLocalWrite
		a, b := r.uapiPair(c)
		a.write(b)
	}},
	{"uapi/full", func(r *rig) {
		a, b := r.uapiPair(uapi.QPConfig{SendDepth: 3, RecvDepth: 2, Timeout: time.Second})
		for range 3 {
			a.posted(a.PostWrite(a.qp, a.mr, 0, b.info.Addr, b.info.RKey, 8))
		}
		a.sayPosted("a fourth")(a.PostWrite(a.qp, a.mr, 0, b.info.Addr, b.info.RKey, 8))
		a.next(3)
		a.sayPosted("then")(a.PostWrite(a.qp, a.mr, 0, b.info.Addr, b.info.RKey, 8))
		a.next(1)
		for range 2 {
			b.posted(b.PostRecv(b.qp, b.mr, 0, 8))
		}
		b.sayPosted("a third receive")(b.PostRecv(b.qp, b.mr, 0, 8))
	}},
	{"uapi/post-list", func(r *rig) {
		a, b := r.uapiPair(uapi.QPConfig{SendDepth: 16, RecvDepth: 16, SendSGE: 3, Inline: 32, Timeout: time.Second})
		fill(a.buf[:1000], 65)
		copy(a.buf[2000:], "inline")
		r.posted("b")(b.Post(b.qp, []uapi.WR{{ID: 90, Op: uapi.OpRecv, SGE: []uapi.SGE{{MR: b.mr, Offset: 30000, Length: 100}}}}))
		r.posted("a")(a.Post(a.qp, []uapi.WR{
			{ID: 1, Op: uapi.OpWrite, SGE: []uapi.SGE{{MR: a.mr, Length: 10}, {MR: a.mr, Offset: 100, Length: 20}}, RemoteAddr: b.info.Addr, RKey: b.info.RKey},
			{ID: 2, Op: uapi.OpWrite, Flags: uapi.Signaled | uapi.Inline, SGE: []uapi.SGE{{MR: a.mr, Offset: 2000, Length: 6}}, RemoteAddr: b.info.Addr + 1000, RKey: b.info.RKey},
			{ID: 3, Op: uapi.OpSend, Flags: uapi.Signaled | uapi.Solicited, SGE: []uapi.SGE{{MR: a.mr, Length: 50}}},
			{ID: 4, Op: uapi.OpRead, Flags: uapi.Signaled | uapi.Fence, SGE: []uapi.SGE{{MR: a.mr, Offset: 5000, Length: 30}}, RemoteAddr: b.info.Addr, RKey: b.info.RKey},
		}))
		a.next(3)
		b.next(1)
		r.say("%s", b.buf[1000:1006])
		r.saySame("gathered, and read back", append(append([]byte{}, a.buf[:10]...), a.buf[100:120]...), a.buf[5000:5030])
		r.posted("a")(a.Post(a.qp, []uapi.WR{
			{ID: 5, Op: uapi.OpWrite, Flags: uapi.Signaled, SGE: []uapi.SGE{{MR: a.mr, Length: 1}}, RemoteAddr: b.info.Addr, RKey: b.info.RKey},
			{ID: 6, Op: 99, Flags: uapi.Signaled},
			{ID: 7, Op: uapi.OpWrite, Flags: uapi.Signaled},
		}))
		a.next(1)
	}},
	{"uapi/no-receive", func(r *rig) {
		c := patient()
		c.RNRRetry = uapi.None
		a, b := r.uapiPair(c)
		a.posted(a.PostSend(a.qp, a.mr, 8))
		a.next(1)
		a.sayInfo()
		b.sayInfo()
	}},
	{"uapi/peer-gone", func(r *rig) {
		c := patient()
		c.Timeout, c.Retry = 16*time.Millisecond, 1
		a, b := r.uapiPair(c)
		r.result("DestroyQP", b.DestroyQP(b.qp))
		a.write(b)
	}},
	onHandles("uapi/disconnect", func(r *rig, a, b *handles) {
		for range 3 {
			a.posted(a.PostRecv(a.qp, a.mr, 0, 8))
		}
		r.result("Disconnect", a.Disconnect(a.qp))
		a.next(3)
		a.sayInfo()
		a.sayPosted("PostWrite")(a.PostWrite(a.qp, a.mr, 0, b.info.Addr, b.info.RKey, 8))
		a.next(1)
		a.sayPosted("PostRecv")(a.PostRecv(a.qp, a.mr, 0, 8))
		a.next(1)
		r.result("Disconnect", a.Disconnect(a.qp))
	}),
	onHandles("uapi/dereg-under-way", func(r *rig, a, b *handles) {
		r.result("DeregMR", b.DeregMR(b.mr))
		a.write(b)
	}),
	{"uapi/shared-queue", func(r *rig) {
		ca, cb := r.uapiOpen(0), r.uapiOpen(1)
		cq := must.Get(ca.CreateCQ(64))(r)
		config := patient()
		plain := config
		config.SendCQ, config.RecvCQ = cq, cq
		a, b := r.newHandles("a", ca, config), r.newHandles("b", cb, plain)
		c, d := r.newHandles("c", ca, config), r.newHandles("d", cb, plain)
		r.join(a, b)
		r.join(c, d)
		for _, h := range []*handles{a, c} {
			h.posted(h.PostWrite(h.qp, h.mr, 0, b.info.Addr, b.info.RKey, 8))
			wcs := make([]uapi.WC, 1)
			_, err := ca.WaitQueue(r.withDeadline(), cq, wcs)
			r.say("%s: %s, of its queue pair: %t, %s", h.name, handleText(&wcs[0]), wcs[0].QP == h.qp, errText(err))
			if err == nil && wcs[0].Status != uapi.WCSuccess {
				break // c's peer is d, whose domain is b's
			}
		}
	}},
	onHandles("uapi/poll", func(r *rig, a, b *handles) {
		r.number("nothing")(a.PollCQ(a.qp, make([]uapi.WC, 4)))
		r.number("no queue pair")(a.PollCQ(0, make([]uapi.WC, 4)))
		a.posted(a.PostWrite(a.qp, a.mr, 0, b.info.Addr, b.info.RKey, 8))
		wcs := make([]uapi.WC, 4)
		var n int
		var err error
		eventually(func() bool { n, err = a.PollCQ(a.qp, wcs); return n != 0 })
		r.say("one: %d, %s, %s", n, errText(err), handleText(&wcs[0]))
		ctx := r.within(10 * time.Millisecond)
		r.number("waiting for nothing")(a.WaitCQ(ctx, a.qp, wcs))
	}),
	onHandles("uapi/wait-then-destroy", func(r *rig, a, _ *handles) {
		done := start(func() error { return errOf(a.WaitCQ(r.withDeadline(), a.qp, make([]uapi.WC, 1))) })
		require.True(r, awaitBlocked("uapi.(*Device).WaitCQ("))
		r.result("DestroyQP", a.DestroyQP(a.qp))
		r.result("WaitCQ", <-done)
	}),
	onHandles("uapi/open-handles", func(r *rig, a, _ *handles) {
		r.say("%d", len(a.OpenHandles()))
		r.must(a.DestroyQP(a.qp))
		r.must(a.DeregMR(a.mr))
		r.say("%d", len(a.OpenHandles()))
	}),
	onHandles("uapi/close", func(r *rig, a, b *handles) {
		b.posted(b.PostRecv(b.qp, b.mr, 0, 8))
		r.result("Close", a.Close())
		r.result("Close", a.Close())
		r.result("PostWrite", errOf(a.PostWrite(a.qp, a.mr, 0, b.info.Addr, b.info.RKey, 8)))
		r.result("CreateQP", errOf(a.CreateQP(1, 1)))
		r.result("QueryMR", errOf(a.QueryMR(a.mr)))
		_, err := a.PollCQ(a.qp, make([]uapi.WC, 1))
		r.result("PollCQ", err) // whether b hears of it depends on the way between them
	}),
	onHandles("uapi/counters", func(r *rig, a, b *handles) {
		before, err := a.Counters()
		r.result("Counters", err)
		a.write(b)
		r.say("sent_pkts grows: %t", eventually(func() bool {
			after := must.Get(a.Counters())(r)
			return after["sent_pkts"] > before["sent_pkts"]
		}))
	}),
	{"uapi/progress", func(r *rig) {
		// A queue pair that does nothing itself shows by its PSNs that its peer
		// does.
		a, b := r.uapiPair(patient())
		expected := func() uint32 {
			d := must.Get(b.Stats())(r)
			i := slices.IndexFunc(d.QueuePairs, func(q stats.QueuePair) bool { return q.QPN == uint32(b.qp) })
			return d.QueuePairs[i].RQPSN
		}
		for _, op := range []uapi.Op{uapi.OpWrite, uapi.OpRead, uapi.OpFetchAdd} {
			before := expected()
			must.Get(a.Post(a.qp, []uapi.WR{{Op: op, Flags: uapi.Signaled, SGE: []uapi.SGE{{MR: a.mr, Length: 8}}, RemoteAddr: b.info.Addr, RKey: b.info.RKey}}))(r)
			a.next(1)
			r.say("the next PSN that b expects: +%d", (expected()-before)&0xffffff)
		}
	}},
	{"uapi/8M", func(r *rig) {
		a, b := r.uapiPair(patient())
		big, far := make([]byte, 8<<20), make([]byte, 8<<20)
		fill(big, 66)
		mr := must.Get(a.RegMR(big, uapiAll))(r)
		target := must.Get(b.RegMR(far, uapiAll))(r)
		info := must.Get(b.QueryMR(target))(r)
		a.posted(a.PostWrite(a.qp, mr, 0, info.Addr, info.RKey, 8<<20))
		a.next(1)
		r.saySame("target", big, far)
	}},
}
