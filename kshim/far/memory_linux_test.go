package far

import (
	"encoding/binary"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/mem"
	"github.com/rdmashim/rdmashim/tests/amount"
	"github.com/rdmashim/rdmashim/tests/must"
)

// TestEveryAlignment: bytes of every length, from every alignment on, before
// and across the border of two pages, are there as the program sees them, and
// none beside them changes.
func TestEveryAlignment(t *testing.T) {
	p := start(t)
	base := p.do("map 0 %d", 2*page)
	const around = 80
	from := base + page - around
	random := rand.NewChaCha8([32]byte{1})
	want, back := make([]byte, 2*around), make([]byte, 64)
	for off := range 64 + 9 {
		for n := 1; n <= 64; n++ {
			_, _ = random.Read(want[off+8:][:n])
			require.NoError(t, p.far.Write(from+uint64(off+8), want[off+8:][:n]))
			require.NoError(t, p.far.Read(back[:n], from+uint64(off+8)))
			require.Equal(t, want[off+8:][:n], back[:n])
		}
		require.Equal(t, want, p.show(from, uint64(len(want))), "offset %d", off)
	}
}

// TestLastWord: a program that waits for a message's last word finds all of it
// before, whatever it is made of.
func TestLastWord(t *testing.T) {
	p := start(t)
	base, rounds := p.do("map 0 %d", page), uint64(amount.Of(2000, 12_500))
	tab := mem.NewTable([32]byte{1})
	r, err := tab.Register(1, mem.Memory{Far: p.far, Addr: base, Len: page}, base, abi.AccessLocalWrite|abi.AccessRemoteWrite|abi.AccessRemoteRead)
	require.NoError(t, err)
	p.tell("watch %d %d", base, rounds)
	message, ack := make([]byte, bodySize), make([]byte, 8)
	for k := uint64(1); k <= rounds; k++ {
		for i := range bodySize - 8 {
			message[i] = byte(k)
		}
		binary.NativeEndian.PutUint64(message[bodySize-8:], k)
		require.NoError(t, tab.Write(1, r.Key(), base, message, true))
		for binary.NativeEndian.Uint64(ack) < k { // all ones: it has ended
			must.Get(tab.Read(1, r.Key(), base+ackAt, ack))(t)
			runtime.Gosched()
		}
	}
	require.Equal(t, "whole", p.line())
}

// TestWordsAreWhole: an aligned word appears at once.
func TestWordsAreWhole(t *testing.T) {
	p := start(t)
	base := p.do("map 0 %d", page)
	p.tell("toggle %d", base)
	enough, changes := uint64(amount.Of(2000, 12_500)), make([]byte, 8)
	word := make([]byte, 8)
	for binary.NativeEndian.Uint64(changes) < enough {
		for i := range word {
			word[i] = ^word[i]
		}
		require.NoError(t, p.far.Write(base, word))
		require.NoError(t, p.far.Read(changes, base+8))
	}
	binary.NativeEndian.PutUint64(word, 1)
	require.NoError(t, p.far.Write(base, word))
	require.Equal(t, "whole", p.line())
}

// TestAtomics: of eight writers' operations none is lost.
func TestAtomics(t *testing.T) {
	p := start(t)
	base := p.do("map 0 %d", page)
	tab := mem.NewTable([32]byte{1})
	r, err := tab.Register(1, mem.Memory{Far: p.far, Addr: base, Len: page}, 0, abi.AccessLocalWrite|abi.AccessRemoteWrite|abi.AccessRemoteAtomic)
	require.NoError(t, err)
	var lock sync.Mutex // the device's
	var writers sync.WaitGroup
	for range 8 {
		writers.Go(func() {
			for done := 0; done < 100; {
				lock.Lock()
				if _, err := tab.FetchAdd(1, r.Key(), 8, 1); err != nil {
					panic(err)
				}
				old, err := tab.CompareSwap(1, r.Key(), 16, uint64(done), uint64(done))
				lock.Unlock()
				if err != nil || old != 0 {
					panic("the comparison met another word")
				}
				done++
			}
		})
	}
	writers.Wait()
	require.EqualValues(t, 800, binary.NativeEndian.Uint64(p.show(base+8, 8)))
}

// missing is that no memory is there.
func missing(t *testing.T, m *Memory, addr uint64) {
	t.Helper()
	var b [8]byte
	require.ErrorIs(t, m.Read(b[:], addr), syscall.EFAULT)
	require.ErrorIs(t, m.Write(addr, b[:]), syscall.EFAULT)
	require.ErrorIs(t, m.Probe(addr, 8, false), syscall.EFAULT)
	require.ErrorIs(t, m.Probe(addr, 8, true), syscall.EFAULT)
	must.Fail(m.ReadString(addr, 100))(t, syscall.EFAULT)
}

// gone is that no memory is there nor will be.
func gone(t *testing.T, m *Memory) {
	t.Helper()
	missing(t, m, fixed)
	require.ErrorIs(t, m.Read(make([]byte, 1), fixed), ErrGone)
	require.ErrorIs(t, m.Write(fixed, make([]byte, 1)), ErrGone)
	require.ErrorIs(t, m.Probe(fixed, 1, true), ErrGone)
	require.ErrorIs(t, (&rest{fixed, 1, true}).scan(io.NewSectionReader(m.maps, 0, math.MaxInt64)), ErrGone)
}

