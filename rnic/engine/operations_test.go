package engine

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

var lengths = []int{0, 1, 2, 3, 4, 255, 256, 257, 1023, 1024, 1025, 4095, 4096, 4097, 100_000, regionLen / 4}

// Every data operation, length and path MTU arrives intact (IBA 9.4.1, 9.4.3,
// 9.4.4).
func TestDataOperations(t *testing.T) {
	for _, mtu := range []abi.MTU{abi.MTU256, abi.MTU512, abi.MTU1024, abi.MTU2048, abi.MTU4096} {
		for _, op := range []abi.WROpcode{abi.WRSend, abi.WRSendWithImm, abi.WRRDMAWrite, abi.WRRDMAWriteWithImm, abi.WRRDMARead} {
			t.Run(fmt.Sprintf("%v/%v", mtu, op), func(t *testing.T) {
				n := newPair(t, cfg{mtu: mtu, psnA: 0xfffff0, psnB: 0x123456})
				for i, l := range lengths {
					transfer(t, n, op, uint64(i), l)
				}
				require.Zero(t, n.a.qp.Counters().RetransmittedPkts)
			})
		}
	}
}

// transfer moves l bytes from a to b, or for a READ from b to a, and compares.
func transfer(t *testing.T, n *network, op abi.WROpcode, id uint64, l int) {
	const src, dst = 64, regionLen / 2
	from, to := n.a, n.b
	if op == abi.WRRDMARead {
		from, to = n.b, n.a
	}
	fill(from.mem[src:src+l], int(id))
	clear(to.mem[dst-8 : dst+l+8])
	n.a.wcs, n.b.wcs = nil, nil
	wr := SendWR{ID: id, Opcode: op, Imm: [4]byte{1, 2, 3, 4}, SGE: n.a.sge(src, l), RKey: n.b.key(), RemoteAddr: n.b.va(dst)}
	if op == abi.WRRDMARead {
		wr.SGE, wr.RemoteAddr = n.a.sge(dst, l), n.b.va(src)
	}
	consumes := op == abi.WRSend || op == abi.WRSendWithImm || op == abi.WRRDMAWriteWithImm
	if consumes {
		n.b.postRecv(id+1000, dst, l)
	}
	n.post(n.a, wr)
	n.run(0)
	requireSuccess(t, n.a.wcs, id)
	require.Equal(t, from.mem[src:src+l], to.mem[dst:dst+l])
	require.Zero(t, to.mem[dst-1])
	require.Zero(t, to.mem[dst+l])
	if !consumes {
		require.Empty(t, n.b.wcs)
		return
	}
	requireSuccess(t, n.b.wcs, id+1000)
	c := n.b.wcs[0]
	require.True(t, c.Recv)
	require.EqualValues(t, l, c.ByteLen)
	require.Equal(t, op != abi.WRSend, c.Flags&abi.WCWithImm != 0)
	if op != abi.WRSend {
		require.Equal(t, [4]byte{1, 2, 3, 4}, c.Imm)
	}
	require.Equal(t, op == abi.WRRDMAWriteWithImm, c.Opcode == abi.WCRecvRDMAWithImm)
}

// Atomics (IBA 9.4.5): the word changes once, its old value comes back.
func TestAtomicOperations(t *testing.T) {
	n := newPair(t, cfg{})
	*n.b.word(64) = 40
	at := SendWR{RKey: n.b.key(), RemoteAddr: n.b.va(64), SGE: n.a.sge(8, 8)}
	for i, c := range []struct {
		op               abi.WROpcode
		compareAdd, swap uint64
		orig, after      uint64
		wc               abi.WCOpcode
	}{
		{abi.WRAtomicFetchAndAdd, 2, 0, 40, 42, abi.WCFetchAdd},
		{abi.WRAtomicCmpAndSwp, 42, 7, 42, 7, abi.WCCompSwap},
		{abi.WRAtomicCmpAndSwp, 42, 9, 7, 7, abi.WCCompSwap},
		{abi.WRAtomicFetchAndAdd, ^uint64(0), 0, 7, 6, abi.WCFetchAdd},
	} {
		n.a.wcs = nil
		at.ID, at.Opcode, at.CompareAdd, at.Swap = uint64(i), c.op, c.compareAdd, c.swap
		n.post(n.a, at)
		n.run(0)
		requireSuccess(t, n.a.wcs, uint64(i))
		require.Equal(t, c.wc, n.a.wcs[0].Opcode)
		require.EqualValues(t, 8, n.a.wcs[0].ByteLen)
		require.Equal(t, c.orig, *n.a.word(8))
		require.Equal(t, c.after, *n.b.word(64))
	}
	require.EqualValues(t, 4, n.a.qp.Counters().Atomics)
}

