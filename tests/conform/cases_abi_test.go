//go:build linux || darwin

package conform

import (
	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/tests/must"
)

// octets is a request as it is.
type octets []byte

func (b octets) Put(dst []byte)     { copy(dst, b) }
func (b octets) Parse([]byte) error { return nil }

// abiTests are cases of the system-call line itself: mistakes that kshim/verbs
// never makes.
var abiTests = []test{
	onFile("abi/write-lengths", func(r *rig, w *raw) {
		for _, n := range []int{0, 1, 7, 8, 12} {
			b := w.mem[rawIn : rawIn+n]
			clear(b)
			if n >= 8 {
				(&abi.CmdHdr{Command: abi.CmdQueryDevice, InWords: 4, OutWords: 44}).Put(b)
			}
			_, err := w.f.Write(b)
			r.say("%d bytes: %s", n, errText(err))
		}
		r.result("16 bytes, as the header says", w.write(abi.CmdQueryDevice, &abi.QueryDevice{}, 8, 44))
		b := w.mem[rawIn : rawIn+16]
		(&abi.CmdHdr{Command: abi.CmdQueryDevice, InWords: 5, OutWords: 44}).Put(b)
		r.result("header says more", errOf(w.f.Write(b)))
		(&abi.CmdHdr{Command: abi.CmdQueryDevice, InWords: 3, OutWords: 44}).Put(b)
		r.result("header says less", errOf(w.f.Write(b)))
	}),
	onFile("abi/write-returns-its-length", func(r *rig, w *raw) {
		b := w.mem[rawIn : rawIn+16]
		(&abi.CmdHdr{Command: abi.CmdQueryDevice, InWords: 4, OutWords: 44}).Put(b)
		le.PutUint64(b[8:], w.addr+rawOut)
		n, err := w.f.Write(b)
		r.say("%d, %s", n, errText(err))
	}),
	onFile("abi/unknown-commands", func(r *rig, w *raw) {
		for _, c := range []abi.Command{41, 58, 255, 256, 0x40000000, abi.CmdFlagExtended | 200, abi.CmdFlagExtended} {
			r.say("%#x by write: %s", uint32(c), errText(w.write(c, octets(make([]byte, 24)), 24, 0)))
			r.say("%#x by ioctl: %s", uint32(c), errText(w.command(c, octets(make([]byte, 24)), 24, nil, 0, nil, 0)))
		}
	}),
	{"abi/before-the-context", func(r *rig) {
		w := r.rawFile()
		r.result("QUERY_DEVICE by write", w.write(abi.CmdQueryDevice, &abi.QueryDevice{}, 8, 44))
		var resp abi.QueryDeviceResp
		r.result("QUERY_DEVICE", w.command(abi.CmdQueryDevice, &abi.QueryDevice{}, 8, &resp, abi.QueryDeviceRespSize, nil, 0))
		r.result("ALLOC_PD", w.command(abi.CmdAllocPD, &abi.AllocPD{}, 8, &abi.AllocPDResp{}, 4, nil, 0))
		_, _, err := w.tryCQ(abi.CreateCQ{CQE: 4, CompChannel: -1})
		r.result("CREATE_CQ", err)
		r.result("mmap", errOf(w.f.Mmap(0, 4096)))
	}},
	onFile("abi/context-twice", func(r *rig, w *raw) {
		r.result("GET_CONTEXT", w.command(abi.CmdGetContext, &abi.GetContext{}, 8, &abi.GetContextResp{}, 8, nil, 0))
		r.result("by write", w.write(abi.CmdGetContext, &abi.GetContext{}, 8, 2))
		var resp abi.QueryDeviceResp
		r.result("QUERY_DEVICE", w.command(abi.CmdQueryDevice, &abi.QueryDevice{}, 8, &resp, abi.QueryDeviceRespSize, nil, 0))
	}),
	onFile("abi/handles-of-another-file", func(r *rig, w *raw) {
		var pd uint32
		for range 40 { // beyond the numbers that the other file has
			pd = w.allocPD()
		}
		v, _ := r.raw()
		r.result("DEALLOC_PD", v.command(abi.CmdDeallocPD, &abi.DeallocPD{PDHandle: pd}, 4, nil, 0, nil, 0))
	}),
	onFile("abi/create-cq", func(r *rig, w *raw) {
		for _, c := range []struct {
			what string
			req  abi.CreateCQ
		}{
			{"no entries", abi.CreateCQ{CQE: 0, CompChannel: -1}},
			{"too many entries", abi.CreateCQ{CQE: 32768, CompChannel: -1}},
			{"a vector that is not there", abi.CreateCQ{CQE: 4, CompVector: 100000, CompChannel: -1}},
			{"a channel that is no descriptor", abi.CreateCQ{CQE: 4, CompChannel: 99999}},
			{"good", abi.CreateCQ{CQE: 4, CompChannel: -1}},
			{"another negative channel", abi.CreateCQ{CQE: 4, CompChannel: -5}},
		} {
			resp, _, err := w.tryCQ(c.req)
			r.say("%s: %s, %d entries", c.what, errText(err), resp.CQE)
		}
		r.result("no room for the driver's answer", w.command(abi.CmdCreateCQ, &abi.CreateCQ{CQE: 4, CompChannel: -1}, 32, &abi.CreateCQResp{}, 8, nil, 0))
	}),
	onFile("abi/create-qp", func(r *rig, w *raw) {
		cq := w.createCQ(1, 16, -1)
		pd := w.allocPD()
		good := abi.CreateQP{PDHandle: pd, SendCQHandle: cq.handle, RecvCQHandle: cq.handle, MaxSendWR: 8, MaxRecvWR: 8, MaxSendSGE: 1, MaxRecvSGE: 1, QPType: abi.QPTRC}
		for _, c := range []struct {
			what string
			edit func(*abi.CreateQP)
		}{
			{"good", func(*abi.CreateQP) {}},
			{"no domain", func(q *abi.CreateQP) { q.PDHandle = 0x7fff0000 }},
			{"no send queue", func(q *abi.CreateQP) { q.SendCQHandle = 0x7fff0000 }},
			{"no receive queue", func(q *abi.CreateQP) { q.RecvCQHandle = 0x7fff0000 }},
			{"a domain as the send queue", func(q *abi.CreateQP) { q.SendCQHandle = pd }},
			{"no receives", func(q *abi.CreateQP) { q.MaxRecvWR = 0 }},
			{"33 pieces", func(q *abi.CreateQP) { q.MaxSendSGE = 33 }},
			{"513 bytes inline", func(q *abi.CreateQP) { q.MaxInlineData = 513 }},
			{"a shared receive queue that is not there", func(q *abi.CreateQP) { q.IsSRQ, q.SRQHandle = 1, 0x7fff0000 }},
		} {
			req := good
			c.edit(&req)
			resp, _, err := w.tryQP(req)
			if err != nil {
				r.say("%s: %s", c.what, errText(err))
				continue
			}
			r.say("%s: ok, sends %d, receives %d, pieces %d and %d, inline %d", c.what,
				resp.MaxSendWR, resp.MaxRecvWR, resp.MaxSendSGE, resp.MaxRecvSGE, resp.MaxInlineData)
		}
		r.result("no room for the driver's answer", w.command(abi.CmdCreateQP, &good, 56, &abi.CreateQPResp{}, 32, nil, 0))
	}),
	onFile("abi/queues", func(r *rig, w *raw) {
		cq := w.createCQ(1, 8, -1)
		r.say("completion queue of 8: %d fit, %d bytes each", cq.q.Cap(), cq.q.ElemSize())
		for _, c := range []abi.CreateQP{
			{MaxSendWR: 8, MaxRecvWR: 8, MaxSendSGE: 1, MaxRecvSGE: 1, MaxInlineData: 220},
			{MaxSendWR: 64, MaxRecvWR: 15, MaxSendSGE: 1, MaxRecvSGE: 2},
			{MaxSendWR: 1, MaxRecvWR: 1, MaxSendSGE: 32, MaxRecvSGE: 32},
		} {
			ask := c
			c.PDHandle, c.SendCQHandle, c.RecvCQHandle, c.QPType = w.allocPD(), cq.handle, cq.handle, abi.QPTRC
			_, uhw, err := w.tryQP(c)
			r.must(err)
			sq, rq := w.open(uhw.SQMI), w.open(uhw.RQMI)
			r.say("%d sends of %d pieces, %d inline: %d fit, %d bytes each", ask.MaxSendWR, ask.MaxSendSGE, ask.MaxInlineData, sq.Cap(), sq.ElemSize())
			r.say("%d receives of %d pieces: %d fit, %d bytes each", ask.MaxRecvWR, ask.MaxRecvSGE, rq.Cap(), rq.ElemSize())
		}
	}),
	onFile("abi/mmap", func(r *rig, w *raw) {
		resp, mi, err := w.tryCQ(abi.CreateCQ{CQE: 8, CompChannel: -1})
		r.must(err)
		r.result("an offset of nothing", errOf(w.f.Mmap(mi.Offset+1<<20, int(mi.Size))))
		r.result("too long", errOf(w.f.Mmap(mi.Offset, int(mi.Size)*16)))
		m, err := w.f.Mmap(mi.Offset, int(mi.Size))
		r.result("right", err)
		r.result("again", errOf(w.f.Mmap(mi.Offset, int(mi.Size))))
		r.result("DESTROY_CQ", errOf((&rawCQ{w: w, handle: resp.CQHandle}).destroy()))
		r.say("the mapping is still there: %t", m[abi.QueueBufIndexMask] == 15)
		r.result("closing the file", w.f.Close())
		r.say("and still: %t", m[abi.QueueBufIndexMask] == 15)
		r.result("munmap", w.f.Munmap(m))
	}),
	onFile("abi/mmap-of-what-is-gone", func(r *rig, w *raw) {
		resp, mi, err := w.tryCQ(abi.CreateCQ{CQE: 8, CompChannel: -1})
		r.must(err)
		must.Get((&rawCQ{w: w, handle: resp.CQHandle}).destroy())(r)
		r.result("mmap", errOf(w.f.Mmap(mi.Offset, int(mi.Size))))
	}),
	onFile("abi/reg-mr", func(r *rig, w *raw) {
		pd := w.allocPD()
		for _, c := range []struct {
			what string
			req  abi.RegMR
		}{
			{"good", abi.RegMR{Start: w.addr, Length: 64, HCAVA: w.addr}},
			{"another address for peers, alike within the page", abi.RegMR{Start: w.addr, Length: 64, HCAVA: w.addr&0xfff | 0x7000000}},
			{"another address for peers, unlike within the page", abi.RegMR{Start: w.addr, Length: 64, HCAVA: w.addr + 8}},
			{"wraps", abi.RegMR{Start: w.addr, Length: 1<<64 - 64, HCAVA: w.addr}},
			{"nowhere", abi.RegMR{Start: 0x10000, Length: 4096, HCAVA: 0x10000}},
			{"the zero page", abi.RegMR{Start: 0, Length: 4096}},
		} {
			c.req.PDHandle, c.req.AccessFlags = pd, allAccess
			r.result(c.what, w.command(abi.CmdRegMR, &c.req, 40, &abi.RegMRResp{}, 12, nil, 0))
		}
	}),
	onFile("abi/doorbell-in-each-state", func(r *rig, w *raw) {
		cq := w.createCQ(1, 16, -1)
		qp := w.createQP(2, cq, cq)
		ring := func(state string) {
			r.say("%s: %s by write, %s by ioctl", state, errText(qp.bell()), errText(w.command(abi.CmdPostSend,
				&abi.PostSend{QPHandle: qp.handle, WQESize: abi.SendWRSize}, 24, &abi.PostSendResp{}, 4, nil, 0)))
		}
		ring("RESET")
		r.must(qp.modify(abi.ModifyQP{QPState: abi.QPSInit, PortNum: 1, QPAccessFlags: allAccess}, maskInit))
		ring("INIT")
		qp.toRTR()
		ring("RTR")
		r.must(qp.modify(abi.ModifyQP{QPState: abi.QPSRTS, Timeout: 18, RetryCnt: 7, RNRRetry: 7, MaxRdAtomic: 4, SQPSN: 5}, maskRTS))
		ring("RTS")
		r.must(qp.modify(abi.ModifyQP{QPState: abi.QPSSQD}, abi.QPMaskState))
		ring("SQD")
		r.must(qp.modify(abi.ModifyQP{QPState: abi.QPSErr}, abi.QPMaskState))
		ring("ERR")
		must.Get(qp.destroy())(r)
		ring("destroyed")
	}),
	onFile("abi/doorbell-requests", func(r *rig, w *raw) {
		qp, _ := w.connected(16, -1)
		post := func(what string, p abi.PostSend) {
			p.QPHandle = qp.handle
			r.result(what, w.write(abi.CmdPostSend, &p, 24, 1))
		}
		post("small work requests", abi.PostSend{WQESize: 55})
		post("large work requests", abi.PostSend{WQESize: 128})
		post("more work requests than there are", abi.PostSend{WRCount: 1, WQESize: 56})
		post("more pieces than there are", abi.PostSend{SGECount: 1, WQESize: 56})
		post("more than a number holds", abi.PostSend{WRCount: 1 << 31, WQESize: 56})
		post("none", abi.PostSend{WQESize: 56})
	}),
	onFile("abi/doorbell-counts", func(r *rig, w *raw) {
		qp, cq := w.connected(16, -1)
		qp.write(cq)
		r.must(qp.bell()) // nothing new
		n, err := cq.c.Ready()
		r.say("a bell for nothing: %d completions, %s", n, errText(err))
	}),
	onFile("abi/query-qp", func(r *rig, w *raw) {
		qp, _ := w.connected(16, -1)
		var resp abi.QueryQPResp
		r.result("asked for nothing", w.command(abi.CmdQueryQP, &abi.QueryQP{QPHandle: qp.handle}, 16, &resp, 128, nil, 0))
		r.say("state %v, timeout %d, sends %d, receives %d, pieces %d and %d", resp.QPState, resp.Timeout, resp.MaxSendWR, resp.MaxRecvWR, resp.MaxSendSGE, resp.MaxRecvSGE)
		r.result("asked for all", w.command(abi.CmdQueryQP, &abi.QueryQP{QPHandle: qp.handle, AttrMask: 1<<21 - 1}, 16, &resp, 128, nil, 0))
		r.result("asked for what is not", w.command(abi.CmdQueryQP, &abi.QueryQP{QPHandle: qp.handle, AttrMask: 1 << 31}, 16, &resp, 128, nil, 0))
	}),
	onFile("abi/query-device-extended", func(r *rig, w *raw) {
		b := w.mem[rawIn : rawIn+32]
		clear(b)
		(&abi.CmdHdr{Command: abi.CmdFlagExtended | abi.Command(abi.ExCmdQueryDevice), InWords: 1, OutWords: 38}).Put(b)
		(&abi.ExCmdHdr{Response: w.addr + rawOut}).Put(b[8:])
		clear(w.mem[rawOut : rawOut+304])
		n, err := w.f.Write(b)
		r.say("%d, %s, response_length %d, max_sge %d", n, errText(err), le.Uint32(w.mem[rawOut+180:]), le.Uint32(w.mem[rawOut+68:]))
		b[24] = 1
		r.result("comp_mask", errOf(w.f.Write(b)))
		b[24] = 0
		le.PutUint32(b[20:], 1)
		r.result("reserved field", errOf(w.f.Write(b)))
	}),
}
