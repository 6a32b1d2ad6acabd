package engine

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// IBA 9.7.5.1.3, 9.7.5.1.5, C9-110: a repeated READ may ask for a part, earlier
// PSNs are answered first, and a repeat that does not fit the original is
// dropped.
func TestDuplicates(t *testing.T) {
	n := newPair(t, cfg{mtu: abi.MTU256, psnA: 0xfffffe})
	write := n.req(wire.RCWriteOnly, 0, 8, addr(n.b.va(64)))
	read := n.req(wire.RCReadRequest, 1, 0, dmalen(1000), addr(n.b.va(1024)))
	add := n.req(wire.RCFetchAdd, 5, 0)
	write2 := n.req(wire.RCWriteOnly, 6, 8, addr(n.b.va(64)))
	all := n.answer(write, read, add, write2)
	require.Equal(t, []wire.Opcode{
		wire.RCReadResponseFirst, wire.RCReadResponseMiddle, wire.RCReadResponseMiddle, wire.RCReadResponseLast,
		wire.RCAtomicAck, wire.RCAck,
	}, opcodes(all))
	require.Equal(t, opcodes(all), opcodes(n.answer(write2, add, read)), "earlier PSNs first")
	out := n.answer(write)
	require.Equal(t, []wire.Opcode{wire.RCAck}, opcodes(out))
	require.Equal(t, write.PSN, out[0].PSN, "it does not pass the READ behind it")

	part := n.req(wire.RCReadRequest, 0, 0, addr(n.b.va(1024+256)))
	part.PSN = read.PSN.Next()
	for length, want := range map[uint32][]wire.Opcode{
		1000 - 256: {wire.RCReadResponseFirst, wire.RCReadResponseMiddle, wire.RCReadResponseLast},
		300:        {wire.RCReadResponseFirst, wire.RCReadResponseLast},
		44:         {wire.RCReadResponseOnly},
	} {
		part.RETH.DMALen = length
		out := n.answer(part)
		require.Equal(t, want, opcodes(out))
		require.Equal(t, part.PSN, out[0].PSN)
	}

	drops := n.b.qp.Counters().DropReplay
	for i, edit := range []func(*wire.Packet){
		dmalen(1001), rkey(1), addr(n.b.va(1025)), dmalen(0),
		func(p *wire.Packet) { p.PSN = p.PSN.Next() },
		func(p *wire.Packet) { p.PSN = p.PSN.Add(-1) },
		func(p *wire.Packet) { p.Opcode = wire.RCFetchAdd },
		func(p *wire.Packet) { p.Opcode = wire.RCFlush },
	} {
		p := *read
		edit(&p)
		require.Empty(t, n.answer(&p), i)
	}
	require.Equal(t, drops+8, n.b.qp.Counters().DropReplay)
}

// A READ that is repeated while it is being answered starts again.
func TestReadRepeatedWhileAnswered(t *testing.T) {
	n := newPair(t, cfg{mtu: abi.MTU256})
	read := n.req(wire.RCReadRequest, 0, 0, dmalen(256*8))
	n.b.qp.Receive(n.now, n.a.addr.Addr(), read)
	b := NewBatch(3)
	require.True(t, n.b.qp.Transmit(n.now, b))
	require.Len(t, b.Packets, 3)
	out := n.answer(read)
	require.Len(t, out, 8)
	require.Equal(t, read.PSN, out[0].PSN)
	require.Empty(t, n.answer())
	require.Zero(t, n.b.qp.rsp.replay.left)
}

// The last max_dest_rd_atomic requests are remembered, no more.
func TestReplayResources(t *testing.T) {
	n := newPair(t, cfg{attr: func(_ int, a *Attr) { a.MaxDestRdAtomic = 2 }})
	var reads []*wire.Packet
	for range 5 {
		r := n.req(wire.RCReadRequest, 0, 0, dmalen(10))
		reads = append(reads, r)
		require.Len(t, n.answer(r), 1)
	}
	for i, r := range reads {
		want := 0
		if i >= 3 {
			want = 1
		}
		require.Len(t, n.answer(r), want, i)
	}
	// A READ that is being answered for the second time makes room for a new
	// one.
	n.b.qp.Receive(n.now, n.a.addr.Addr(), reads[3])
	require.Len(t, n.answer(n.req(wire.RCReadRequest, 0, 0, dmalen(10))), 1)
	require.Zero(t, n.b.qp.rsp.replay.left)
}

// The request that is found to be next is the oldest one that is pending,
// whatever was added, answered and asked for again before.
func TestReplayOldest(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 0))
		var u replayQueue
		u.reset(1 + r.IntN(16))
		next := seq(0)
		for range 300 {
			switch o := u.oldest(); r.IntN(4) {
			case 0, 1:
				if u.hasRoom() {
					end := next + 1 + seq(r.IntN(4))
					u.add(replay{first: next, end: end, cur: next, stop: end})
					next = end
				}
			case 2:
				if o != nil {
					u.sent(o)
				}
			case 3:
				if u.n > 0 {
					x := u.at(r.IntN(u.n))
					u.again(x, x.first, x.end, 0)
				}
			}
			var want *replay
			for i := 0; i < u.n && want == nil; i++ {
				if u.at(i).pending() {
					want = u.at(i)
				}
			}
			require.Same(t, want, u.oldest())
		}
	}
}
