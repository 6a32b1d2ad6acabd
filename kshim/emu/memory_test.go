package emu

import (
	"math/rand/v2"
	"runtime"
	"strconv"
	"syscall"
	"testing"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/fault"
	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/kerneltest"
	"github.com/rdmashim/rdmashim/tests/must"
)

func TestPin(t *testing.T) {
	m := newUserMemory()
	defer m.drop()
	addr, release := m.Pin(nil)
	require.Zero(t, addr)
	release()

	b := make([]byte, 100, 200)
	at, releaseAll := m.Pin(b)
	in, releaseIn := m.Pin(b[40:60])
	same, releaseSame := m.Pin(b)
	require.Equal(t, at, same)
	require.Equal(t, at+40, in)
	b[50] = 7
	require.Equal(t, byte(7), m.Slice(at+50, 1)[0])
	require.Len(t, m.Slice(at, 100), 100)
	require.Nil(t, m.Slice(at, 101), "beyond the length, though not the capacity")
	require.Nil(t, m.Slice(at-1, 2))
	require.Nil(t, m.Slice(at, 0))
	require.Nil(t, m.Slice(at, 1<<64-1), "wraps around")
	require.Equal(t, 5, cap(m.Slice(at, 5)), "nothing can be appended")

	releaseAll()
	releaseAll()
	require.NotNil(t, m.Slice(at, 100), "announced twice, withdrawn once")
	releaseSame()
	require.Nil(t, m.Slice(at, 100))
	require.NotNil(t, m.Slice(in, 20))
	require.Nil(t, m.Slice(in, 21))
	releaseIn()
	require.Nil(t, m.Slice(in, 1))
	require.Nil(t, m.ranges.Load())
}

// TestPinModel compares lookups among random, overlapping ranges with a search
// of all of them.
func TestPinModel(t *testing.T) {
	const seed = 1
	rng := rand.New(rand.NewPCG(seed, 0))
	m := newUserMemory()
	defer m.drop()
	arena := make([]byte, 4096)
	base := address(arena)
	type ann struct {
		lo, hi  uint64
		release func()
	}
	var live []ann
	for range 3000 {
		if len(live) > 0 && rng.IntN(5) < 2 {
			i := rng.IntN(len(live))
			live[i].release()
			live = append(live[:i], live[i+1:]...)
		} else {
			lo := rng.IntN(4095)
			hi := min(lo+1+rng.IntN(1<<rng.IntN(12)), 4096)
			addr, release := m.Pin(arena[lo:hi])
			require.Equal(t, base+uint64(lo), addr)
			live = append(live, ann{uint64(lo), uint64(hi), release})
		}
		for range 5 {
			lo, n := uint64(rng.IntN(4096)), uint64(1+rng.IntN(64))
			want := false
			for _, a := range live {
				want = want || a.lo <= lo && lo+n <= a.hi
			}
			got := m.Slice(base+lo, n)
			require.Equal(t, want, got != nil, "seed %d", seed)
			if want {
				require.Same(t, &arena[lo], &got[0])
			}
		}
	}
	for _, a := range live {
		a.release()
	}
	require.Nil(t, m.ranges.Load())
}

// TestPinCostsLogarithm: the cost of Pin, its release and a lookup hardly grows
// with the number of ranges. Bytes allocated are counted, since they are the
// copies, and steps, not time.
func TestPinCostsLogarithm(t *testing.T) {
	m := newUserMemory()
	defer m.drop()
	arena := make([]byte, 40_000*64)
	next := 0
	fill := func(n int) {
		for ; next < n; next++ {
			m.Pin(arena[next*64:][:64])
		}
	}
	cost := func() uint64 {
		const rounds = 200
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for i := range rounds {
			_, release := m.Pin(arena[i*(next/rounds)*64+8:][:16])
			release()
		}
		runtime.ReadMemStats(&after)
		return (after.TotalAlloc - before.TotalAlloc) / rounds
	}
	fill(1000)
	few := cost()
	fill(40_000)
	many := cost()
	t.Logf("bytes for a Pin and its release: %d among 1,000 ranges, %d among 40,000", few, many)
	require.Less(t, many, 3*few, "40 times as many ranges")
	require.Less(t, depth(m.ranges.Load()), 80, "a random treap of 40,000 is some 37 deep")
}

func depth(t *rangeTree) int {
	if t == nil {
		return 0
	}
	return 1 + max(depth(t.left), depth(t.right))
}

// BenchmarkPin is a Pin and its release beside ranges that stay.
func BenchmarkPin(b *testing.B) {
	for _, n := range []int{1000, 40_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			m := newUserMemory()
			defer m.drop()
			arena := make([]byte, n*64)
			for i := range n {
				m.Pin(arena[i*64:][:64])
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				_, release := m.Pin(arena[i%n*64+8:][:16])
				release()
			}
		})
	}
}

// TestPinDropped: a process that is forgotten without Exit, with memory
// announced and registered, must not make the runtime panic about leaked pins.
func TestPinDropped(t *testing.T) {
	func() {
		m := newUserMemory()
		m.Pin(make([]byte, 64))
		addr, release := m.Pin(make([]byte, 64))
		_, pin, err := m.hold(addr, 64)
		require.NoError(t, err)
		require.NotNil(t, pin)
		release()
	}()
	for range 4 {
		runtime.GC()
	}
}

func TestRegionHoldsMemory(t *testing.T) {
	c := newClient(t, true)
	pd := c.pd()
	buf := make([]byte, 10000)
	addr, release := c.f.Pin(buf)
	r := must.Get(c.mr(pd, addr+1, 9000, abi.AccessLocalWrite|abi.AccessRemoteRead))(t)
	release()
	must.Fail(c.mr(pd, addr+1, 9000, 0))(t, syscall.EFAULT, "no longer announced")
	mr := c.f.(*uverbsFile).handles.get(r.MRHandle).body.(*region)
	require.Equal(t, 1, mr.pin.users)
	fake := mr.mr.(*kerneltest.MR)
	require.Same(t, &buf[1], &fake.Mem.Bytes[0])
	require.Len(t, fake.Mem.Bytes, 9000)
	require.Equal(t, addr+1, fake.IOVA)
	must.Get(c.do(abi.CmdDeregMR, &abi.DeregMR{MRHandle: r.MRHandle}, 0))(t)
	require.Zero(t, mr.pin.users)
}

// TestProbeKeeps: looking whether memory can be written changes none of it.
func TestProbeKeeps(t *testing.T) {
	buf := make([]byte, 3*4096+5)
	for i := range buf {
		buf[i] = byte(i * 7)
	}
	for _, r := range [][2]int{{0, len(buf)}, {1, 2}, {3, 4}, {4093, 4099}, {4095, 4096}, {4097, len(buf)}} {
		must.Get(probe(buf[r[0]:r[1]], true))(t)
		must.Get(probe(buf[r[0]:r[1]], false))(t)
	}
	for i := range buf {
		require.Equal(t, byte(i*7), buf[i])
	}
}

// TestFaultedPasses: only faults in user memory are swallowed.
func TestFaultedPasses(t *testing.T) {
	require.Panics(t, func() {
		_ = fault.Copy(nil, []byte{1})
	})
}
