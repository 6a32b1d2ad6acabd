//go:build linux || darwin

package conform

import (
	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/verbs"
	"github.com/rdmashim/rdmashim/tests/must"
)

// windows is pair with regions that windows may be bound to, and a window at
// each end.
func (r *rig) windows(typ uint8, change ...func(*config)) (a, b *end, mw *verbs.MW) {
	a, b = r.pair(append([]func(*config){func(c *config) { c.mrAccess |= abi.AccessMWBind }}, change...)...)
	mw = must.Get(b.pd.AllocMW(typ))(r)
	return a, b, mw
}

// bind is a request that binds a window, whose key is key, to a piece of the
// buffer, with remote access; its next key is key + 1.
func (e *end) bind(key uint32, offset, length int) verbs.SendWR {
	e.nextID++
	return verbs.SendWR{ID: e.nextID, Opcode: abi.WRBindMW, Flags: abi.SendSignaled, Bind: verbs.BindMW{
		Addr: e.mr.Addr() + uint64(offset), Length: uint64(length), MRLKey: e.mr.LKey(), MWRKey: key, RKey: key&^0xff | (key+1)&0xff,
		Access: abi.AccessRemoteWrite | abi.AccessRemoteRead | abi.AccessRemoteAtomic,
	}}
}

// invalidate is a request that revokes a key.
func (e *end) invalidate(key uint32) verbs.SendWR {
	e.nextID++
	return verbs.SendWR{ID: e.nextID, Opcode: abi.WRLocalInv, Flags: abi.SendSignaled, InvalidateRKey: key}
}

func nextKey(key uint32) uint32 { return key&^0xff | (key+1)&0xff }

// useKey has a write to b by a key.
func (r *rig) useKey(what string, a, b *end, key uint32, at, n int) {
	r.say("%s", what)
	wr := a.rdma(abi.WRRDMAWrite, 0, n, b, at)
	wr.RKey = key
	a.complete(wr)
}

