//go:build linux || darwin

package conform

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/verbs"
	"github.com/rdmashim/rdmashim/tests/must"
)

var deviceTests = []test{
	{"device/list", func(r *rig) {
		list, err := verbs.Devices(r.process(0))
		r.result("Devices", err)
		for _, d := range list {
			if d.Name == r.sys.device[0] {
				r.say("driver %v, ABI %d, node in /dev/infiniband: %t",
					d.Driver, d.ABIVersion, strings.HasPrefix(d.Node, "/dev/infiniband/uverbs"))
			}
		}
	}},
	{"device/open-unknown", func(r *rig) {
		r.result("Open", errOf(verbs.Open(r.process(0), "no-such-device")))
		r.result("Open of nothing", errOf(verbs.Open(r.process(0), "")))
	}},
	{"device/limits", func(r *rig) {
		attr, err := r.open(0).QueryDevice()
		r.result("QueryDevice", err)
		r.say("max_sge %d, max_sge_rd %d, max_cqe %d, max_qp_wr %d", attr.MaxSGE, attr.MaxSGERd, attr.MaxCQE, attr.MaxQPWR)
		r.say("max_qp_rd_atom %d, max_qp_init_rd_atom %d, max_ee_rd_atom %d", attr.MaxQPRdAtom, attr.MaxQPInitRdAtom, attr.MaxEERdAtom)
		r.say("max_pkeys %d, phys_port_cnt %d, atomic_cap %v", attr.MaxPkeys, attr.PhysPortCnt, attr.AtomicCap)
		r.say("max_mr_size %#x, page_size_cap %#x", attr.MaxMRSize, attr.PageSizeCap)
		r.say("node GUID: %t, the system's: %t", attr.NodeGUID != 0, attr.SysImageGUID == attr.NodeGUID)
		r.say("vendor %#x, part %d, hardware version %d", attr.VendorID, attr.VendorPartID, attr.HWVer)
	}},
	{"device/port", func(r *rig) {
		p, err := r.open(0).QueryPort(1)
		r.result("QueryPort", err)
		r.say("state %v, max_mtu %v, active_mtu %v, max_msg_sz %d", p.State, p.MaxMTU, p.ActiveMTU, p.MaxMsgSz)
		r.say("gid_tbl_len %d, pkey_tbl_len %d, link_layer %v, phys_state %v", p.GIDTblLen, p.PkeyTblLen, p.LinkLayer, p.PhysState)
		r.say("max_vl_num %d, active_width %d, port_cap_flags %#x", p.MaxVLNum, p.ActiveWidth, p.PortCapFlags)
	}},
	onDevice("device/port-unknown", func(r *rig, ctx *verbs.Context) {
		for _, n := range []uint8{0, 2, 255} {
			r.result(fmt.Sprintf("port %d", n), errOf(ctx.QueryPort(n)))
		}
	}),
	onEnd("device/gids", func(r *rig, e *end) {
		index, _ := e.gid() // waits until it is there
		list, err := e.ctx.GIDs(1)
		r.result("GIDs", err)
		other, unset := 0, 0
		for _, g := range list {
			if g.Type != abi.GIDTypeRoCEv2 {
				other++
			}
			if g.Addr.IsUnspecified() {
				unset++
			}
		}
		r.say("an IPv4 one: %t; not RoCE v2: %d; unset: %d", index >= 0, other, unset)
		r.say("in order: %t", slices.IsSortedFunc(list, func(x, y verbs.GID) int { return x.Index - y.Index }))
	}),
	{"device/gids-port-unknown", func(r *rig) {
		r.result("GIDs of port 2", errOf(r.open(0).GIDs(2)))
	}},
	onDevice("device/counters", func(r *rig, ctx *verbs.Context) {
		list, err := ctx.Counters()
		r.result("Counters", err)
		for _, name := range []string{
			"sent_pkts", "rcvd_pkts", "duplicate_request", "out_of_seq_request", "rcvd_rnr_err", "send_rnr_err", "rcvd_seq_err",
			"retry_exceeded_err", "retry_rnr_exceeded_err", "completer_retry_err", "send_err", "rdma_sends", "rdma_recvs",
		} {
			_, there := list[name]
			r.say("%s: %t", name, there)
		}
	}),
	onPair("device/counters-grow", func(r *rig, a, b *end) {
		before := counter(r, a.ctx, "sent_pkts")
		a.complete(a.rdma(abi.WRRDMAWrite, 0, 3*portMTU, b, 0))
		// Linux shows counters that are up to 10 ms old
		// (verbs.c:rdma_alloc_hw_stats_struct).
		r.say("sent_pkts grows by 3 at least: %t", eventually(func() bool { return counter(r, a.ctx, "sent_pkts") >= before+3 }))
	}),
	{"device/two-contexts", func(r *rig) {
		x, y := r.open(0), r.open(0)
		pd := must.Get(x.AllocPD())(r)
		cq := must.Get(y.CreateCQ(4))(r)
		r.result("queue pair with the other context's completion queue", errOf(pd.CreateQP(verbs.QPInit{SendCQ: cq, RecvCQ: cq, MaxSendWR: 1, MaxRecvWR: 1})))
		r.result("closing one", x.Close())
		r.result("using the other", errOf(y.AllocPD()))
	}},
	onDevice("device/close-twice", func(r *rig, ctx *verbs.Context) {
		pd := must.Get(ctx.AllocPD())(r)
		r.result("Close", ctx.Close())
		r.result("Close", ctx.Close())
		r.result("AllocPD", errOf(ctx.AllocPD()))
		r.result("QueryDevice", errOf(ctx.QueryDevice()))
		r.result("CreateCQ", errOf(ctx.CreateCQ(1)))
		r.result("Dealloc", pd.Dealloc())
	}),
	onPair("device/close-with-everything", func(r *rig, a, b *end) {
		a.recv(0, 64)
		b.recv(0, 64)
		a.post(a.wr(abi.WRSend, 0, 64))
		a.sends(1) // b has its completion waiting
		r.result("closing a", a.ctx.Close())
		r.result("closing b", b.ctx.Close())
		r.result("Post", errOf(a.qp.Post([]verbs.SendWR{a.wr(abi.WRSend, 0, 1)})))
		r.result("PostRecv", errOf(a.qp.PostRecv([]verbs.RecvWR{{}})))
		r.result("Poll", errOf(b.rcq.Poll(make([]verbs.WC, 1))))
		r.result("Dereg", a.mr.Dereg())
		r.result("Destroy", a.qp.Destroy())
		r.result("Query", errOf(a.qp.Query()))
	}),
	{"device/close-frees-the-peer", func(r *rig) {
		a, b := r.pair(func(c *config) { c.timeout, c.retry = 12, 1 })
		r.result("closing b", b.ctx.Close())
		a.complete(a.rdma(abi.WRRDMAWrite, 0, 64, b, 0))
		a.sayState()
	}},
	onPair("device/close-invalidates-keys", func(r *rig, a, b *end) {
		key, addr := b.mr.RKey(), b.mr.Addr()
		r.result("closing b", b.ctx.Close())
		// Another process on the same device, with another queue pair.
		c := r.newEnd("c", r.open(1), defaults())
		a.to(abi.QPSReset)
		r.connect(a, c)
		wr := a.wr(abi.WRRDMAWrite, 0, 64)
		wr.RemoteAddr, wr.RKey = addr, key
		a.complete(wr)
	}),
	{"device/reopen", func(r *rig) {
		for range 5 {
			a, b := r.pair()
			fill(a.buf[:100], 1)
			a.complete(a.rdma(abi.WRRDMAWrite, 0, 100, b, 100))
			r.saySame("target", a.buf[:100], b.buf[100:200])
			r.must(a.ctx.Close())
			r.must(b.ctx.Close())
		}
	}},
}

// counter reads a device's counter.
func counter(r *rig, ctx *verbs.Context, name string) uint64 {
	list := must.Get(ctx.Counters())(r)
	n, ok := list[name]
	if !ok {
		r.Fatalf("no counter %s", name)
	}
	return n
}
