//go:build linux || darwin

package conform

import (
	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/verbs"
	"github.com/rdmashim/rdmashim/tests/must"
)

// faults are requests that the peer refuses: of n bytes, to a place in its
// region of bufferSize bytes.
var faults = []struct {
	name   string
	op     abi.WROpcode
	n, at  int
	spoil  func(*verbs.SendWR) // or nil
	change func(*config)       // or nil
}{
	{"write-bad-key", abi.WRRDMAWrite, 64, 0, badKey, nil},
	{"write-bad-key-byte", abi.WRRDMAWrite, 64, 0, func(wr *verbs.SendWR) { wr.RKey ^= 1 }, nil}, // the index is right
	{"write-long-bad-key", abi.WRRDMAWrite, 20000, 0, badKey, nil},
	{"write-imm-bad-key", abi.WRRDMAWriteWithImm, 64, 0, badKey, nil},
	{"read-bad-key", abi.WRRDMARead, 64, 0, badKey, nil},
	{"add-bad-key", abi.WRAtomicFetchAndAdd, 8, 0, badKey, nil},
	{"swap-bad-key", abi.WRAtomicCmpAndSwp, 8, 0, badKey, nil},
	{"write-beyond-the-end", abi.WRRDMAWrite, 64, bufferSize - 63, nil, nil},
	{"write-long-beyond-the-end", abi.WRRDMAWrite, 9000, bufferSize - 8999, nil, nil},
	{"write-before-the-start", abi.WRRDMAWrite, 64, -1, nil, nil},
	{"write-address-wraps", abi.WRRDMAWrite, 64, 0, func(wr *verbs.SendWR) { wr.RemoteAddr = 1<<64 - 32 }, nil},
	{"read-beyond-the-end", abi.WRRDMARead, 64, bufferSize - 63, nil, nil},
	{"add-beyond-the-end", abi.WRAtomicFetchAndAdd, 8, bufferSize, nil, nil},
	{"add-misaligned", abi.WRAtomicFetchAndAdd, 8, 4, nil, nil},
	{"swap-misaligned", abi.WRAtomicCmpAndSwp, 8, 1, nil, nil},
	{"write-region-is-not-writable", abi.WRRDMAWrite, 64, 0, nil, func(c *config) { c.mrAccess = abi.AccessLocalWrite | abi.AccessRemoteRead }},
	{"read-region-is-not-readable", abi.WRRDMARead, 64, 0, nil, func(c *config) { c.mrAccess = abi.AccessLocalWrite | abi.AccessRemoteWrite }},
	{"add-region-takes-no-atomics", abi.WRAtomicFetchAndAdd, 8, 0, nil, func(c *config) { c.mrAccess &^= abi.AccessRemoteAtomic }},
	{"write-queue-pair-is-not-writable", abi.WRRDMAWrite, 64, 0, nil, func(c *config) { c.qpAccess &^= abi.AccessRemoteWrite }},
	{"read-queue-pair-is-not-readable", abi.WRRDMARead, 64, 0, nil, func(c *config) { c.qpAccess &^= abi.AccessRemoteRead }},
	{"add-queue-pair-takes-no-atomics", abi.WRAtomicFetchAndAdd, 8, 0, nil, func(c *config) { c.qpAccess &^= abi.AccessRemoteAtomic }},
}

func badKey(wr *verbs.SendWR) { wr.RKey ^= 0x5a00 }

// faultTests post one request each. A receive is there, for those that need
// one.
func faultTests() (tests []test) {
	for _, f := range faults {
		tests = append(tests, test{"error/" + f.name, func(r *rig) {
			var changes []func(*config)
			if f.change != nil {
				changes = append(changes, f.change)
			}
			a, b := r.pair(changes...)
			fill(b.buf, 50)
			b.recv(0, 64)
			wr := a.rdma(f.op, 0, f.n, b, f.at)
			if f.spoil != nil {
				f.spoil(&wr)
			}
			a.complete(wr)
			b.recvs(1)
			a.sayState()
			b.sayStateOnce(abi.QPSErr)
			r.sayUntouched("the peer's memory", b.buf, 50)
		}})
	}
	return tests
}

