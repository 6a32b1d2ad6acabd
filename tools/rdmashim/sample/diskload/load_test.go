package diskload

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
)

// memory is a disk that counts how often each byte was written and read.
type memory struct {
	mu             sync.Mutex
	b              []byte
	wrote, read    []byte
	busy           int
	gate           chan struct{} // each command waits for an element; nil: none does
	fails          error
	before, passed int // commands before it fails
}

func newMemory(n int) *memory {
	return &memory{b: make([]byte, n), wrote: make([]byte, n), read: make([]byte, n)}
}

func (m *memory) ReadAt(_ context.Context, p []byte, off int64) error {
	return m.command(off, len(p), m.read, func(b []byte) { copy(p, b) })
}

func (m *memory) WriteAt(_ context.Context, p []byte, off int64) error {
	return m.command(off, len(p), m.wrote, func(b []byte) { copy(b, p) })
}

func (m *memory) command(off int64, n int, count []byte, do func(b []byte)) error {
	m.mu.Lock()
	m.busy++
	m.mu.Unlock()
	if m.gate != nil {
		<-m.gate
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.busy--
	if m.passed++; m.fails != nil && m.passed > m.before {
		return m.fails
	}
	for i := range n {
		count[off+int64(i)]++
	}
	do(m.b[off:][:n])
	return nil
}

// once is a count of each byte, which is 1.
func once(n int) []byte { return bytes.Repeat([]byte{1}, n) }

// TestWriteCheck: disks of all kinds of sizes are written once, in the bytes of
// Fill, and read once.
func TestWriteCheck(t *testing.T) {
	for _, c := range []struct{ bytes, block, most, workers int }{
		{512, 512, 128 << 10, 1},
		{4096 + 512, 512, 128 << 10, 3},
		{1<<20 + 512, 512, 128 << 10, 8},
		{3 << 20, 4096, 8 << 10, 8},
		{7 << 18, 4096, 1 << 20, 2},
	} {
		m := newMemory(c.bytes)
		var done atomic.Int64
		l := &Load{Disk: m, Bytes: int64(c.bytes), Block: c.block, Most: c.most, Workers: c.workers, Seed: 9, Done: func(n int) { done.Add(int64(n)) }}
		wrote := must.Get(l.Write(t.Context()))(t)
		read := must.Get(l.Check(t.Context()))(t)
		require.Equal(t, once(c.bytes), m.wrote, c)
		require.Equal(t, once(c.bytes), m.read, c)
		want := make([]byte, c.bytes)
		l.Fill(want, 0)
		require.Equal(t, want, m.b)
		require.EqualValues(t, c.bytes, wrote.Bytes)
		require.EqualValues(t, c.bytes, read.Bytes)
		require.Equal(t, done.Load(), wrote.Commands+read.Commands)
		require.Equal(t, wrote.Commands, wrote.Latency.TotalCount())
	}
}

// TestCheckFinds: a byte that changed, a block that lies elsewhere and bytes of
// another seed are found.
func TestCheckFinds(t *testing.T) {
	for name, spoil := range map[string]func(m *memory, l *Load){
		"byte":   func(m *memory, _ *Load) { m.b[len(m.b)-1] ^= 1 },
		"blocks": func(m *memory, _ *Load) { copy(m.b[:512], m.b[512:1024]) },
		"seed":   func(_ *memory, l *Load) { l.Seed++ },
	} {
		m := newMemory(1 << 20)
		l := &Load{Disk: m, Bytes: 1 << 20, Block: 512, Most: 64 << 10, Workers: 4}
		must.Get(l.Write(t.Context()))(t)
		spoil(m, l)
		s, err := l.Check(t.Context())
		require.ErrorContains(t, err, "wrong bytes", name)
		require.NotZero(t, s.Errors)
	}
}

// TestRandom: the workers draw places for the time asked, all of them at once,
// and no command reaches over the disk's end.
func TestRandom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(10 << 10)
		m.gate = make(chan struct{})
		l := &Load{Disk: m, Bytes: 10 << 10, Block: 512, Most: 4 << 10, Workers: 5}
		go func() { // five commands a millisecond, of virtual time
			tick := time.NewTicker(time.Millisecond)
			defer tick.Stop()
			for range 1000 {
				<-tick.C
				synctest.Wait()
				if m.busy != l.Workers {
					t.Errorf("%d commands outstanding", m.busy)
				}
				for range l.Workers {
					m.gate <- struct{}{}
				}
			}
		}()
		s := must.Get(l.Random(t.Context(), 3<<10, true, time.Second))(t)
		require.EqualValues(t, 5000, s.Commands)
		require.Equal(t, time.Second, s.Took)
		require.Equal(t, []byte{0, 0}, []byte{m.read[0], m.wrote[9<<10]})
		require.NotZero(t, m.wrote[9<<10-1])
		require.EqualValues(t, 5000, s.IOPS())
	})
}

// TestFails: a command that fails ends the load and is counted, as the end of
// the context does.
func TestFails(t *testing.T) {
	m := newMemory(1 << 20)
	m.fails, m.before = errors.New("broken"), 3
	l := &Load{Disk: m, Bytes: 1 << 20, Block: 512, Most: 4 << 10, Workers: 1}
	s, err := l.Write(t.Context())
	require.ErrorIs(t, err, m.fails)
	require.Equal(t, []int64{3, 1}, []int64{s.Commands, s.Errors})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	must.Fail(l.Check(ctx))(t, context.Canceled)
	_, err = l.Random(t.Context(), 2<<20, false, time.Second)
	require.ErrorContains(t, err, "smaller")
}
