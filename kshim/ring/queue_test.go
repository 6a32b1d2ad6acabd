package ring

import (
	"encoding/binary"
	"math/rand/v2"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
)

// TestNewRoundsAsRXE holds sizes against those seen on Linux 6.1.
func TestNewRoundsAsRXE(t *testing.T) {
	for _, c := range []struct {
		name           string
		elem, n        int
		wantElem, mask int
		log2           uint32
	}{
		{"cq", CQElemSize, 8, 128, 15, 7},
		{"sq of 8 with inline 220", first(SendCap(1, 220)), 8, 512, 15, 9},
		{"sq of 64 with 1 sge", first(SendCap(1, 0)), 64, 256, 127, 8},
		{"rq of 2 sge", RecvElemSize(2), 1, 128, 1, 7},
		{"rq of 1 sge", RecvElemSize(1), 15, 64, 15, 6},
		{"sq of 32 sge", first(SendCap(32, 0)), 15, 1024, 15, 10},
		{"tiny element", 1, 3, 64, 3, 6},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := must.Get(New(c.elem, c.n))(t)
			require.Equal(t, c.wantElem, q.ElemSize())
			require.Equal(t, c.mask, q.Cap())
			m := q.Mapping()
			require.Zero(t, len(m)%4096)
			require.Zero(t, uintptr(unsafe.Pointer(&m[0]))%8)
			require.GreaterOrEqual(t, len(m), 384+(c.mask+1)*c.wantElem)
			require.Equal(t, c.log2, binary.LittleEndian.Uint32(m[0:]))
			require.EqualValues(t, c.mask, binary.LittleEndian.Uint32(m[4:]))
			must.Get(Open(m))(t)
		})
	}
}

func first(n, _, _ int) int { return n }

func TestSendCapAsRXE(t *testing.T) {
	for _, c := range []struct{ sge, inline, wantElem, wantSGE, wantInline int }{
		{1, 0, 224, 1, 16},
		{1, 220, 428, 13, 220},
		{32, 0, 720, 32, 512},
		{1, 512, 720, 32, 512},
	} {
		e, s, i := SendCap(c.sge, c.inline)
		require.Equal(t, [3]int{c.wantElem, c.wantSGE, c.wantInline}, [3]int{e, s, i})
	}
}

func TestNewRefusesNonsense(t *testing.T) {
	for _, c := range [][2]int{{0, 1}, {-1, 1}, {64, 0}, {64, -1}, {1 << 20, 1}, {64, 1 << 24}, {1 << 16, 1 << 20}} {
		must.Fail(New(c[0], c[1]))(t, syscall.EINVAL, "%v", c)
	}
}

func TestOpenRefusesHostileHeaders(t *testing.T) {
	q := must.Get(New(128, 8))(t)
	good := q.Mapping()
	for n := range 384 {
		must.Fail(Open(good[:n]))(t, ErrMapping)
	}
	must.Fail(Open(good[:384+16*128-1]))(t, ErrMapping)
	must.Get(Open(good[:384+16*128]))(t)
	must.Fail(Open(good[1:]))(t, ErrMapping, "unaligned")
	for _, h := range [][2]uint32{
		{0, 15}, {5, 15}, {17, 15}, {31, 15}, {32, 15}, {0xffffffff, 15}, {8, 15},
		{7, 0}, {7, 14}, {7, 16}, {7, 31}, {7, 0x7fffffff}, {7, 0xffffffff}, {7, 0xfffffffe},
	} {
		m := make([]byte, len(good))
		binary.LittleEndian.PutUint32(m[0:], h[0])
		binary.LittleEndian.PutUint32(m[4:], h[1])
		_, err := Open(m)
		require.ErrorIs(t, err, ErrMapping, "%#x", h)
		require.ErrorIs(t, err, syscall.EINVAL)
	}
}

func TestGeometryIsReadOnce(t *testing.T) {
	q := must.Get(New(64, 3))(t)
	clear(q.Mapping()[:8]) // the other side plays with the header
	require.Equal(t, 3, q.Cap())
	require.Len(t, q.Producer().Slot(1<<30), 64)
}

func TestProducerConsumer(t *testing.T) {
	q := must.Get(New(64, 3))(t)
	other := must.Get(Open(q.Mapping()))(t)
	p, c := q.Producer(), other.Consumer()
	for round := range byte(50) {
		free := must.Get(p.Free())(t)
		require.Equal(t, 3, free)
		for i := range 3 {
			p.Slot(i)[0] = 3*round + byte(i)
		}
		ready := must.Get(c.Ready())(t)
		require.Zero(t, ready, "nothing published yet")
		p.Publish(2)
		p.Publish(1)
		free, _ = p.Free()
		require.Zero(t, free)
		ready = must.Get(c.Ready())(t)
		require.Equal(t, 3, ready)
		for i := range 3 {
			require.Equal(t, 3*round+byte(i), c.Slot(i)[0])
		}
		c.Release(3)
	}
}