// errorTests are the ways in which a request fails: the status on either side,
// the states after it, and what becomes of the rest.
var errorTests = append(faultTests(), []test{
	onEnds("error/read-without-resources", func(r *rig, a, b *end) {
		b.config.rdAtomic = 0
		r.connect(a, b)
		a.complete(a.rdma(abi.WRRDMARead, 0, 64, b, 0))
		b.sayStateOnce(abi.QPSErr)
	}),
	onPair("error/send-longer-than-the-receive", func(r *rig, a, b *end) {
		b.recv(0, 63)
		b.recv(100, 64)
		a.complete(a.wr(abi.WRSend, 0, 64))
		b.recvs(2)
		a.sayState()
		b.sayStateOnce(abi.QPSErr)
		// The same over many packets.
		a, b = r.pair()
		b.recv(0, 4000)
		a.send(9000, b)
		b.sayStateOnce(abi.QPSErr)
	}),
	{"error/local-key", func(r *rig) {
		r.sayLocal("SEND from an unknown key", func(a, _ *end) verbs.SendWR { return strangeMemory(a.wr(abi.WRSend, 0, 64)) })
		r.sayLocal("WRITE from an unknown key", func(a, b *end) verbs.SendWR { return strangeMemory(a.rdma(abi.WRRDMAWrite, 0, 64, b, 0)) })
		r.sayLocal("WRITE from beyond the end", func(a, b *end) verbs.SendWR { return a.rdma(abi.WRRDMAWrite, bufferSize-63, 64, b, 0) })
		r.sayLocal("WRITE from another domain's region", func(a, b *end) verbs.SendWR {
			mr := must.Get(must.Get(a.ctx.AllocPD())(r).RegMR(a.buf, allAccess))(r)
			wr := a.rdma(abi.WRRDMAWrite, 0, 64, b, 0)
			wr.SGE[0].LKey = mr.LKey()
			return wr
		})
		r.sayLocal("WRITE from a region that is gone", func(a, b *end) verbs.SendWR {
			wr := a.rdma(abi.WRRDMAWrite, 0, 64, b, 0)
			r.must(a.mr.Dereg())
			return wr
		})
	}},
	{"error/local-target", func(r *rig) {
		r.sayLocal("READ into an unknown key", func(a, b *end) verbs.SendWR { return strangeMemory(a.rdma(abi.WRRDMARead, 0, 64, b, 0)) })
		r.sayLocal("READ beyond the end", func(a, b *end) verbs.SendWR { return a.rdma(abi.WRRDMARead, bufferSize-63, 64, b, 0) })
		r.sayLocal("READ into a region that is not to be written", func(a, b *end) verbs.SendWR {
			mr := must.Get(a.pd.RegMR(a.buf, abi.AccessRemoteRead))(r)
			wr := a.rdma(abi.WRRDMARead, 0, 64, b, 0)
			wr.SGE[0].LKey = mr.LKey()
			return wr
		})
		r.sayLocal("atomic into an unknown key", func(a, b *end) verbs.SendWR { return strangeMemory(a.rdma(abi.WRAtomicFetchAndAdd, 0, 8, b, 0)) })
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
				mr := must.Get(b.pd.RegMR(b.buf, abi.AccessRemoteRead))(r)
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
			must.Get(b.qp.PostRecv([]verbs.RecvWR{{ID: 77, SGE: []verbs.SGE{c.sge(b)}}}))(r)
			r.say("a receive into %s", c.what)
			a.send(64, b)
			b.sayStateOnce(abi.QPSErr)
		}
	}},
	{"error/no-receive", func(r *rig) { r.noReceive(abi.WRSend, 1) }},
	{"error/no-receive-no-retry", func(r *rig) { r.noReceive(abi.WRSend, 0) }},
	{"error/no-receive-for-write-imm", func(r *rig) { r.noReceive(abi.WRRDMAWriteWithImm, 2) }},
	{"error/no-receive-queue", func(r *rig) {
		a, b := r.pair(func(c *config) { c.recvWR, c.rnrRetry, c.minRNR = 0, 1, 1 })
		a.complete(a.wr(abi.WRSend, 0, 64))
		b.sayState()
	}},
	{"error/peer-gone", func(r *rig) { r.peerGone(abi.WRRDMAWrite, 1) }},
	{"error/peer-gone-read", func(r *rig) { r.peerGone(abi.WRRDMARead, 1) }},
	{"error/peer-gone-no-retry", func(r *rig) { r.peerGone(abi.WRRDMAWrite, 0) }},
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
	onPair("error/those-before-succeed", func(r *rig, a, b *end) {
		bad := strangeKey(a.rdma(abi.WRRDMAWrite, 0, 64, b, 0))
		a.complete(a.rdma(abi.WRRDMAWrite, 0, 64, b, 0), a.rdma(abi.WRRDMAWrite, 0, 3000, b, 0), a.rdma(abi.WRRDMAWrite, 0, 64, b, 0))
		a.complete(bad)
	}),
	onPair("error/states-of-both", func(r *rig, a, b *end) {
		a.complete(strangeKey(a.rdma(abi.WRRDMAWrite, 0, 64, b, 0)))
		a.sayState()
		b.sayStateOnce(abi.QPSErr)
		a.sayNoMore()
		b.sayNoMore()
	}),

	onPair("flush/on-error-state", func(r *rig, a, _ *end) {
		a.offer(5, 64)
		a.to(abi.QPSErr)
		a.recvs(5)
		a.sayNoMore()
	}),
	onPair("flush/nothing", func(r *rig, a, b *end) {
		a.to(abi.QPSErr)
		a.sayNoMore()
		a.to(abi.QPSErr)
		a.sayState()
		b.sayState()
		b.sayNoMore()
	}),
	onPair("flush/sends-that-wait", func(r *rig, a, b *end) {
		for range 5 {
			a.post(a.wr(abi.WRSend, 0, 64)) // b has no receive
		}
		pause()
		a.to(abi.QPSErr)
		a.sends(5)
		a.sayNoMore()
		b.sayState()
	}),
	onPair("flush/unsignaled", func(r *rig, a, b *end) {
		for range 3 {
			a.post(unsignaled(a.wr(abi.WRSend, 0, 64))) // b has no receive
		}
		pause()
		a.to(abi.QPSErr)
		a.sends(3)
		b.sayState()
	}),
	onPair("flush/after-a-failure", func(r *rig, a, b *end) {
		bad := strangeKey(a.rdma(abi.WRRDMAWrite, 0, 64, b, 0))
		quiet := unsignaled(a.rdma(abi.WRRDMAWrite, 0, 64, b, 0))
		a.complete(bad, a.rdma(abi.WRRDMAWrite, 0, 64, b, 0), quiet, a.rdma(abi.WRRDMARead, 0, 64, b, 0), a.wr(abi.WRSend, 0, 8))
		a.sayNoMore()
	}),
	onPair("flush/receives-after-a-failure", func(r *rig, a, b *end) {
		for range 3 {
			a.recv(0, 64)
			b.recv(0, 64)
		}
		a.complete(strangeKey(a.rdma(abi.WRRDMAWrite, 0, 64, b, 0)))
		a.recvs(3)
		b.recvs(3)
	}),
	onPair("flush/posted-in-error", func(r *rig, a, b *end) {
		a.to(abi.QPSErr)
		a.sayPost("two", a.rdma(abi.WRRDMAWrite, 0, 64, b, 0), a.wr(abi.WRSend, 0, 8))
		a.sends(2)
		a.recv(0, 64)
		a.recv(0, 64)
		a.recvs(2)
		a.sayPost("unsignaled", unsignaled(a.rdma(abi.WRRDMAWrite, 0, 64, b, 0)))
		a.sends(1)
	}),
	onPair("flush/receive-posted-after-a-failure", func(r *rig, a, b *end) {
		a.complete(strangeKey(a.rdma(abi.WRRDMAWrite, 0, 64, b, 0)))
		// Nothing told b's program.
		b.sayStateOnce(abi.QPSErr)
		b.recv(0, 64)
		b.recvs(1)
	}),
	onPair("flush/receive-posted-unknowing", func(r *rig, a, b *end) {
		a.complete(strangeKey(a.rdma(abi.WRRDMAWrite, 0, 64, b, 0)))
		b.recv(0, 64) // without having asked for the state
		b.recvs(1)
	}),
	onPair("flush/both-queues-are-empty-after", func(r *rig, a, b *end) {
		a.offer(16, 64)
		a.to(abi.QPSErr)
		a.recvs(16)
		a.offer(16, 64) // all slots are free again
		a.recvs(16)
		for range 16 {
			a.post(a.rdma(abi.WRRDMAWrite, 0, 64, b, 0))
		}
		a.sends(16)
	}),
	onPair("flush/peer-is-not-told", func(r *rig, a, b *end) {
		b.recv(0, 64)
		a.to(abi.QPSErr)
		pause()
		b.sayState()
		b.sayNoMore()
	}),
}...)

// sayLocal posts a request that fails in the requester's own memory. A receive
// is there, for those that need one.
func (r *rig) sayLocal(what string, request func(a, b *end) verbs.SendWR) {
	a, b := r.pair()
	b.recv(0, 64)
	wr := request(a, b)
	r.say("%s", what)
	a.complete(wr)
	a.sayState()
	b.sayState()
}

// noReceive posts a request that the peer has no receive for.
func (r *rig) noReceive(op abi.WROpcode, retries uint8) {
	a, b := r.pair(func(c *config) { c.rnrRetry, c.minRNR = retries, 1 })
	a.complete(a.rdma(op, 0, 64, b, 0))
	a.sayState()
	b.sayState()
}

// peerGone posts a request to a queue pair that is no more.
func (r *rig) peerGone(op abi.WROpcode, retries uint8) {
	a, b := r.pair(func(c *config) { c.timeout, c.retry = 12, retries })
	r.must(b.qp.Destroy())
	a.complete(a.rdma(op, 0, 64, b, 0))
	a.sayState()
}

// strangeMemory is the request with a local key of nothing.
func strangeMemory(wr verbs.SendWR) verbs.SendWR {
	wr.SGE[0].LKey ^= 0x5a00
	return wr
}
