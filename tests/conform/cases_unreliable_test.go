//go:build linux || darwin

package conform

import (
	"fmt"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/verbs"
	"github.com/rdmashim/rdmashim/tests/must"
)

// unreliable is pair of the service unreliable connection.
func (r *rig) unreliable(change ...func(*config)) (a, b *end) {
	return r.pair(append(change, func(c *config) { c.typ = abi.QPTUC })...)
}

// sayLast sends a message after those that were dropped, which comes.
func sayLast(a, b *end) {
	b.recv(60<<10, 100)
	a.send(100, b)
	b.sayNoMore()
	a.sayState()
	b.sayState()
}

// unreliableTests are cases of unreliable connections.
var unreliableTests = []test{
	{"uc/messages", func(r *rig) {
		a, b := r.unreliable()
		for _, o := range operations[:4] {
			for i, n := range []int{0, 1, portMTU, portMTU + 1, 5*portMTU + 7} {
				fill(a.buf[:n], byte(i+1))
				if o.recv {
					b.recv(20000, 10000)
				}
				wr := a.rdma(o.op, 0, n, b, 20000)
				wr.Imm, wr.Flags = uint32(n), abi.SendSignaled|abi.SendSolicited
				a.complete(wr)
				if !o.recv {
					b.recv(0, 0)
					a.complete(a.wr(abi.WRSend, 0, 0))
				}
				b.recvs(1)
				r.saySame(fmt.Sprintf("%s of %d", o.name, n), a.buf[:n], b.buf[20000:20000+n])
			}
		}
	}},
	{"uc/states", func(r *rig) {
		a, b := r.ends(func(c *config) { c.typ = abi.QPTUC })
		attr := a.attrInit()
		r.result("to INIT without access", a.qp.Modify(&attr, maskInit&^abi.QPMaskAccessFlags))
		a.toInit()
		attr = a.attrRTR(b)
		r.result("to RTR as if reliable", a.qp.Modify(&attr, maskRTR))
		r.result("to RTR without a path", a.qp.Modify(&attr, maskRTR&^a.reliable()&^abi.QPMaskAV))
		a.sayPost("in INIT", a.wr(abi.WRSend, 0, 0))
		r.result("to RTR", a.qp.Modify(&attr, maskRTR&^a.reliable()))
		attr = a.attrRTS()
		r.result("to RTS as if reliable", a.qp.Modify(&attr, maskRTS))
		r.result("to RTS", a.qp.Modify(&attr, maskRTS&^a.reliable()))
		query := must.Get(a.qp.Query())(r)
		r.say("%v, PSNs %#x and %#x, MTU %v", query.State, query.RQPSN, query.SQPSN, query.PathMTU)
		a.drain()
		a.sayState()
		a.post(a.wr(abi.WRSend, 0, 0))
		a.sayNoMore()
		r.result("to RTS", a.qp.Modify(&verbs.QPAttr{State: abi.QPSRTS}, abi.QPMaskState))
		a.sends(1)
		a.recv(0, 8)
		a.to(abi.QPSErr)
		a.recvs(1)
		a.complete(a.wr(abi.WRSend, 0, 0))
		a.to(abi.QPSReset)
		a.sayState()
	}},
	{"uc/refused-here", func(r *rig) {
		for _, op := range []abi.WROpcode{abi.WRRDMARead, abi.WRAtomicFetchAndAdd} {
			a, b := r.unreliable()
			a.complete(a.rdma(op, 0, 8, b, 0))
			a.sayStateOnce(abi.QPSErr)
			a.complete(a.wr(abi.WRSend, 0, 0))
		}
	}},
	{"uc/dropped-there", func(r *rig) {
		a, b := r.unreliable()
		for _, n := range []int{8, 3000} {
			a.complete(strangeKey(a.rdma(abi.WRRDMAWrite, 0, n, b, 0)))
		}
		a.complete(a.rdma(abi.WRRDMAWrite, 0, 3000, b, 64<<10-100))
		sayLast(a, b)
	}},
	{"uc/no-access", func(r *rig) {
		a, b := r.unreliable(func(c *config) { c.qpAccess = 0 })
		fill(a.buf[:3000], 9)
		a.complete(a.rdma(abi.WRRDMAWrite, 0, 3000, b, 0))
		sayLast(a, b)
		r.saySame("untouched", make([]byte, 3000), b.buf[:3000])
	}},
	{"uc/send-longer-than-the-receive", func(r *rig) {
		a, b := r.unreliable()
		b.recv(0, 2000)
		b.recv(2000, 2000)
		a.complete(a.wr(abi.WRSend, 0, 3000))
		b.recvs(2)
		b.sayStateOnce(abi.QPSErr)
		a.sayState()
	}},
	{"uc/local-key", func(r *rig) {
		a, _ := r.unreliable()
		a.complete(strangeMemory(a.wr(abi.WRSend, 0, 3000)), a.wr(abi.WRSend, 0, 8))
		a.sayStateOnce(abi.QPSErr)
	}},
	{"uc/shared", func(r *rig) {
		a, b := r.sharing(4, func(c *config) { c.typ = abi.QPTUC })
		fill(a.buf[:3000], 5)
		b.recvShared(0, 4000)
		b.recvShared(4000, 4000)
		for range 2 {
			a.send(3000, b)
		}
		r.saySame("message", a.buf[:3000], b.buf[4000:7000])
	}},
	{"uc/many", func(r *rig) {
		a, b := r.unreliable()
		b.offer(16, 100)
		for i := range 16 {
			a.post(a.wr(abi.WRSend, 0, i))
		}
		a.sends(16)
		b.recvs(16)
	}},
}