// TestReset: as seen on Linux 6.1, the indices stay where the producer left
// them.
func TestReset(t *testing.T) {
	q := must.Get(New(64, 3))(t)
	m := q.Mapping()
	p, c := q.Producer(), q.Consumer()
	p.Publish(3)
	c.Release(1)
	c.Reset()
	p.Reset()
	ready, _ := c.Ready()
	free, _ := p.Free()
	require.Equal(t, []int{0, 3}, []int{ready, free})
	require.EqualValues(t, 3, binary.LittleEndian.Uint32(m[128:]))
	require.EqualValues(t, 3, binary.LittleEndian.Uint32(m[256:]))
	p.Slot(0)[0] = 77
	p.Publish(1)
	require.EqualValues(t, 77, c.Slot(0)[0])

	binary.LittleEndian.PutUint32(m[128:], 4) // beyond the ring
	c.Reset()
	p.Reset()
	ready = must.Get(c.Ready())(t)
	free = must.Get(p.Free())(t)
	require.Equal(t, []int{0, 3}, []int{ready, free})
}

func TestIndicesAreNotTrusted(t *testing.T) {
	q := must.Get(New(64, 3))(t)
	m := q.Mapping()
	p, c := q.Producer(), q.Consumer()
	for _, bad := range []uint32{4, 5, 1 << 31, 0xffffffff} {
		binary.LittleEndian.PutUint32(m[128:], bad)
		must.Fail(c.Ready())(t, ErrIndex)
		binary.LittleEndian.PutUint32(m[256:], bad)
		must.Fail(p.Free())(t, ErrIndex)
		_, err := Open(m)
		require.NoError(t, err, "indices are judged when used")
		require.Len(t, q.Producer().Slot(0), 64)
		require.Len(t, q.Consumer().Slot(0), 64)
	}
	binary.LittleEndian.PutUint32(m[128:], 2)
	p.Publish(1) // does not start from a value that the other side wrote over our index
	require.EqualValues(t, 1, binary.LittleEndian.Uint32(m[128:]))
}

// TestTwoSides passes work requests between goroutines; under -race it shows
// that the indices order the slots.
func TestTwoSides(t *testing.T) {
	q := must.Get(New(first(SendCap(2, 0)), 8))(t)
	const total = 20000
	var wg sync.WaitGroup
	wg.Go(func() {
		p := q.Producer()
		for id := uint64(0); id < total; {
			free, err := p.Free()
			if err != nil {
				t.Error(err)
				return
			}
			n := min(free, 1+int(id%5), int(total-id))
			for i := range n {
				wr := SendWR{Opcode: 0, RemoteAddr: id + uint64(i), SGE: []SGE{{Addr: id + uint64(i), Length: 1}}}
				if err := encodeSend(p.Slot(i), id+uint64(i), &wr); err != nil {
					t.Error(err)
					return
				}
			}
			p.Publish(n)
			id += uint64(n)
			if n == 0 {
				runtime.Gosched()
			}
		}
	})
	c := q.Consumer()
	var w SendWQE
	for id := uint64(0); id < total; {
		n := must.Get(c.Ready())(t)
		for i := range n {
			require.NoError(t, w.Decode(c.Slot(i)))
			require.Equal(t, []uint64{id, id, id}, []uint64{w.WR.ID, w.WR.RemoteAddr, w.WR.SGE[0].Addr})
			id++
		}
		c.Release(n)
		if n == 0 {
			runtime.Gosched()
		}
	}
	wg.Wait()
}

// TestSlotThatChangesWhileRead scribbles over a slot during Decode: the result
// holds together.
func TestSlotThatChangesWhileRead(t *testing.T) {
	q := must.Get(New(first(SendCap(4, 0)), 2))(t)
	slot := q.Producer().Slot(0)
	require.NoError(t, encodeSend(slot, 1, &SendWR{SGE: []SGE{{Length: 4}, {Length: 5}}}))
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { scribble(slot, stop) })
	var w SendWQE
	good := 0
	for range 20000 {
		if w.Decode(slot) != nil {
			continue
		}
		good++
		var n uint32
		for _, e := range w.WR.SGE {
			n += e.Length
		}
		require.Equal(t, w.Length, n+uint32(len(w.WR.Inline)))
	}
	close(stop)
	wg.Wait()
	t.Logf("%d of 20000 were whole", good)
}

//go:norace
func scribble(slot []byte, stop <-chan struct{}) {
	r := rand.New(rand.NewPCG(1, 2))
	for {
		select {
		case <-stop:
			return
		default:
		}
		off := []int{12, 16, 184, 188, 196, 208 + 8, 224 + 8}[r.IntN(7)]
		slot[off] = byte(r.IntN(16))
	}
}
