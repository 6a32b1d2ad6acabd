package engine

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/mem"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// unreliablePair is two connected queue pairs and the packets between them.
type unreliablePair struct {
	t      testing.TB
	a, b   *host
	qa, qb *Unreliable
	batch  *Batch
}

const unreliableDepth = 256

func newUnreliablePair(t testing.TB) *unreliablePair {
	n := newPair(t, cfg{})
	p := &unreliablePair{t: t, a: n.a, b: n.b, batch: NewBatch(16)}
	p.qa, p.qb = p.qp(p.a, p.b), p.qp(p.b, p.a)
	return p
}

// qp makes the queue pair of a host.
func (p *unreliablePair) qp(h, peer *host) *Unreliable {
	q := NewUnreliable(Config{
		QPN: h.qp.cfg.QPN, PD: testPD, Regions: h.tab, Receives: h.recv,
		SigAll: true, SendDepth: unreliableDepth, MaxSendSGE: 4, MaxRecvSGE: 4, MaxInline: 64,
	})
	attr := Attr{
		Access: allAccess, Peer: peer.addr, DestQPN: peer.qp.cfg.QPN, PathMTU: abi.MTU256, RQPSN: wire.MaxPSN - 5, SQPSN: wire.MaxPSN - 5,
	}
	for _, to := range []abi.QPState{abi.QPSInit, abi.QPSRTR, abi.QPSRTS} {
		require.NoError(p.t, q.Modify(0, to, &attr, ^abi.QPAttrMask(0)))
	}
	return q
}

// send posts a request at a and returns its packets.
func (p *unreliablePair) send(wr *SendWR) (packets [][]byte) {
	require.NoError(p.t, p.qa.Post(0, wr))
	for more := true; more; {
		more = p.qa.Transmit(0, p.batch)
		for _, x := range p.batch.Packets {
			require.Equal(p.t, p.b.addr, x.Peer)
			packets = append(packets, append(append([]byte(nil), x.Head...), x.Payload...))
		}
		p.batch.Reset()
	}
	return packets
}

// arrive gives a packet to b.
func (p *unreliablePair) arrive(packet []byte) {
	var w wire.Packet
	require.NoError(p.t, w.Parse(append(append([]byte(nil), packet...), make([]byte, wire.PadLen(len(packet)))...)))
	p.qb.Receive(0, p.a.addr.Addr(), &w)
	p.batch.Reset()
	require.False(p.t, p.qb.Transmit(0, p.batch))
	require.Empty(p.t, p.batch.Packets, "nothing is answered")
}

// one takes the only completion.
func one(t testing.TB, q *Unreliable) Completion {
	var buf [2]Completion
	require.Equal(t, 1, q.Completions(buf[:]))
	return buf[0]
}

func none(t testing.TB, q *Unreliable) {
	var buf [1]Completion
	require.Zero(t, q.Completions(buf[:]))
}

// TestUnreliable sends a message of each kind.
func TestUnreliable(t *testing.T) {
	p := newUnreliablePair(t)
	for i, wr := range []SendWR{
		{Opcode: abi.WRSend}, {Opcode: abi.WRSendWithImm}, {Opcode: abi.WRRDMAWrite}, {Opcode: abi.WRRDMAWriteWithImm},
	} {
		for _, size := range []int{0, 1, 256, 257, 1000} {
			rand.NewChaCha8([32]byte{byte(i), byte(size)}).Read(p.a.mem[:size])
			p.b.postRecv(7, 4096, 2000)
			wr.ID, wr.SGE, wr.RemoteAddr, wr.RKey, wr.Imm = uint64(size), p.a.sge(0, size), p.b.va(4096), p.b.key(), [4]byte{1, 2, 3, 4}
			packets := p.send(&wr)
			require.Len(t, packets, max(1, (size+255)/256))
			done := one(t, p.qa)
			require.Equal(t, Completion{ID: uint64(size), Opcode: kindOf(wr.Opcode).wc}, done)
			for _, x := range packets {
				none(t, p.qb)
				p.arrive(x)
			}
			require.Equal(t, p.a.mem[:size], p.b.mem[4096:][:size])
			if wr.Opcode == abi.WRRDMAWrite {
				none(t, p.qb)
				p.b.recv.list = nil
				continue
			}
			got := one(t, p.qb)
			require.Equal(t, abi.WCSuccess, got.Status)
			require.Equal(t, uint32(size), got.ByteLen)
			require.Equal(t, wr.Opcode != abi.WRSend, got.Flags&abi.WCWithImm != 0)
		}
	}
}