// TestVanished: memory that was unmapped, all or its second page, gives EFAULT.
func TestVanished(t *testing.T) {
	p := start(t)
	base := p.do("map 0 %d", 2*page)
	b := make([]byte, 2*page)
	require.NoError(t, p.far.Write(base, b))
	p.do("unmap %d %d", base+page, page)
	require.ErrorIs(t, p.far.Read(b, base), syscall.EFAULT)
	require.ErrorIs(t, p.far.Write(base, b), syscall.EFAULT)
	require.ErrorIs(t, p.far.Write(base+page-4, b[:8]), syscall.EFAULT, "a word across the border")
	require.NoError(t, p.far.Write(base, b[:page]))
	p.do("unmap %d %d", base, page)
	missing(t, p.far, base)
}

// TestNoAddress: what no process has is refused, as are ranges that wrap.
func TestNoAddress(t *testing.T) {
	p := start(t)
	for _, addr := range []uint64{0, 1, leastPage - 1, 1<<47 - 1, 1 << 47, 1<<63 - 8, 1<<63 - 1, 1 << 63, 0xffff_8000_0000_0000, 0xffff_ffff_ff60_0000, ^uint64(0) - 7, ^uint64(0)} {
		missing(t, p.far, addr)
		require.NotErrorIs(t, p.far.Read(make([]byte, 1), addr), ErrGone)
		require.NotErrorIs(t, p.far.Write(addr, make([]byte, 1)), ErrGone)
	}
	require.ErrorIs(t, p.far.Probe(fixed, ^uint64(0), false), syscall.EFAULT)
	require.ErrorIs(t, p.far.Probe(fixed+1, ^uint64(0)-fixed, true), syscall.EFAULT)
}

// TestExecution: the program executes another one, which has the same number
// and memory at the same address. The memory of before has gone: neither is
// that of the new program read, nor is it written.
func TestExecution(t *testing.T) {
	p := start(t)
	old := must.Get(p.far.ReadString(fixed, 8))(t)
	require.Equal(t, "old", old)
	p.tell("execute")
	require.Equal(t, "ready", p.line())
	gone(t, p.far)
	require.Equal(t, "new\x00", string(p.show(fixed, 4)))
	p.open()
	name := must.Get(p.far.ReadString(fixed, 8))(t)
	require.Equal(t, "new", name)
}

// TestEnd: a process that has ended has no memory, before and after its parent
// has heard of it.
func TestEnd(t *testing.T) {
	p := start(t)
	require.NoError(t, p.Process.Kill())
	_, err := p.Out.ReadString('\n')
	require.ErrorIs(t, err, io.EOF) // files are closed after memory (do_exit)
	gone(t, p.far)
	_ = p.Wait()
	gone(t, p.far)
}

// TestClosed: a closed Memory has none.
func TestClosed(t *testing.T) {
	m := open(t, os.Getpid())
	require.NoError(t, m.Close())
	missing(t, m, fixed)
}

// TestReadString: a string may end where memory does.
func TestReadString(t *testing.T) {
	p := start(t)
	base := p.do("map 0 %d", 3*page)
	p.do("unmap %d %d", base+2*page, page)
	end := base + 2*page
	long := strings.Repeat("x", leastPage+10)
	for _, s := range []string{"", "a", "/dev/infiniband/uverbs0", long} {
		require.NoError(t, p.far.Write(end-uint64(len(s)+1), append([]byte(s), 0)))
		got := must.Get(p.far.ReadString(end-uint64(len(s)+1), 2*leastPage))(t)
		require.Equal(t, s, got)
	}
	require.NoError(t, p.far.Write(end-1, []byte("x")))
	_, err := p.far.ReadString(end-4, 100)
	require.ErrorIs(t, err, syscall.EFAULT, "no NUL, and the page behind is missing")
	must.Fail(p.far.ReadString(end-uint64(len(long)), leastPage))(t, syscall.ENAMETOOLONG)
}

// FuzzAddress: whatever a program names, it is read where Probe says so, or is
// EFAULT.
func FuzzAddress(f *testing.F) {
	p := start(f)
	f.Add(uint64(0), uint16(1), false)
	f.Add(uint64(fixed), uint16(4096), true)
	f.Add(uint64(fixed)+4095, uint16(2), true)
	f.Add(^uint64(0), uint16(8), false)
	f.Add(uint64(1)<<47-1, uint16(2), true)
	f.Fuzz(func(t *testing.T, addr uint64, n uint16, near bool) {
		if near { // the program's page
			addr = fixed - 1<<13 + addr%(1<<14)
		}
		b := make([]byte, int(n)+1)
		got, probed := p.far.Read(b, addr), p.far.Probe(addr, uint64(len(b)), false)
		for _, err := range []error{got, probed} {
			if err != nil && err != syscall.EFAULT { // nor ErrGone
				t.Fatal(err)
			}
		}
		if inside := addr-fixed < page && uint64(len(b)) <= page-(addr-fixed); inside && (got != nil || probed != nil) || probed == nil && got != nil && near {
			t.Fatalf("%d bytes at %#x: read %v, probe %v", len(b), addr, got, probed)
		}
		if _, err := p.far.ReadString(addr, len(b)); err != nil && err != syscall.EFAULT && err != syscall.ENAMETOOLONG {
			t.Fatal(err)
		}
	})
}