// Both sides are requester and responder at once.
func TestBothDirections(t *testing.T) {
	n := newPair(t, cfg{mtu: abi.MTU512})
	fill(n.a.mem[:regionLen/4], 1)
	fill(n.b.mem[:regionLen/4], 2)
	for i := range 8 {
		off, l := i*20_000, 20_000
		for _, h := range []*host{n.a, n.b} {
			p := n.peer(h)
			n.post(h, SendWR{ID: uint64(i), Opcode: abi.WRRDMAWrite, SGE: h.sge(off, l), RKey: p.key(), RemoteAddr: p.va(regionLen/4 + off)})
			n.post(h, SendWR{ID: 100 + uint64(i), Opcode: abi.WRRDMARead, SGE: h.sge(regionLen/2+off, l), RKey: p.key(), RemoteAddr: p.va(off)})
		}
	}
	n.run(0)
	for _, h := range []*host{n.a, n.b} {
		p := n.peer(h)
		require.Len(t, h.wcs, 16)
		require.Equal(t, h.mem[:160_000], p.mem[regionLen/4:regionLen/4+160_000])
		require.Equal(t, p.mem[:160_000], h.mem[regionLen/2:regionLen/2+160_000])
		require.Zero(t, h.qp.Counters().RetransmittedPkts)
	}
}

// Scatter lists are cut where they must be; inline data is taken at once.
func TestScatterListsAndInline(t *testing.T) {
	n := newPair(t, cfg{mtu: abi.MTU256})
	fill(n.a.mem[:4096], 3)
	list := append(n.a.sge(10, 300), append(n.a.sge(0, 0), n.a.sge(1000, 213)...)...)
	n.b.recv.list = append(n.b.recv.list, ReceiveWR{ID: 5, SGE: append(n.b.sge(0, 1), n.b.sge(100, 600)...)})
	n.post(n.a, SendWR{ID: 1, Opcode: abi.WRSend, SGE: list})
	inline := []byte("inline data")
	n.post(n.a, SendWR{ID: 2, Opcode: abi.WRRDMAWrite, Flags: abi.SendInline, Inline: inline, RKey: n.b.key(), RemoteAddr: n.b.va(2000)})
	clear(inline)
	n.run(0)
	requireSuccess(t, n.a.wcs, 1, 2)
	requireSuccess(t, n.b.wcs, 5)
	want := append(append([]byte{}, n.a.mem[10:310]...), n.a.mem[1000:1213]...)
	require.Equal(t, want[:1], n.b.mem[:1])
	require.Equal(t, want[1:], n.b.mem[100:100+512])
	require.Equal(t, "inline data", string(n.b.mem[2000:2011]))
}

// Unsignaled requests complete silently, in order.
func TestUnsignaled(t *testing.T) {
	n := newPair(t, cfg{edit: func(_ int, c *Config) { c.SigAll = false }})
	for i := range 6 {
		f := abi.SendFlags(0)
		if i%3 == 2 {
			f = abi.SendSignaled
		}
		n.post(n.a, SendWR{ID: uint64(i), Opcode: abi.WRRDMAWrite, Flags: f, SGE: n.a.sge(0, 8), RKey: n.b.key(), RemoteAddr: n.b.va(0)})
	}
	n.run(0)
	requireSuccess(t, n.a.wcs, 0, 1, 2, 3, 4, 5)
	for i, c := range n.a.wcs {
		require.Equal(t, i%3 != 2, c.Silent)
	}
	require.Zero(t, n.a.qp.Outstanding())
}

// Solicited event and immediate stand in the last packet only (IBA 9.2.3,
// 9.3.6).
func TestSolicited(t *testing.T) {
	n := newPair(t, cfg{mtu: abi.MTU256})
	n.b.postRecv(1, 0, 1000)
	n.post(n.a, SendWR{ID: 1, Opcode: abi.WRSendWithImm, Flags: abi.SendSolicited, SGE: n.a.sge(0, 600)})
	n.run(0)
	require.True(t, n.b.wcs[0].Solicited)
	require.Equal(t, []wire.Opcode{wire.RCSendFirst, wire.RCSendMiddle, wire.RCSendLastImm}, opcodes(n.a.sent))
	for i, p := range n.a.sent {
		require.Equal(t, i == 2, p.Solicited)
		require.Equal(t, i == 2, p.AckReq)
		require.True(t, p.MigReq)
		require.Equal(t, wire.DefaultPKey, p.PKey)
	}
}

// A plain WRITE, READ or atomic raises no solicited event (IBA 9.2.3).
func TestSolicitedNeedsReceive(t *testing.T) {
	for _, op := range []abi.WROpcode{abi.WRRDMAWrite, abi.WRRDMARead, abi.WRAtomicFetchAndAdd} {
		n := newPair(t, cfg{})
		n.post(n.a, SendWR{ID: 1, Opcode: op, Flags: abi.SendSolicited, SGE: n.a.sge(0, 8), RemoteAddr: n.b.va(0), RKey: n.b.key()})
		n.run(0)
		requireSuccess(t, n.a.wcs, 1)
		for _, p := range n.a.sent {
			require.False(t, p.Solicited, op)
		}
	}
}
