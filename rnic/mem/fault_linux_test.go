package mem

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
)

// Memory that its owner takes away (SIGSEGV; protected rather than unmapped, so
// that no other memory gets the addresses), or whose file is cut short
// (SIGBUS), gives ErrFault for every way in and out.
func TestVanishedMapping(t *testing.T) {
	page := os.Getpagesize()
	for name, vanish := range map[string]func(t *testing.T) []byte{
		"protected": func(t *testing.T) []byte {
			m, err := syscall.Mmap(-1, 0, 2*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
			require.NoError(t, err)
			t.Cleanup(func() { _ = syscall.Munmap(m) })
			require.NoError(t, syscall.Mprotect(m, syscall.PROT_NONE))
			return m
		},
		"truncated": func(t *testing.T) []byte {
			f := must.Get(os.Create(filepath.Join(t.TempDir(), "f")))(t)
			defer f.Close()
			require.NoError(t, f.Truncate(int64(2*page)))
			m, err := syscall.Mmap(int(f.Fd()), 0, 2*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
			require.NoError(t, err)
			t.Cleanup(func() { _ = syscall.Munmap(m) })
			require.NoError(t, f.Truncate(0))
			return m
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := vanish(t)
			tab := NewTable([32]byte{1})
			r := must.Get(tab.Register(1, Near(m), 0x10000, allAccess))(t)
			list := []SGE{{0x10000, uint32(len(m)), r.Key()}}
			buf := make([]byte, 200)
			require.Equal(t, ErrFault, tab.Write(1, r.Key(), 0x10000, buf, true))
			require.Equal(t, ErrFault, tab.Write(1, r.Key(), 0x10000, buf[:8], true))
			require.Equal(t, ErrFault, tab.Write(1, r.Key(), 0x10000, buf[:4], true))
			require.Equal(t, ErrFault, read(tab, 1, r.Key(), 0x10000, buf))
			require.Equal(t, ErrFault, tab.Scatter(1, list, 3, buf, false))
			require.Equal(t, ErrFault, gather(tab, 1, list, 3, buf))
			r.SetTag(t)
			src, tag, at := tab.Locate(1, list, 3, 200)
			require.Equal(t, []any{any(t), uint64(3)}, []any{tag, at})
			require.False(t, Readable(src))
			long := make([]byte, len(m)-3) // summed while it is copied
			require.Equal(t, ErrFault, read(tab, 1, r.Key(), 0x10000, long))
			require.Equal(t, ErrFault, gather(tab, 1, list, 3, long))
			_, err := tab.FetchAdd(1, r.Key(), 0x10000, 1)
			require.Equal(t, ErrFault, err)
			_, err = tab.CompareSwap(1, r.Key(), 0x10000, 0, 1)
			require.Equal(t, ErrFault, err)
		})
	}
}

// Memory that has become read-only gives ErrFault for a write.
func TestReadOnlyMapping(t *testing.T) {
	m, err := syscall.Mmap(-1, 0, os.Getpagesize(), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	require.NoError(t, err)
	defer func() { _ = syscall.Munmap(m) }()
	require.NoError(t, syscall.Mprotect(m, syscall.PROT_READ))
	tab := NewTable([32]byte{1})
	r := must.Get(tab.Register(1, Near(m), 0x10000, allAccess))(t)
	buf := make([]byte, 200)
	for _, n := range []int{200, 8, 4, 3} {
		require.Equal(t, ErrFault, tab.Write(1, r.Key(), 0x10000, buf[:n], true), "%d bytes", n)
	}
	_, err = tab.FetchAdd(1, r.Key(), 0x10000, 1)
	require.Equal(t, ErrFault, err)
	_, err = tab.CompareSwap(1, r.Key(), 0x10000, 0, 1)
	require.Equal(t, ErrFault, err)
	require.NoError(t, read(tab, 1, r.Key(), 0x10000, buf))
	require.Equal(t, make([]byte, 200), buf)
}
