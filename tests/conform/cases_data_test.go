//go:build linux || darwin

package conform

import (
	"encoding/binary"
	"fmt"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/verbs"
	"github.com/rdmashim/rdmashim/tests/must"
)

// sizes are those at which packets begin and end.
var sizes = []struct {
	name string
	n    int
}{
	{"0", 0}, {"1", 1}, {"3", 3}, {"mtu-1", portMTU - 1}, {"mtu", portMTU}, {"mtu+1", portMTU + 1}, {"2mtu", 2 * portMTU},
	{"5mtu+7", 5*portMTU + 7}, {"1M", 1 << 20},
}

// operations are those that move data, with what the completions on both sides
// are to show.
var operations = []struct {
	name string
	op   abi.WROpcode
	recv bool // uses up a receive
}{
	{"write", abi.WRRDMAWrite, false}, {"write-imm", abi.WRRDMAWriteWithImm, true}, {"send", abi.WRSend, true},
	{"send-imm", abi.WRSendWithImm, true}, {"read", abi.WRRDMARead, false},
}

// dataTests: every operation in every size, then what is particular to each.
var dataTests = append(sizeTests(), []test{
	{"write/8M", func(r *rig) { r.whole(abi.WRRDMAWrite) }},
	{"read/8M", func(r *rig) { r.whole(abi.WRRDMARead) }},
	{"send/8M", func(r *rig) { r.whole(abi.WRSend) }},
	{"write/immediate-values", func(r *rig) { r.immediates(abi.WRRDMAWriteWithImm) }},
	{"send/immediate-values", func(r *rig) { r.immediates(abi.WRSendWithImm) }},
	{"write/inline", func(r *rig) { r.inline(abi.WRRDMAWrite) }},
	{"send/inline", func(r *rig) { r.inline(abi.WRSend) }},
	{"write/gather", func(r *rig) { r.gather(abi.WRRDMAWrite) }},
	{"send/gather", func(r *rig) { r.gather(abi.WRSend) }},
	onPair("read/scatter", func(r *rig, a, b *end) {
		fill(b.buf[:4000], 21)
		wr := a.rdma(abi.WRRDMARead, 0, 0, b, 0)
		wr.SGE = []verbs.SGE{a.sge(10, 1000), a.sge(3000, 1), a.sge(5000, 2499), a.sge(9000, 500)}
		a.complete(wr)
		got := append(append(append(append([]byte{}, a.buf[10:1010]...), a.buf[3000]), a.buf[5000:7499]...), a.buf[9000:9500]...)
		r.saySame("scattered", b.buf[:4000], got)
	}),
	onPair("send/scatter", func(r *rig, a, b *end) {
		fill(a.buf[:2500], 22)
		b.nextID++
		must.Get(b.qp.PostRecv([]verbs.RecvWR{{ID: b.nextID, SGE: []verbs.SGE{b.sge(0, 1), b.sge(100, 1023), b.sge(2000, 0), b.sge(3000, 4000)}}}))(r)
		a.send(2500, b)
		got := append(append(append([]byte{}, b.buf[0]), b.buf[100:1123]...), b.buf[3000:3000+2500-1024]...)
		r.saySame("scattered", a.buf[:2500], got)
	}),
	onPair("send/larger-receive", func(r *rig, a, b *end) {
		fill(a.buf[:100], 23)
		fill(b.buf[:8192], 24)
		b.recv(0, 8192)
		a.send(100, b)
		r.saySame("message", a.buf[:100], b.buf[:100])
		want := filled(8192, 24)
		r.saySame("behind it", want[100:], b.buf[100:8192])
	}),
	onPair("send/exact-receive", func(r *rig, a, b *end) {
		b.recv(0, 1500)
		a.send(1500, b)
	}),
	onPair("send/empty-receive", func(r *rig, a, b *end) {
		b.nextID++
		must.Get(b.qp.PostRecv([]verbs.RecvWR{{ID: b.nextID}}))(r)
		a.send(0, b)
	}),
	onPair("send/receives-in-order", func(r *rig, a, b *end) {
		b.offer(8, 1000)
		for i := range 8 {
			a.post(a.wr(abi.WRSend, 0, 10*i))
		}
		a.sends(8)
		b.recvs(8)
	}),
	onPair("send/waits-for-a-receive", func(r *rig, a, b *end) {
		fill(a.buf[:3000], 25)
		a.post(a.wr(abi.WRSend, 0, 3000))
		pause()
		a.sayNoMore()
		b.recv(0, 4000)
		a.sends(1)
		b.recvs(1)
		r.saySame("target", a.buf[:3000], b.buf[:3000])
	}),
	onPair("write/imm-waits-for-a-receive", func(r *rig, a, b *end) {
		fill(a.buf[:3000], 26)
		a.post(withImm(a.rdma(abi.WRRDMAWriteWithImm, 0, 3000, b, 0), 5))
		pause()
		a.sayNoMore()
		b.recv(8000, 4)
		a.sends(1)
		b.recvs(1)
		r.saySame("target", a.buf[:3000], b.buf[:3000])
	}),
	onPair("write/imm-leaves-the-receive's-buffer", func(r *rig, a, b *end) {
		fill(b.buf[8000:8100], 27)
		b.recv(8000, 100)
		a.complete(withImm(a.rdma(abi.WRRDMAWriteWithImm, 0, 64, b, 0), 5))
		b.recvs(1)
		r.sayUntouched("the receive's buffer", b.buf[8000:8100], 27)
	}),
	onPair("write/to-odd-addresses", func(r *rig, a, b *end) {
		fill(a.buf[:6000], 28)
		fill(b.buf[:12000], 29)
		a.complete(a.rdma(abi.WRRDMAWrite, 3, 5000, b, 4097))
		r.saySame("target", a.buf[3:5003], b.buf[4097:9097])
		want := filled(12000, 29)
		r.saySame("before it", want[:4097], b.buf[:4097])
		r.saySame("behind it", want[9097:12000], b.buf[9097:12000])
	}),
	onPair("read/from-odd-addresses", func(r *rig, a, b *end) {
		fill(b.buf[:12000], 30)
		fill(a.buf[:12000], 31)
		a.complete(a.rdma(abi.WRRDMARead, 1001, 5000, b, 4097))
		r.saySame("target", b.buf[4097:9097], a.buf[1001:6001])
		want := filled(12000, 31)
		r.saySame("behind it", want[6001:12000], a.buf[6001:12000])
	}),
	onPair("write/nothing-with-no-key", func(r *rig, a, _ *end) {
		a.nextID++
		a.complete(verbs.SendWR{ID: a.nextID, Opcode: abi.WRRDMAWrite, Flags: abi.SendSignaled})
		a.sayState()
	}),
	onPair("read/nothing-with-no-key", func(r *rig, a, _ *end) {
		a.nextID++
		a.complete(verbs.SendWR{ID: a.nextID, Opcode: abi.WRRDMARead, Flags: abi.SendSignaled})
		a.sayState()
	}),
	onPair("write/in-both-directions", func(r *rig, a, b *end) {
		fill(a.buf[:8000], 32)
		fill(b.buf[:8000], 33)
		for range 4 {
			a.post(a.rdma(abi.WRRDMAWrite, 0, 8000, b, 16000))
			b.post(b.rdma(abi.WRRDMAWrite, 0, 8000, a, 16000))
		}
		a.sends(4)
		b.sends(4)
		r.saySame("at b", a.buf[:8000], b.buf[16000:24000])
		r.saySame("at a", b.buf[:8000], a.buf[16000:24000])
	}),
	onEnd("write/to-itself", func(r *rig, e *end) {
		e.toRTR(e)
		e.toRTS()
		fill(e.buf[:3000], 34)
		e.complete(e.rdma(abi.WRRDMAWrite, 0, 3000, e, 10000))
		r.saySame("target", e.buf[:3000], e.buf[10000:13000])
		e.recv(20000, 100)
		e.send(100, e)
		r.saySame("message", e.buf[:100], e.buf[20000:20100])
	}),
	onPair("write/then-send", func(r *rig, a, b *end) {
		fill(a.buf[:20000], 35)
		b.recv(30000, 64)
		w := unsignaled(a.rdma(abi.WRRDMAWrite, 0, 20000, b, 0))
		a.post(w, a.wr(abi.WRSend, 0, 4))
		b.recvs(1) // then the WRITE before it is there
		r.saySame("what was written before", a.buf[:20000], b.buf[:20000])
		a.sends(1)
	}),
	onPair("write/then-read-back", func(r *rig, a, b *end) {
		fill(a.buf[:5000], 36)
		a.complete(a.rdma(abi.WRRDMAWrite, 0, 5000, b, 0), a.rdma(abi.WRRDMARead, 10000, 5000, b, 0))
		r.saySame("read back", a.buf[:5000], a.buf[10000:15000])
	}),
	onPair("write/unsignaled", func(r *rig, a, b *end) {
		for range 3 {
			a.post(unsignaled(a.rdma(abi.WRRDMAWrite, 0, 8, b, 0)))
		}
		a.complete(a.rdma(abi.WRRDMAWrite, 0, 8, b, 0))
		a.sayNoMore()
	}),
	{"write/signal-all", func(r *rig) {
		a, b := r.pair(func(c *config) { c.sigAll = true })
		for range 3 {
			a.post(unsignaled(a.rdma(abi.WRRDMAWrite, 0, 8, b, 0)))
		}
		a.sends(3)
		q := must.Get(a.qp.Query())(r)
		r.say("Query says so: %t", q.SigAll)
	}},
	onPair("write/batch", func(r *rig, a, b *end) {
		var wrs []verbs.SendWR
		for i := range 12 {
			fill(a.buf[100*i:100*i+100], byte(i))
			wrs = append(wrs, a.rdma(abi.WRRDMAWrite, 100*i, 100, b, 100*(11-i)))
		}
		a.sayPost("batch", wrs...)
		a.sends(12)
		for i := range 12 {
			r.saySame("target", a.buf[100*i:100*i+100], b.buf[100*(11-i):100*(11-i)+100])
		}
	}),
	onPair("send/mixed-with-others", func(r *rig, a, b *end) {
		b.offer(3, 64)
		imm := withImm(a.rdma(abi.WRRDMAWriteWithImm, 0, 30, b, 100), 0xabcdef01)
		a.post(a.wr(abi.WRSend, 0, 10), a.rdma(abi.WRRDMARead, 1000, 20, b, 0), imm, a.rdma(abi.WRRDMAWrite, 0, 40, b, 200),
			a.wr(abi.WRSend, 0, 50))
		a.sends(5)
		b.recvs(3)
	}),
	onPair("send/with-invalidate", func(r *rig, a, b *end) {
		extra := must.Get(b.pd.RegMR(b.buf, allAccess))(r)
		b.recv(0, 64)
		wr := a.wr(abi.WRSendWithInv, 0, 8)
		wr.InvalidateRKey = extra.RKey() ^ 0xffff00 // no region's
		a.complete(wr)
		b.recvs(1)
	}),
	{"read/one-at-a-time", func(r *rig) { r.reads(8, 1) }},
	{"read/many-at-a-time", func(r *rig) { r.reads(16, 16) }},
	onPair("read/fence", func(r *rig, a, b *end) {
		fill(b.buf[:8000], 39)
		fill(a.buf[:8000], 40)
		// Without the fence the second might leave before the first has filled
		// its source.
		w := a.rdma(abi.WRRDMAWrite, 0, 8000, b, 20000)
		w.Flags |= abi.SendFence
		a.complete(a.rdma(abi.WRRDMARead, 0, 8000, b, 0), w)
		r.saySame("what was read and written", b.buf[:8000], b.buf[20000:28000])
	}),
	onPair("atomic/add", func(r *rig, a, b *end) {
		binary.NativeEndian.PutUint64(b.buf[64:], 100)
		for i := range 3 {
			wr := a.rdma(abi.WRAtomicFetchAndAdd, 8*i, 8, b, 64)
			wr.CompareAdd = 7
			a.post(wr)
		}
		a.sends(3)
		for i := range 3 {
			r.say("old value %d", binary.NativeEndian.Uint64(a.buf[8*i:]))
		}
		r.say("word %d", binary.NativeEndian.Uint64(b.buf[64:]))
	}),
	onPair("atomic/add-wraps", func(r *rig, a, b *end) {
		binary.NativeEndian.PutUint64(b.buf[64:], 1<<64-1)
		wr := a.rdma(abi.WRAtomicFetchAndAdd, 0, 8, b, 64)
		wr.CompareAdd = 2
		a.complete(wr)
		r.say("old value %#x, word %d", binary.NativeEndian.Uint64(a.buf), binary.NativeEndian.Uint64(b.buf[64:]))
	}),
	onPair("atomic/swap", func(r *rig, a, b *end) {
		binary.NativeEndian.PutUint64(b.buf[64:], 5)
		hit := a.rdma(abi.WRAtomicCmpAndSwp, 0, 8, b, 64)
		hit.CompareAdd, hit.Swap = 5, 0x123456789abcdef0
		miss := a.rdma(abi.WRAtomicCmpAndSwp, 8, 8, b, 64)
		miss.CompareAdd, miss.Swap = 5, 9
		a.complete(hit, miss)
		r.say("old values %d and %#x", binary.NativeEndian.Uint64(a.buf), binary.NativeEndian.Uint64(a.buf[8:]))
		r.say("word %#x", binary.NativeEndian.Uint64(b.buf[64:]))
	}),
	onPair("atomic/neighbours", func(r *rig, a, b *end) {
		fill(b.buf[:256], 41)
		want := append([]byte{}, b.buf[:256]...)
		wr := a.rdma(abi.WRAtomicFetchAndAdd, 0, 8, b, 64)
		wr.CompareAdd = 1
		a.complete(wr)
		binary.NativeEndian.PutUint64(want[64:], binary.NativeEndian.Uint64(want[64:])+1)
		r.saySame("around it", want, b.buf[:256])
	}),
	onPair("atomic/from-both-sides", func(r *rig, a, b *end) {
		const rounds = 50
		done := make(chan error, 2)
		add := func(e, peer *end, local int) {
			for range rounds {
				wr := e.rdma(abi.WRAtomicFetchAndAdd, local, 8, a, 64) // the word is a's
				wr.CompareAdd = 1
				if _, err := e.qp.Post([]verbs.SendWR{wr}); err != nil {
					done <- err
					return
				}
				if wcs, err := take(e.scq, 1); err != nil || wcs[0].Status != abi.WCSuccess {
					done <- fmt.Errorf("%v, %w", wcs, err)
					return
				}
			}
			done <- nil
		}
		// a reaches its own memory through a second connection.
		c, d := &end{}, &end{}
		*c, *d = *a, *b
		c.qp = must.Get(a.pd.CreateQP(a.init()))(r)
		d.qp = must.Get(a.pd.CreateQP(a.init()))(r)
		d.ctx, d.mr, d.pd = a.ctx, a.mr, a.pd
		r.connect(c, d)
		go add(b, a, 0)
		go add(c, d, 8)
		r.result("one", <-done)
		r.result("other", <-done)
		r.say("word %d", binary.NativeEndian.Uint64(a.buf[64:]))
	}),
}...)
