//go:build linux || darwin

package conform

import (
	"os"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/verbs"
	"github.com/rdmashim/rdmashim/tests/must"
)

var memoryTests = []test{
	{"pd/dealloc", func(r *rig) {
		pd, err := r.open(0).AllocPD()
		r.result("AllocPD", err)
		r.result("Dealloc", pd.Dealloc())
		r.result("Dealloc", pd.Dealloc())
		r.result("RegMR", errOf(pd.RegMR(make([]byte, 8), 0)))
	}},
	onDomain("pd/busy-region", func(r *rig, pd *verbs.PD) {
		mr := must.Get(pd.RegMR(make([]byte, 64), 0))(r)
		r.result("Dealloc", pd.Dealloc())
		r.result("Dereg", mr.Dereg())
		r.result("Dealloc", pd.Dealloc())
	}),
	onEnd("pd/busy-queue-pair", func(r *rig, e *end) {
		r.must(e.mr.Dereg())
		r.result("Dealloc", e.pd.Dealloc())
		r.result("Destroy", e.qp.Destroy())
		r.result("Dealloc", e.pd.Dealloc())
	}),
	onDevice("pd/many", func(r *rig, ctx *verbs.Context) {
		for i := range 200 {
			if _, err := ctx.AllocPD(); err != nil {
				r.say("AllocPD %d: %s", i, errText(err))
				return
			}
		}
		r.say("200 domains")
	}),
	onPair("pd/remote-key-of-another", func(r *rig, a, b *end) {
		pd := must.Get(b.ctx.AllocPD())(r)
		other := must.Get(pd.RegMR(b.buf, allAccess))(r)
		a.complete(a.writeTo(other, 64))
		b.sayStateOnce(abi.QPSErr)
	}),

	onDomain("mr/access-flags", func(r *rig, pd *verbs.PD) {
		for access := range abi.AccessFlags(16) {
			mr, err := pd.RegMR(make([]byte, 4096), access)
			r.say("%v: %s", access, errText(err))
			if err == nil {
				r.must(mr.Dereg())
			}
		}
	}),
	onDomain("mr/access-flags-rare", func(r *rig, pd *verbs.PD) {
		for _, access := range []abi.AccessFlags{
			abi.AccessOnDemand, abi.AccessLocalWrite | abi.AccessRelaxedOrdering, 1 << 8, 1 << 19, 1 << 31,
		} {
			r.result(access.String(), errOf(pd.RegMR(make([]byte, 4096), access)))
		}
	}),
	onDomain("mr/empty", func(r *rig, pd *verbs.PD) {
		r.result("nil", errOf(pd.RegMR(nil, 0)))
		r.result("empty", errOf(pd.RegMR([]byte{}, allAccess)))
	}),
	onDomain("mr/read-only-memory", func(r *rig, pd *verbs.PD) {
		mem := r.pages(2)
		r.must(syscall.Mprotect(mem, syscall.PROT_READ))
		for _, access := range []abi.AccessFlags{0, abi.AccessRemoteRead, abi.AccessLocalWrite, allAccess} {
			r.result(access.String(), errOf(pd.RegMR(mem, access)))
		}
	}),
	onDomain("mr/memory-that-is-not-there", func(r *rig, pd *verbs.PD) {
		page := os.Getpagesize()
		mem := r.pages(3)
		r.must(syscall.Munmap(r.mapped[0]))
		r.mapped = nil
		for _, access := range []abi.AccessFlags{0, abi.AccessRemoteRead, abi.AccessLocalWrite, allAccess} {
			r.result(access.String(), errOf(pd.RegMR(mem[:page], access)))
		}
	}),
	onDomain("mr/memory-with-a-hole", func(r *rig, pd *verbs.PD) {
		page := os.Getpagesize()
		mem := r.pages(3)
		r.must(syscall.Mprotect(mem[page:2*page], syscall.PROT_NONE))
		r.result("all", errOf(pd.RegMR(mem, abi.AccessLocalWrite)))
		r.result("one byte too many", errOf(pd.RegMR(mem[:page+1], allAccess)))
		r.result("the page before it", errOf(pd.RegMR(mem[:page], allAccess)))
		r.result("the page behind it", errOf(pd.RegMR(mem[2*page:], allAccess)))
	}),
	onDomain("mr/memory-without-access", func(r *rig, pd *verbs.PD) {
		mem := r.pages(1)
		r.must(syscall.Mprotect(mem, syscall.PROT_NONE))
		r.result("to write", errOf(pd.RegMR(mem, abi.AccessLocalWrite)))
		r.result("to read", errOf(pd.RegMR(mem, abi.AccessRemoteRead)))
	}),
	onDomain("mr/dereg-twice", func(r *rig, pd *verbs.PD) {
		mr, err := pd.RegMR(make([]byte, 64), allAccess)
		r.result("RegMR", err)
		r.result("Dereg", mr.Dereg())
		r.result("Dereg", mr.Dereg())
	}),
	onDomain("mr/keys", func(r *rig, pd *verbs.PD) {
		seen := map[uint32]bool{}
		same := true
		for range 100 {
			mr := must.Get(pd.RegMR(make([]byte, 64), allAccess))(r)
			same = same && mr.LKey() == mr.RKey()
			seen[mr.RKey()] = true
		}
		r.say("%d keys of 100 regions; local and remote ones are the same: %t; none is zero: %t", len(seen), same, !seen[0])
	}),
	onDomain("mr/keys-not-reused-at-once", func(r *rig, pd *verbs.PD) {
		again := false
		last := uint32(0)
		for range 20 {
			mr := must.Get(pd.RegMR(make([]byte, 64), allAccess))(r)
			again = again || mr.RKey() == last
			last = mr.RKey()
			r.must(mr.Dereg())
		}
		r.say("the key of the region before: %t", again)
	}),
	onPair("mr/same-memory-twice", func(r *rig, a, b *end) {
		second, err := b.pd.RegMR(b.buf, abi.AccessLocalWrite|abi.AccessRemoteWrite)
		r.result("RegMR", err)
		r.say("its own key: %t", second.RKey() != b.mr.RKey())
		r.result("Dereg of the first", b.mr.Dereg())
		fill(a.buf[:64], 3)
		a.complete(a.writeTo(second, 64))
		r.saySame("target", a.buf[:64], b.buf[:64])
	}),
	onPair("mr/same-memory-in-two-contexts", func(r *rig, a, b *end) {
		mine, err := a.pd.RegMR(b.buf, allAccess)
		r.result("RegMR", err)
		fill(b.buf[:64], 4)
		wr := a.rdma(abi.WRRDMAWrite, 0, 64, b, 1000)
		wr.SGE[0].Addr, wr.SGE[0].LKey = mine.Addr(), mine.LKey()
		a.complete(wr)
		r.saySame("target", b.buf[:64], b.buf[1000:1064])
	}),
	onPair("mr/one-byte", func(r *rig, a, b *end) {
		fill(b.buf, 5)
		small, err := b.pd.RegMR(b.buf[4095:4096], allAccess)
		r.result("RegMR", err)
		a.buf[0] = 0xee
		a.complete(a.writeTo(small, 1))
		r.say("byte: %#x", b.buf[4095])
		r.sayUntouched("before it", b.buf[:4095], 5)
		a.complete(a.writeTo(small, 2))
		r.say("the byte behind it changed: %t", b.buf[4096] != 5^0x10*7)
	}),
	onPair("mr/unaligned", func(r *rig, a, b *end) {
		mr, err := b.pd.RegMR(b.buf[4001:12003], allAccess)
		r.result("RegMR", err)
		fill(a.buf[:8002], 6)
		a.complete(a.writeTo(mr, 8002))
		r.saySame("target", a.buf[:8002], b.buf[4001:12003])
	}),
	{"mr/large", func(r *rig) {
		a, b := r.pair(func(c *config) { c.size = 8 << 20 })
		fill(a.buf, 7)
		a.complete(a.rdma(abi.WRRDMAWrite, 0, 8<<20, b, 0))
		r.saySame("target", a.buf, b.buf)
	}},
	onPair("mr/mapped-memory", func(r *rig, a, b *end) {
		mem := r.pages(4)
		mr, err := b.pd.RegMR(mem, allAccess)
		r.result("RegMR", err)
		fill(a.buf[:len(mem)], 8)
		a.complete(a.writeTo(mr, len(mem)))
		r.saySame("target", a.buf[:len(mem)], mem)
		r.result("Dereg", mr.Dereg())
	}),
	onDomain("mr/many", func(r *rig, pd *verbs.PD) {
		for i := range 300 {
			if _, err := pd.RegMR(make([]byte, 4096), allAccess); err != nil {
				r.say("RegMR %d: %s", i, errText(err))
				return
			}
		}
		r.say("300 regions")
	}),
	onPair("mr/dereg-then-remote-use", func(r *rig, a, b *end) {
		fill(b.buf[:64], 9)
		wr := a.rdma(abi.WRRDMAWrite, 0, 64, b, 0)
		r.result("Dereg", b.mr.Dereg())
		a.complete(wr)
		r.sayUntouched("target", b.buf[:64], 9)
	}),
	onPair("mr/dereg-with-receives-posted", func(r *rig, _, b *end) {
		b.recv(0, 64)
		r.result("Dereg", b.mr.Dereg())
		b.to(abi.QPSErr)
		b.recvs(1)
	}),
}

// pages maps n pages. They are unmapped after the contexts that know them were
// closed.
func (r *rig) pages(n int) []byte {
	mem := must.Get(syscall.Mmap(-1, 0, n*os.Getpagesize(), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE))(r)
	r.mapped = append(r.mapped, mem)
	return mem
}