// TestUnreliableDrops: a message that cannot be received is dropped whole
// without a word, and the next one comes; its receive is the one that was
// taken.
func TestUnreliableDrops(t *testing.T) {
	long := func(p *unreliablePair) *SendWR { return &SendWR{Opcode: abi.WRSend, SGE: p.a.sge(0, 700)} }
	write := func(p *unreliablePair) *SendWR {
		return &SendWR{Opcode: abi.WRRDMAWriteWithImm, SGE: p.a.sge(0, 700), RemoteAddr: p.b.va(8192), RKey: p.b.key()}
	}
	for name, x := range map[string]struct {
		wr    func(*unreliablePair) *SendWR
		spoil func(p *unreliablePair, packets [][]byte) [][]byte
		count func(*Counters) uint64
	}{
		"the first":  {long, func(_ *unreliablePair, x [][]byte) [][]byte { return x[1:] }, func(c *Counters) uint64 { return c.OutOfSeqRequest }},
		"a middle":   {long, func(_ *unreliablePair, x [][]byte) [][]byte { return [][]byte{x[0], x[2]} }, func(c *Counters) uint64 { return c.OutOfSeqRequest }},
		"the last":   {long, func(_ *unreliablePair, x [][]byte) [][]byte { return x[:2] }, func(c *Counters) uint64 { return c.OutOfSeqRequest }},
		"of a write": {write, func(_ *unreliablePair, x [][]byte) [][]byte { return x[:2] }, func(c *Counters) uint64 { return c.OutOfSeqRequest }},
		"turned":     {long, func(_ *unreliablePair, x [][]byte) [][]byte { return [][]byte{x[1], x[0], x[2]} }, func(c *Counters) uint64 { return c.DuplicateRequest }},
		"no receive": {long, func(p *unreliablePair, x [][]byte) [][]byte { p.b.recv.list = nil; return x }, func(c *Counters) uint64 { return c.DropNoReceive }},
		"no receive for the immediate": {write, func(p *unreliablePair, x [][]byte) [][]byte { p.b.recv.list = nil; return x },
			func(c *Counters) uint64 { return c.DropNoReceive }},
		"no key": {func(p *unreliablePair) *SendWR { w := write(p); w.RKey++; return w }, func(_ *unreliablePair, x [][]byte) [][]byte { return x },
			func(c *Counters) uint64 { return c.DropRequest }},
		"no access": {write, func(p *unreliablePair, x [][]byte) [][]byte { p.qb.attr.Access = 0; return x }, func(c *Counters) uint64 { return c.DropRequest }},
	} {
		t.Run(name, func(t *testing.T) {
			p := newUnreliablePair(t)
			p.b.postRecv(1, 0, 4096)
			packets := p.send(x.wr(p))
			one(t, p.qa)
			for _, packet := range x.spoil(p, packets) {
				p.arrive(packet)
			}
			none(t, p.qb)
			if len(p.b.recv.list) == 0 && !p.qb.rsp.holds {
				p.b.postRecv(1, 0, 4096)
			}
			copy(p.a.mem, "the next")
			for _, packet := range p.send(&SendWR{Opcode: abi.WRSend, SGE: p.a.sge(0, 300)}) {
				p.arrive(packet)
			}
			got := one(t, p.qb)
			require.Equal(t, Completion{ID: 1, Opcode: abi.WCRecv, ByteLen: 300, Recv: true}, got)
			require.Equal(t, "the next", string(p.b.mem[:8]))
			require.Positive(t, x.count(p.qb.Counters()))
			require.Equal(t, abi.QPSRTS, p.qb.State())
		})
	}
}

