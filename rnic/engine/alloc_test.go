package engine

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/engine/path"
	"github.com/rdmashim/rdmashim/rnic/mem"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// fastPair moves packets between two queue pairs without the test network's
// copies.
type fastPair struct {
	n   *network
	b   *Batch
	pkt wire.Packet
	wcs [64]Completion
}

func newFastPair(t testing.TB, mtu abi.MTU) *fastPair {
	return &fastPair{b: NewBatch(64), n: newPair(t, cfg{mtu: mtu, edit: func(_ int, c *Config) {
		c.Paths, c.Stash = path.NewSet(0, nil), NewStash()
	}})}
}

func (f *fastPair) move(from, to *host) bool {
	f.b.Reset()
	from.qp.Transmit(f.n.now, f.b)
	for i := range f.b.Packets {
		p := &f.b.Packets[i]
		// Head and payload lie apart; the payload is lent. Lengths here are
		// multiples of four, so there is no pad.
		if f.pkt.Parse(p.Head) != nil {
			panic("headers")
		}
		f.pkt.Payload = p.Payload
		to.qp.Receive(f.n.now, from.addr.Addr(), &f.pkt)
	}
	return len(f.b.Packets) > 0
}

// run exchanges packets until both are done; it returns how many requests of a
// completed.
func (f *fastPair) run() int {
	f.n.now += 1000
	for f.move(f.n.a, f.n.b) || f.move(f.n.b, f.n.a) {
		f.move(f.n.b, f.n.a)
	}
	f.n.b.qp.Completions(f.wcs[:])
	return f.n.a.qp.Completions(f.wcs[:])
}

// Nothing is allocated for a packet or a work request.
func TestNoAllocations(t *testing.T) {
	f := newFastPair(t, abi.MTU4096)
	a, b := f.n.a, f.n.b
	list, word := a.sge(0, 40_960), a.sge(0, 8)
	recv := b.sge(0, 40_960)
	wrs := []SendWR{
		{Opcode: abi.WRRDMAWrite, SGE: list, RKey: b.key(), RemoteAddr: b.va(0)},
		{Opcode: abi.WRRDMAWriteWithImm, SGE: list, RKey: b.key(), RemoteAddr: b.va(0)},
		{Opcode: abi.WRSend, SGE: list},
		{Opcode: abi.WRSend, Flags: abi.SendInline, Inline: make([]byte, 32)},
		{Opcode: abi.WRRDMARead, SGE: list, RKey: b.key(), RemoteAddr: b.va(0)},
		{Opcode: abi.WRAtomicFetchAndAdd, SGE: word, RKey: b.key(), RemoteAddr: b.va(0)},
	}
	once := func() {
		for range 3 {
			b.recv.list = append(b.recv.list, ReceiveWR{SGE: recv})
		}
		for i := range wrs {
			if a.qp.Post(f.n.now, &wrs[i]) != nil {
				panic("post")
			}
		}
		if f.run() != len(wrs) {
			panic("not completed")
		}
	}
	once()
	require.Zero(t, testing.AllocsPerRun(100, once))
}

// The memory of a queue pair beside its rings.
func TestMemoryPerQP(t *testing.T) {
	size := unsafe.Sizeof(QP{}) + 16*unsafe.Sizeof(replay{}) + 16*unsafe.Sizeof(ask{}) + 32*unsafe.Sizeof(mem.SGE{})
	require.Less(t, size, uintptr(8<<10))
	t.Logf("%d bytes with 16 READs each way", size)
}

func BenchmarkWrite(b *testing.B) {
	for _, c := range []struct {
		name string
		mtu  abi.MTU
		len  int
	}{{"8", abi.MTU4096, 8}, {"4096", abi.MTU4096, 4096}, {"1M", abi.MTU4096, 1 << 20}, {"1M/1024", abi.MTU1024, 1 << 20}} {
		b.Run(c.name, func(b *testing.B) {
			f := newFastPair(b, c.mtu)
			wr := SendWR{Opcode: abi.WRRDMAWrite, SGE: f.n.a.sge(0, c.len), RKey: f.n.b.key(), RemoteAddr: f.n.b.va(0)}
			b.SetBytes(int64(c.len))
			b.ReportAllocs()
			for b.Loop() {
				if f.n.a.qp.Post(f.n.now, &wr) != nil || f.run() != 1 {
					b.Fatal("not completed")
				}
			}
		})
	}
}

func BenchmarkRead1M(b *testing.B) {
	f := newFastPair(b, abi.MTU4096)
	wr := SendWR{Opcode: abi.WRRDMARead, SGE: f.n.a.sge(0, 1<<20), RKey: f.n.b.key(), RemoteAddr: f.n.b.va(0)}
	b.SetBytes(1 << 20)
	b.ReportAllocs()
	for b.Loop() {
		if f.n.a.qp.Post(f.n.now, &wr) != nil || f.run() != 1 {
			b.Fatal("not completed")
		}
	}
}