// windowTests are cases of memory windows. A case leaves no window of type 2
// bound: rdma_rxe of Linux 6.1 cannot destroy its queue pair then. Nor does one
// revoke a free window, which ends that kernel.
var windowTests = []test{
	{"mw/limits", func(r *rig) {
		attr := must.Get(r.open(0).QueryDevice())(r)
		r.say("max_mw %d, windows: %t, type 2A: %t, type 2B: %t", attr.MaxMW,
			attr.DeviceCapFlags&(1<<17) != 0, attr.DeviceCapFlags&(1<<23) != 0, attr.DeviceCapFlags&(1<<24) != 0)
	}},
	{"mw/type-1", func(r *rig) {
		a, b, mw := r.windows(1)
		fill(a.buf[:3000], 1)
		b.complete(b.bind(mw.RKey(), 1000, 4000))
		key := nextKey(mw.RKey())
		r.useKey("a write", a, b, key, 1000, 3000)
		r.saySame("written", a.buf[:3000], b.buf[1000:4000])
		read := a.rdma(abi.WRRDMARead, 8000, 2000, b, 2000)
		read.RKey = key
		a.complete(read)
		r.saySame("read", a.buf[1000:3000], a.buf[8000:10000])
		add := a.rdma(abi.WRAtomicFetchAndAdd, 0, 8, b, 4000)
		add.RKey, add.CompareAdd = key, 3
		a.complete(add)
		// It is bound again, to another piece.
		b.complete(b.bind(key, 20000, 100))
		r.useKey("by the next key", a, b, nextKey(key), 20000, 100)
		r.useKey("by the key before", a, b, key, 1000, 100)
		a.sayStateOnce(abi.QPSErr)
	}},
	{"mw/type-1-unbound", func(r *rig) {
		a, b, mw := r.windows(1)
		b.complete(b.bind(mw.RKey(), 0, 100))
		none := b.bind(nextKey(mw.RKey()), 0, 0)
		none.Bind.MRLKey = 0
		b.complete(none)
		r.result("DeregMR", b.mr.Dereg())
		r.useKey("a write", a, b, nextKey(nextKey(mw.RKey())), 0, 8)
	}},
	{"mw/type-2", func(r *rig) {
		a, b, mw := r.windows(2)
		fill(a.buf[:3000], 2)
		b.complete(b.bind(mw.RKey(), 0, 4000))
		key := nextKey(mw.RKey())
		r.useKey("a write", a, b, key, 0, 3000)
		r.saySame("written", a.buf[:3000], b.buf[:3000])
		r.result("DeregMR", b.mr.Dereg())
		b.complete(b.invalidate(key))
		b.complete(b.bind(key, 0, 4000))
		r.useKey("by the next key", a, b, nextKey(key), 0, 3000)
		b.complete(b.invalidate(nextKey(key)))
		r.useKey("invalidated", a, b, nextKey(key), 0, 8)
		r.result("DeregMR", b.mr.Dereg())
	}},
	{"mw/type-2-remote-invalidate", func(r *rig) {
		a, b, mw := r.windows(2)
		b.complete(b.bind(mw.RKey(), 0, 4000))
		key := nextKey(mw.RKey())
		b.recv(8000, 100)
		wr := a.wr(abi.WRSendWithInv, 0, 8)
		wr.InvalidateRKey = key
		a.complete(wr)
		for _, wc := range b.recvs(1) {
			r.say("the key: %t", wc.InvalidateRKey == key)
		}
		r.useKey("invalidated", a, b, key, 0, 8)
	}},
	{"mw/type-1-remote-invalidate", func(r *rig) {
		a, b, mw := r.windows(1)
		b.complete(b.bind(mw.RKey(), 0, 4000))
		b.recv(8000, 100)
		wr := a.wr(abi.WRSendWithInv, 0, 8)
		wr.InvalidateRKey = nextKey(mw.RKey())
		a.complete(wr)
		b.recvs(1)
		b.sayStateOnce(abi.QPSErr)
	}},
	{"mw/dealloc", func(r *rig) {
		a, b, mw := r.windows(1)
		b.complete(b.bind(mw.RKey(), 0, 4000))
		r.result("Dealloc of the domain", b.pd.Dealloc())
		r.result("DeregMR", b.mr.Dereg())
		r.result("Dealloc", mw.Dealloc())
		r.result("Dealloc", mw.Dealloc())
		r.useKey("a write", a, b, nextKey(mw.RKey()), 0, 8)
		r.result("DeregMR", b.mr.Dereg())
	}},
	{"mw/other-queue-pair", func(r *rig) {
		// A window of type 2 is its queue pair's, one of type 1 the domain's.
		for _, typ := range []uint8{1, 2} {
			a, b, mw := r.windows(typ)
			c, d := r.another(a, b)
			b.complete(b.bind(mw.RKey(), 0, 4000))
			r.useKey("by another queue pair", c, d, nextKey(mw.RKey()), 0, 8)
			r.useKey("by its own", a, b, nextKey(mw.RKey()), 0, 8)
			r.must(mw.Dealloc())
		}
	}},
	{"mw/access", func(r *rig) {
		a, b, mw := r.windows(1)
		wr := b.bind(mw.RKey(), 0, 4000)
		wr.Bind.Access = abi.AccessRemoteRead
		b.complete(wr)
		read := a.rdma(abi.WRRDMARead, 8000, 100, b, 0)
		read.RKey = nextKey(mw.RKey())
		a.complete(read)
		r.useKey("a write", a, b, nextKey(mw.RKey()), 0, 8)
	}},
	{"mw/zero-based", func(r *rig) {
		a, b, mw := r.windows(2)
		fill(a.buf[:100], 3)
		wr := b.bind(mw.RKey(), 1000, 4000)
		wr.Bind.Access |= abi.AccessZeroBased
		b.complete(wr)
		w := a.rdma(abi.WRRDMAWrite, 0, 100, b, 0)
		w.RemoteAddr, w.RKey = 50, nextKey(mw.RKey())
		a.complete(w)
		r.saySame("written", a.buf[:100], b.buf[1050:1150])
		r.must(mw.Dealloc())
	}},
	{"mw/bind-refused", func(r *rig) {
		for _, x := range []struct {
			what  string
			typ   uint8
			spoil func(wr *verbs.SendWR, e *end)
		}{
			{"another window's key", 1, func(wr *verbs.SendWR, _ *end) { wr.Bind.MWRKey ^= 0x4000_0000 }},
			{"a former key", 1, func(wr *verbs.SendWR, _ *end) { wr.Bind.MWRKey ^= 1 }},
			{"no region", 1, func(wr *verbs.SendWR, _ *end) { wr.Bind.MRLKey ^= 0x4000_0000 }},
			{"beyond the region", 1, func(wr *verbs.SendWR, e *end) { wr.Bind.Length = uint64(len(e.buf)) + 1 }},
			{"before the region", 1, func(wr *verbs.SendWR, _ *end) { wr.Bind.Addr -= 1 }},
			{"type 2 of nothing", 2, func(wr *verbs.SendWR, _ *end) { wr.Bind.Length = 0 }},
		} {
			_, b, mw := r.windows(x.typ)
			wr := b.bind(mw.RKey(), 0, 100)
			x.spoil(&wr, b)
			r.say("%s", x.what)
			b.complete(wr, b.wr(abi.WRSend, 0, 0))
			b.sayStateOnce(abi.QPSErr)
		}
	}},
	{"mw/bind-to-a-region-without", func(r *rig) {
		_, b, mw := r.windows(1, func(c *config) { c.mrAccess = allAccess })
		b.complete(b.bind(mw.RKey(), 0, 100))
	}},
	{"mw/bind-bound-type-2", func(r *rig) {
		_, b, mw := r.windows(2)
		b.complete(b.bind(mw.RKey(), 0, 100))
		b.complete(b.bind(nextKey(mw.RKey()), 0, 100))
		r.must(mw.Dealloc())
	}},
	{"mw/invalidate-refused", func(r *rig) {
		_, b, mw := r.windows(1)
		b.complete(b.invalidate(mw.RKey()))
		b.sayStateOnce(abi.QPSErr)
		_, b, _ = r.windows(1)
		b.complete(b.invalidate(b.mr.RKey()))
		b.sayStateOnce(abi.QPSErr)
		_, b, mw = r.windows(2)
		b.complete(b.invalidate(mw.RKey() ^ 1))
	}},
	{"mw/between-others", func(r *rig) {
		// A bind between SENDs that the peer uses when it has the second one.
		a, b, mw := r.windows(1)
		a.offer(4, 100)
		b.post(b.wr(abi.WRSend, 0, 3000%100), b.wr(abi.WRSend, 0, 50), b.bind(mw.RKey(), 0, 4000), b.wr(abi.WRSend, 0, 60), b.wr(abi.WRSend, 0, 61))
		a.recvs(4)
		b.sends(5)
		r.useKey("a write", a, b, nextKey(mw.RKey()), 0, 3000)
	}},
	{"mw/flushed", func(r *rig) {
		_, b, mw := r.windows(1)
		b.to(abi.QPSErr)
		b.complete(b.bind(mw.RKey(), 0, 100))
	}},
}