// TestUnreliableErrors: faults of this side end its queue pair, and flush.
func TestUnreliableErrors(t *testing.T) {
	for name, x := range map[string]struct {
		wr       func(*unreliablePair) *SendWR
		recv     ReceiveWR
		sent     abi.WCStatus
		received abi.WCStatus
	}{
		"READ": {func(p *unreliablePair) *SendWR {
			return &SendWR{Opcode: abi.WRRDMARead, SGE: p.a.sge(0, 8), RemoteAddr: p.b.va(0), RKey: p.b.key()}
		}, ReceiveWR{}, abi.WCLocQPOpErr, 0},
		"atomic": {func(p *unreliablePair) *SendWR {
			return &SendWR{Opcode: abi.WRAtomicFetchAndAdd, SGE: p.a.sge(0, 8), RemoteAddr: p.b.va(0), RKey: p.b.key()}
		}, ReceiveWR{}, abi.WCLocQPOpErr, 0},
		"SEND_WITH_INV": {func(p *unreliablePair) *SendWR { return &SendWR{Opcode: abi.WRSendWithInv} }, ReceiveWR{}, abi.WCLocQPOpErr, 0},
		"unknown":       {func(p *unreliablePair) *SendWR { return &SendWR{Opcode: 99} }, ReceiveWR{}, abi.WCLocQPOpErr, 0},
		"local key": {func(p *unreliablePair) *SendWR {
			return &SendWR{Opcode: abi.WRSend, SGE: []mem.SGE{{Addr: p.a.va(0), Length: 300, LKey: p.a.key() + 1}}}
		}, ReceiveWR{}, abi.WCLocProtErr, 0},
		"a short receive": {func(p *unreliablePair) *SendWR { return &SendWR{Opcode: abi.WRSend, SGE: p.a.sge(0, 300)} },
			ReceiveWR{ID: 9}, abi.WCSuccess, abi.WCLocLenErr},
		"a bad receive": {func(p *unreliablePair) *SendWR { return &SendWR{Opcode: abi.WRSend, SGE: p.a.sge(0, 300)} },
			ReceiveWR{ID: 9, Err: fmt.Errorf("bad")}, abi.WCSuccess, abi.WCLocQPOpErr},
		"a receive's key": {func(p *unreliablePair) *SendWR { return &SendWR{Opcode: abi.WRSend, SGE: p.a.sge(0, 300)} },
			ReceiveWR{ID: 9, SGE: []mem.SGE{{Length: 300, LKey: 77}}}, abi.WCSuccess, abi.WCLocProtErr},
	} {
		t.Run(name, func(t *testing.T) {
			p := newUnreliablePair(t)
			p.b.recv.list = []ReceiveWR{x.recv}
			packets := p.send(x.wr(p))
			require.Equal(t, x.sent, one(t, p.qa).Status)
			if x.sent != abi.WCSuccess {
				require.Equal(t, abi.QPSErr, p.qa.State())
				require.NoError(t, p.qa.Post(0, &SendWR{Opcode: abi.WRSend}))
				require.Equal(t, abi.WCWRFlushErr, one(t, p.qa).Status)
				return
			}
			for _, packet := range packets {
				p.arrive(packet)
			}
			got := one(t, p.qb)
			require.Equal(t, x.received, got.Status)
			require.Equal(t, uint64(9), got.ID)
			require.Equal(t, abi.QPSErr, p.qb.State())
		})
	}
}

// TestUnreliableSubsequence has networks lose, double and turn packets. A model
// says which messages come, from the PSNs that arrived alone: those whose
// packets came one after the other, the first of them beyond all before it.
func TestUnreliableSubsequence(t *testing.T) {
	for seed := range uint64(*networks) {
		r := rand.New(rand.NewPCG(seed, 3))
		p := newUnreliablePair(t)
		type packet struct {
			message, at, of int
			data            []byte
		}
		var net []packet
		const messages = 60
		for m := range messages {
			size := r.IntN(5 * 256)
			for i := range size {
				p.a.mem[i] = byte(m*31 + i)
			}
			wr := SendWR{Opcode: abi.WRSendWithImm, SGE: p.a.sge(0, size)}
			if r.IntN(3) == 0 {
				wr.Opcode, wr.RemoteAddr, wr.RKey = abi.WRRDMAWriteWithImm, p.b.va(64<<10+m*2048), p.b.key()
			}
			binary.BigEndian.PutUint32(wr.Imm[:], uint32(m))
			all := p.send(&wr)
			for i, data := range all {
				for range []int{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 0}[r.IntN(20)] {
					net = append(net, packet{m, i, len(all), data})
				}
			}
			one(t, p.qa)
		}
		for i := 1; i < len(net); i++ {
			if r.IntN(20) == 0 {
				net[i-1], net[i] = net[i], net[i-1]
			}
		}

		var want []int
		seen, inside := -1, -1 // the furthest packet; the message whose packets came so far
		for i := range messages {
			p.b.postRecv(uint64(i), 1<<19+i*2048, 2048)
		}
		next := -1 // number of the packet that continues the message
		for _, x := range net {
			p.arrive(x.data)
			n := x.message*8 + x.at
			if n <= seen {
				continue
			}
			seen = n
			switch {
			case x.at == 0:
				inside = x.message
			case n != next:
				inside = -1
			}
			next = n + 1
			if inside == x.message && x.at == x.of-1 {
				want = append(want, x.message)
				inside = -1
			}
		}
		var got []int
		var buf [messages]Completion
		for i, c := range buf[:p.qb.Completions(buf[:])] {
			require.Equal(t, abi.WCSuccess, c.Status)
			require.Equal(t, uint64(i), c.ID, "receives in order, none lost")
			m := int(binary.BigEndian.Uint32(c.Imm[:]))
			got = append(got, m)
			at := 1<<19 + i*2048
			if c.Opcode == abi.WCRecvRDMAWithImm {
				at = 64<<10 + m*2048
			}
			for k, x := range p.b.mem[at:][:c.ByteLen] {
				require.Equal(t, byte(m*31+k), x, "seed %d, message %d, byte %d", seed, m, k)
			}
		}
		require.Equal(t, want, got, "seed %d", seed)
		require.NotEmpty(t, got)
	}
}
