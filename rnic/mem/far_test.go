package mem

import (
	"bytes"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// farBytes is a Far that bytes of the test stand for. It lies elsewhere in its
// process, but as they do within a page.
type farBytes struct {
	b      []byte
	at     uint64
	writes []SGE // all there were, if it is not nil
	gone   bool
}

// farCopy returns b as far memory.
func farCopy(b []byte) Memory {
	f := newFar(b)
	return Memory{Far: f, Addr: f.at, Len: uint64(len(b))}
}

func newFar(b []byte) *farBytes {
	return &farBytes{b: b, at: 0x7fff_0000_0000 | uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b))))&0xfff}
}

// piece is n bytes at addr, or nil.
func (f *farBytes) piece(addr uint64, n int) []byte {
	off := addr - f.at
	if size := uint64(len(f.b)); f.gone || off > size || uint64(n) > size-off {
		return nil
	}
	return f.b[off : off+uint64(n)]
}

func (f *farBytes) Read(dst []byte, addr uint64) error {
	src := f.piece(addr, len(dst))
	if src == nil {
		return syscall.EFAULT
	}
	copyBytes(dst, src)
	return nil
}

func (f *farBytes) Write(addr uint64, src []byte) error {
	dst := f.piece(addr, len(src))
	if dst == nil {
		return syscall.EFAULT
	}
	copyBytes(dst, src)
	if f.writes != nil {
		f.writes = append(f.writes, SGE{Addr: addr, Length: uint32(len(src))})
	}
	return nil
}

// nearAndFar runs a test on regions of both kinds of memory.
func nearAndFar(t *testing.T, test func(*testing.T, func([]byte) Memory)) {
	t.Run("near", func(t *testing.T) { test(t, Near) })
	t.Run("far", func(t *testing.T) { test(t, farCopy) })
}

// TestFarLastWord: for every alignment and length all bytes arrive, each once,
// and the last aligned word comes last, by a write of its own, where copyIn
// puts it. What does not end a message is one write.
func TestFarLastWord(t *testing.T) {
	backing := make([]uint64, 32)
	all := unsafe.Slice((*byte)(unsafe.Pointer(&backing[0])), 256)
	src := bytes.Repeat([]byte{0xff}, 80)
	for off := range 9 {
		for n := 1; n < 80; n++ {
			clear(all)
			f := newFar(all[:128])
			f.writes = []SGE{}
			m := Memory{Far: f, Addr: f.at, Len: 128}
			require.NoError(t, m.writeFar(uint64(off), src[:n], true))
			require.Equal(t, src[:n], all[off:off+n])
			require.Zero(t, bytes.Count(all, []byte{0xff})-n)
			total := 0
			for _, w := range f.writes {
				total += int(w.Length)
			}
			require.Equal(t, n, total, "no byte is written twice")
			if at, size := lastWord(all[off : off+n]); size > 0 {
				require.Equal(t, SGE{Addr: f.at + uint64(off+at), Length: uint32(size)}, f.writes[len(f.writes)-1])
			}
			f.writes = []SGE{}
			require.NoError(t, m.writeFar(uint64(off), src[:n], false))
			require.Equal(t, []SGE{{Addr: f.at + uint64(off), Length: uint32(n)}}, f.writes)
		}
	}
}

// TestFarMemory: far memory is never lent, faults where it has gone, and a
// comparison that fails writes nothing, which could undo a write of its
// process.
func TestFarMemory(t *testing.T) {
	tab, buf := NewTable([32]byte{1}), make([]byte, 64)
	f := newFar(buf)
	f.writes = []SGE{}
	r, err := tab.Register(1, Memory{Far: f, Addr: f.at, Len: 64}, 0x1000, allAccess)
	require.NoError(t, err)
	list := []SGE{{0x1000, 64, r.Key()}}
	r.SetTag(t)
	src, tag, _ := tab.Locate(1, list, 0, 64)
	require.Nil(t, src)
	require.Nil(t, tag)
	old, err := tab.CompareSwap(1, r.Key(), 0x1008, 1, 2)
	require.NoError(t, err)
	require.Zero(t, old)
	require.Empty(t, f.writes)
	f.gone = true
	require.Equal(t, ErrFault, tab.Write(1, r.Key(), 0x1000, buf, true))
	require.Equal(t, ErrFault, read(tab, 1, r.Key(), 0x1000, buf))
	require.Equal(t, ErrFault, tab.Scatter(1, list, 3, buf[:8], false))
	require.Equal(t, ErrFault, tab.ScatterWord(1, list, 8))
	require.Equal(t, ErrFault, gather(tab, 1, list, 3, buf[:8]))
	_, err = tab.FetchAdd(1, r.Key(), 0x1000, 1)
	require.Equal(t, ErrFault, err)
	_, err = tab.CompareSwap(1, r.Key(), 0x1000, 0, 1)
	require.Equal(t, ErrFault, err)
}
