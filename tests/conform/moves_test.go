//go:build linux || darwin

package conform

import (
	"fmt"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/verbs"
)

func sizeTests() []test {
	var tests []test
	for _, o := range operations {
		for _, s := range sizes {
			tests = append(tests, test{fmt.Sprintf("%s/%s", o.name, s.name), func(r *rig) {
				a, b := r.pair(func(c *config) { c.size = 2 << 20 })
				r.move(o.op, o.recv, a, b, s.n)
			}})
		}
	}
	for _, m := range []abi.MTU{abi.MTU256, abi.MTU512} {
		for _, o := range operations {
			tests = append(tests, test{fmt.Sprintf("%s/path-mtu-%v", o.name, m), func(r *rig) {
				a, b := r.pair(func(c *config) { c.mtu = m })
				r.move(o.op, o.recv, a, b, 5000)
			}})
		}
	}
	return tests
}

// move does one operation over n bytes and compares source and target, and what
// surrounds it.
func (r *rig) move(op abi.WROpcode, recv bool, a, b *end, n int) {
	fill(a.buf, 11)
	fill(b.buf, 12)
	const from, to = 100, 5000
	if recv {
		b.recv(to, n)
	}
	wr := a.rdma(op, from, n, b, to)
	wr.Imm = 0x01020304
	if op == abi.WRSend || op == abi.WRSendWithImm {
		wr.RemoteAddr, wr.RKey = 0, 0
	}
	a.complete(wr)
	if recv {
		b.recvs(1)
	}
	src, dst, at, seed := a.buf[from:from+n], b.buf, to, byte(12)
	if op == abi.WRRDMARead {
		src, dst, at, seed = b.buf[to:to+n], a.buf, from, 11
	}
	want := filled(len(dst), seed)
	copy(want[at:], src)
	r.saySame("memory", want, dst)
	a.sayNoMore()
	b.sayNoMore()
}

// whole moves the longest message.
func (r *rig) whole(op abi.WROpcode) {
	a, b := r.pair(func(c *config) { c.size = 8 << 20 })
	fill(a.buf, 13)
	fill(b.buf, 14)
	if op == abi.WRSend {
		b.recv(0, 8<<20)
	}
	a.complete(a.rdma(op, 0, 8<<20, b, 0))
	if op == abi.WRSend {
		b.recvs(1)
	}
	r.saySame("memory", a.buf, b.buf)
}

// reads posts n READs at once, of which so many are outstanding.
func (r *rig) reads(n int, outstanding uint8) {
	a, b := r.pair(func(c *config) { c.rdAtomic = outstanding })
	fill(b.buf[:2000*n], 37)
	for i := range n {
		a.post(a.rdma(abi.WRRDMARead, 2000*i, 2000, b, 2000*i))
	}
	a.sends(n)
	r.saySame("target", b.buf[:2000*n], a.buf[:2000*n])
}

func (r *rig) immediates(op abi.WROpcode) {
	a, b := r.pair()
	for _, imm := range []uint32{0, 1, 0x80000000, 0x12345678, 0xffffffff} {
		b.recv(0, 64)
		a.complete(withImm(a.rdma(op, 0, 4, b, 100), imm))
		b.recvs(1)
	}
}

// inline posts data that is overwritten at once.
func (r *rig) inline(op abi.WROpcode) {
	a, b := r.pair()
	for _, n := range []int{0, 1, 63, 64} {
		data := make([]byte, n)
		fill(data, 15)
		want := append([]byte{}, data...)
		b.recv(0, 64)
		wr := a.rdma(op, 0, 0, b, 0)
		wr.SGE, wr.Inline = nil, data
		wr.Flags |= abi.SendInline
		a.post(wr)
		clear(data)
		a.sends(1)
		if op == abi.WRSend {
			b.recvs(1)
		}
		r.saySame("target", want, b.buf[:n])
	}
}

// gather sends from several pieces, one of them empty.
func (r *rig) gather(op abi.WROpcode) {
	a, b := r.pair()
	fill(a.buf, 16)
	b.recv(0, 8000)
	wr := a.rdma(op, 0, 0, b, 0)
	wr.SGE = []verbs.SGE{a.sge(10000, 1), a.sge(20, 1500), a.sge(500, 0), a.sge(30000, 3000)}
	a.complete(wr)
	if op == abi.WRSend {
		b.recvs(1)
	}
	want := append(append([]byte{a.buf[10000]}, a.buf[20:1520]...), a.buf[30000:33000]...)
	r.saySame("gathered", want, b.buf[:4501])
}
