//go:build linux || darwin

package conform

import (
	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/verbs"
)

// errorTests are the ways in which a request fails: the status on either side,
// the states after it, and what becomes of the rest.
var errorTests = []test{
	badKey("write-bad-key", abi.WRRDMAWrite, 64),
	faultTest("write-bad-key-byte", nil, func(a, b *end) verbs.SendWR {
		wr := a.rdma(abi.WRRDMAWrite, 0, 64, b, 0)
		wr.RKey ^= 1 // the index is right, the key is not
		return wr
	}),
	badKey("write-long-bad-key", abi.WRRDMAWrite, 20000),
	badKey("write-imm-bad-key", abi.WRRDMAWriteWithImm, 64),
	badKey("read-bad-key", abi.WRRDMARead, 64),
	badKey("add-bad-key", abi.WRAtomicFetchAndAdd, 8),
	badKey("swap-bad-key", abi.WRAtomicCmpAndSwp, 8),
	faultTest("write-beyond-the-end", nil, func(a, b *end) verbs.SendWR {
		return a.rdma(abi.WRRDMAWrite, 0, 64, b, b.config.size-63)
	}),
	faultTest("write-long-beyond-the-end", nil, func(a, b *end) verbs.SendWR {
		return a.rdma(abi.WRRDMAWrite, 0, 9000, b, b.config.size-8999)
	}),
	faultTest("write-before-the-start", nil, func(a, b *end) verbs.SendWR {
		return a.rdma(abi.WRRDMAWrite, 0, 64, b, -1)
	}),
	faultTest("write-address-wraps", nil, func(a, b *end) verbs.SendWR {
		wr := a.rdma(abi.WRRDMAWrite, 0, 64, b, 0)
		wr.RemoteAddr = 1<<64 - 32
		return wr
	}),
	faultTest("read-beyond-the-end", nil, func(a, b *end) verbs.SendWR {
		return a.rdma(abi.WRRDMARead, 0, 64, b, b.config.size-63)
	}),
	faultTest("add-beyond-the-end", nil, func(a, b *end) verbs.SendWR {
		return a.rdma(abi.WRAtomicFetchAndAdd, 0, 8, b, b.config.size)
	}),
	faultTest("add-misaligned", nil, func(a, b *end) verbs.SendWR {
		return a.rdma(abi.WRAtomicFetchAndAdd, 0, 8, b, 4)
	}),
	faultTest("swap-misaligned", nil, func(a, b *end) verbs.SendWR {
		return a.rdma(abi.WRAtomicCmpAndSwp, 0, 8, b, 1)
	}),
	faultTest("write-region-is-not-writable", func(c *config) { c.mrAccess = abi.AccessLocalWrite | abi.AccessRemoteRead }, func(a, b *end) verbs.SendWR {
		return a.rdma(abi.WRRDMAWrite, 0, 64, b, 0)
	}),
	faultTest("read-region-is-not-readable", func(c *config) { c.mrAccess = abi.AccessLocalWrite | abi.AccessRemoteWrite }, func(a, b *end) verbs.SendWR {
		return a.rdma(abi.WRRDMARead, 0, 64, b, 0)
	}),
	faultTest("add-region-takes-no-atomics", func(c *config) { c.mrAccess = allAccess &^ abi.AccessRemoteAtomic }, func(a, b *end) verbs.SendWR {
		return a.rdma(abi.WRAtomicFetchAndAdd, 0, 8, b, 0)
	}),
	faultTest("write-queue-pair-is-not-writable", func(c *config) { c.qpAccess = allAccess &^ abi.AccessRemoteWrite }, func(a, b *end) verbs.SendWR {
		return a.rdma(abi.WRRDMAWrite, 0, 64, b, 0)
	}),
	faultTest("read-queue-pair-is-not-readable", func(c *config) { c.qpAccess = allAccess &^ abi.AccessRemoteRead }, func(a, b *end) verbs.SendWR {
		return a.rdma(abi.WRRDMARead, 0, 64, b, 0)
	}),
	faultTest("add-queue-pair-takes-no-atomics", func(c *config) { c.qpAccess = allAccess &^ abi.AccessRemoteAtomic }, func(a, b *end) verbs.SendWR {
		return a.rdma(abi.WRAtomicFetchAndAdd, 0, 8, b, 0)
	}),
	{"error/read-without-resources", func(r *rig) {
		a, b := r.ends()
		b.config.rdAtomic = 0
		r.connect(a, b)
		a.complete(a.rdma(abi.WRRDMARead, 0, 64, b, 0))
		b.sayStateOnce(abi.QPSErr)
	}},
	{"error/send-longer-than-the-receive", func(r *rig) {
		a, b := r.pair()
		b.recv(0, 63)
		b.recv(100, 64)
		a.complete(a.wr(abi.WRSend, 0, 64))
		b.recvs(2)
		a.sayState()
		b.sayStateOnce(abi.QPSErr)
		// The same over many packets.
		a, b = r.pair()
		b.recv(0, 4000)
		a.complete(a.wr(abi.WRSend, 0, 9000))
		b.recvs(1)
		b.sayStateOnce(abi.QPSErr)
	}},
	{"error/local-key", func(r *rig) {
		for _, c := range []struct {
			what string
			make func(a, b *end) verbs.SendWR
		}{
			{"SEND from an unknown key", func(a, b *end) verbs.SendWR {
				wr := a.wr(abi.WRSend, 0, 64)
				wr.SGE[0].LKey ^= 0x5a00
				return wr
			}},
			{"WRITE from an unknown key", func(a, b *end) verbs.SendWR {
				wr := a.rdma(abi.WRRDMAWrite, 0, 64, b, 0)
				wr.SGE[0].LKey ^= 0x5a00
				return wr
			}},
			{"WRITE from beyond the end", func(a, b *end) verbs.SendWR {
				return a.rdma(abi.WRRDMAWrite, a.config.size-63, 64, b, 0)
			}},
			{"WRITE from another domain's region", func(a, b *end) verbs.SendWR {
				pd := must(a.ctx.AllocPD())(r)
				mr := must(pd.RegMR(a.buf, allAccess))(r)
				wr := a.rdma(abi.WRRDMAWrite, 0, 64, b, 0)
				wr.SGE[0].LKey = mr.LKey()
				return wr
			}},
			{"WRITE from a region that is gone", func(a, b *end) verbs.SendWR {
				wr := a.rdma(abi.WRRDMAWrite, 0, 64, b, 0)
				r.must(a.mr.Dereg())
				return wr
			}},
		} {
			a, b := r.pair()
			b.recv(0, 64)
			wr := c.make(a, b)
			r.say("%s", c.what)
			a.complete(wr)
			a.sayState()
			b.sayState()
		}
	}},
	{"error/local-target", func(r *rig) {
		for _, c := range []struct {
			what string
			make func(a, b *end) verbs.SendWR
		}{
			{"READ into an unknown key", func(a, b *end) verbs.SendWR {
				wr := a.rdma(abi.WRRDMARead, 0, 64, b, 0)
				wr.SGE[0].LKey ^= 0x5a00
				return wr
			}},
			{"READ beyond the end", func(a, b *end) verbs.SendWR {
				return a.rdma(abi.WRRDMARead, a.config.size-63, 64, b, 0)
			}},
			{"READ into a region that is not to be written", func(a, b *end) verbs.SendWR {
				mr := must(a.pd.RegMR(a.buf, abi.AccessRemoteRead))(r)
				wr := a.rdma(abi.WRRDMARead, 0, 64, b, 0)
				wr.SGE[0].LKey = mr.LKey()
				return wr
			}},
			{"atomic into an unknown key", func(a, b *end) verbs.SendWR {
				wr := a.rdma(abi.WRAtomicFetchAndAdd, 0, 8, b, 0)
				wr.SGE[0].LKey ^= 0x5a00
				return wr
			}},
		} {
			a, b := r.pair()
			wr := c.make(a, b)
			r.say("%s", c.what)
			a.complete(wr)
			a.sayState()
			b.sayState()
		}
	}},
	{"error/receive-buffer", func(r *rig) {
		for _, c := range []struct {
			what string
			sge  func(b *end) verbs.SGE
		}{
			{"an unknown key", func(b *end) verbs.SGE {
				s := b.sge(0, 64)
				s.LKey ^= 0x5a00
				return s
			}},
			{"beyond the end", func(b *end) verbs.SGE { return b.sge(b.config.size-63, 64) }},
			{"a region that is not to be written", func(b *end) verbs.SGE {
				mr := must(b.pd.RegMR(b.buf, abi.AccessRemoteRead))(r)
				s := b.sge(0, 64)
				s.LKey = mr.LKey()
				return s
			}},
			{"a region that is gone", func(b *end) verbs.SGE {
				s := b.sge(0, 64)
				r.must(b.mr.Dereg())
				return s
			}},
		} {
			a, b := r.pair()
			must(b.qp.PostRecv([]verbs.RecvWR{{ID: 77, SGE: []verbs.SGE{c.sge(b)}}}))(r)
			r.say("a receive into %s", c.what)
			a.complete(a.wr(abi.WRSend, 0, 64))
			b.recvs(1)
			b.sayStateOnce(abi.QPSErr)
		}
	}},
	{"error/no-receive", func(r *rig) {
		a, b := r.pair(func(c *config) { c.rnrRetry, c.minRNR = 1, 1 })
		a.complete(a.wr(abi.WRSend, 0, 64))
		a.sayState()
		b.sayState()
	}},
	{"error/no-receive-no-retry", func(r *rig) {
		a, b := r.pair(func(c *config) { c.rnrRetry, c.minRNR = 0, 1 })
		a.complete(a.wr(abi.WRSend, 0, 64))
		a.sayState()
		b.sayState()
	}},
	{"error/no-receive-for-write-imm", func(r *rig) {
		a, b := r.pair(func(c *config) { c.rnrRetry, c.minRNR = 2, 1 })
		a.complete(a.rdma(abi.WRRDMAWriteWithImm, 0, 64, b, 0))
		a.sayState()
		b.sayState()
	}},
	{"error/no-receive-queue", func(r *rig) {
		a, b := r.pair(func(c *config) { c.recvWR, c.rnrRetry, c.minRNR = 0, 1, 1 })
		a.complete(a.wr(abi.WRSend, 0, 64))
		b.sayState()
	}},
	{"error/peer-gone", func(r *rig) {
		a, b := r.pair(func(c *config) { c.timeout, c.retry = 12, 1 })
		r.must(b.qp.Destroy())
		a.complete(a.rdma(abi.WRRDMAWrite, 0, 64, b, 0))
		a.sayState()
	}},
	{"error/peer-gone-read", func(r *rig) {
		a, b := r.pair(func(c *config) { c.timeout, c.retry = 12, 1 })
		r.must(b.qp.Destroy())
		a.complete(a.rdma(abi.WRRDMARead, 0, 64, b, 0))
		a.sayState()
	}},
	{"error/peer-gone-no-retry", func(r *rig) {
		a, b := r.pair(func(c *config) { c.timeout, c.retry = 12, 0 })
		r.must(b.qp.Destroy())
		a.complete(a.rdma(abi.WRRDMAWrite, 0, 64, b, 0))
		a.sayState()
	}},
	{"error/peer-in-error", func(r *rig) {
		a, b := r.pair(func(c *config) { c.timeout, c.retry = 12, 1 })
		b.to(abi.QPSErr)
		a.complete(a.rdma(abi.WRRDMAWrite, 0, 64, b, 0))
		a.sayState()
	}},
	{"error/wrong-destination", func(r *rig) {
		a, b := r.ends(func(c *config) { c.timeout, c.retry = 12, 1 })
		a.toInit()
		attr := a.attrRTR(b)
		attr.DestQPNum ^= 0x800000
		r.must(a.qp.Modify(&attr, maskRTR))
		a.toRTS()
		b.toRTR(a)
		b.toRTS()
		a.complete(a.rdma(abi.WRRDMAWrite, 0, 64, b, 0))
		b.sayState()
	}},
	{"error/not-the-peer", func(r *rig) {
		// b is connected to c; packets of a must not be taken.
		a, b := r.ends(func(c *config) { c.timeout, c.retry = 12, 1 })
		c := r.newEnd("c", a.ctx, a.config)
		r.connect(b, c)
		a.toRTR(b)
		a.toRTS()
		fill(b.buf[:64], 51)
		wr := a.rdma(abi.WRRDMAWrite, 0, 64, b, 0)
		a.config.psn = 1 // of no use to it
		a.post(wr)
		if wcs, err := take(a.scq, 1); err != nil || wcs[0].Status == abi.WCSuccess {
			r.say("a's WRITE: %v, %s", wcs, errText(err))
		}
	}},
	{"error/those-before-succeed", func(r *rig) {
		a, b := r.pair()
		bad := a.rdma(abi.WRRDMAWrite, 0, 64, b, 0)
		bad.RKey ^= 0x5a00
		a.complete(a.rdma(abi.WRRDMAWrite, 0, 64, b, 0), a.rdma(abi.WRRDMAWrite, 0, 3000, b, 0), a.rdma(abi.WRRDMAWrite, 0, 64, b, 0))
		a.complete(bad)
	}},
	{"error/states-of-both", func(r *rig) {
		a, b := r.pair()
		wr := a.rdma(abi.WRRDMAWrite, 0, 64, b, 0)
		wr.RKey ^= 0x5a00
		a.complete(wr)
		a.sayState()
		b.sayStateOnce(abi.QPSErr)
		a.sayNoMore()
		b.sayNoMore()
	}},

	{"flush/on-error-state", func(r *rig) {
		a, _ := r.pair()
		for range 5 {
			a.recv(0, 64)
		}
		a.to(abi.QPSErr)
		a.recvs(5)
		a.sayNoMore()
	}},
	{"flush/nothing", func(r *rig) {
		a, b := r.pair()
		a.to(abi.QPSErr)
		a.sayNoMore()
		a.to(abi.QPSErr)
		a.sayState()
		b.sayState()
		b.sayNoMore()
	}},
	{"flush/sends-that-wait", func(r *rig) {
		a, b := r.pair()
		for range 5 {
			a.post(a.wr(abi.WRSend, 0, 64)) // b has no receive
		}
		pause()
		a.to(abi.QPSErr)
		a.sends(5)
		a.sayNoMore()
		b.sayState()
	}},
	{"flush/unsignaled", func(r *rig) {
		a, b := r.pair()
		for range 3 {
			wr := a.wr(abi.WRSend, 0, 64) // b has no receive
			wr.Flags = 0
			a.post(wr)
		}
		pause()
		a.to(abi.QPSErr)
		a.sends(3)
		b.sayState()
	}},
	{"flush/after-a-failure", func(r *rig) {
		a, b := r.pair()
		bad := a.rdma(abi.WRRDMAWrite, 0, 64, b, 0)
		bad.RKey ^= 0x5a00
		unsignaled := a.rdma(abi.WRRDMAWrite, 0, 64, b, 0)
		unsignaled.Flags = 0
		a.complete(bad, a.rdma(abi.WRRDMAWrite, 0, 64, b, 0), unsignaled, a.rdma(abi.WRRDMARead, 0, 64, b, 0), a.wr(abi.WRSend, 0, 8))
		a.sayNoMore()
	}},
	{"flush/receives-after-a-failure", func(r *rig) {
		a, b := r.pair()
		for range 3 {
			a.recv(0, 64)
			b.recv(0, 64)
		}
		bad := a.rdma(abi.WRRDMAWrite, 0, 64, b, 0)
		bad.RKey ^= 0x5a00
		a.complete(bad)
		a.recvs(3)
		b.recvs(3)
	}},
	{"flush/posted-in-error", func(r *rig) {
		a, b := r.pair()
		a.to(abi.QPSErr)
		a.sayPost("two", a.rdma(abi.WRRDMAWrite, 0, 64, b, 0), a.wr(abi.WRSend, 0, 8))
		a.sends(2)
		a.recv(0, 64)
		a.recv(0, 64)
		a.recvs(2)
		unsignaled := a.rdma(abi.WRRDMAWrite, 0, 64, b, 0)
		unsignaled.Flags = 0
		a.sayPost("unsignaled", unsignaled)
		a.sends(1)
	}},
	{"flush/receive-posted-after-a-failure", func(r *rig) {
		a, b := r.pair()
		bad := a.rdma(abi.WRRDMAWrite, 0, 64, b, 0)
		bad.RKey ^= 0x5a00
		a.complete(bad)
		// Nothing told b's program.
		b.sayStateOnce(abi.QPSErr)
		b.recv(0, 64)
		b.recvs(1)
	}},
	{"flush/receive-posted-unknowing", func(r *rig) {
		a, b := r.pair()
		bad := a.rdma(abi.WRRDMAWrite, 0, 64, b, 0)
		bad.RKey ^= 0x5a00
		a.complete(bad)
		b.recv(0, 64) // without having asked for the state
		b.recvs(1)
	}},
	{"flush/both-queues-are-empty-after", func(r *rig) {
		a, b := r.pair()
		for range 16 {
			a.recv(0, 64)
		}
		a.to(abi.QPSErr)
		a.recvs(16)
		for range 16 {
			a.recv(0, 64) // all slots are free again
		}
		a.recvs(16)
		for range 16 {
			a.post(a.rdma(abi.WRRDMAWrite, 0, 64, b, 0))
		}
		a.sends(16)
	}},
	{"flush/peer-is-not-told", func(r *rig) {
		a, b := r.pair()
		b.recv(0, 64)
		a.to(abi.QPSErr)
		pause()
		b.sayState()
		b.sayNoMore()
	}},
}

// badKey posts a request of n bytes whose key the peer does not know.
func badKey(name string, op abi.WROpcode, n int) test {
	return faultTest(name, nil, func(a, b *end) verbs.SendWR {
		wr := a.rdma(op, 0, n, b, 0)
		wr.RKey ^= 0x5a00
		return wr
	})
}

// faultTest posts one request that the peer refuses. A receive is there, for
// requests that need one.
func faultTest(name string, change func(*config), make func(a, b *end) verbs.SendWR) test {
	return test{"error/" + name, func(r *rig) {
		if change == nil {
			change = func(*config) {}
		}
		a, b := r.pair(change)
		fill(b.buf, 50)
		b.recv(0, 64)
		a.complete(make(a, b))
		b.recvs(1)
		a.sayState()
		b.sayStateOnce(abi.QPSErr)
		r.sayUntouched("the peer's memory", b.buf, 50)
	}}
}
