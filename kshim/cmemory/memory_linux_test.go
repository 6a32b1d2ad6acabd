package cmemory

import (
	"os"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// mapped is the address of two pages, the second of which nothing may touch.
func mapped(t *testing.T, prot int) (mem []byte, addr, page uint64) {
	t.Helper()
	page = uint64(os.Getpagesize())
	mem, err := unix.Mmap(-1, 0, 2*int(page), prot, unix.MAP_PRIVATE|unix.MAP_ANON)
	require.NoError(t, err)
	t.Cleanup(func() { _ = unix.Munmap(mem) })
	require.NoError(t, unix.Mprotect(mem[page:], unix.PROT_NONE))
	return mem, uint64(uintptr(unsafe.Pointer(unsafe.SliceData(mem)))), page
}

func TestSlice(t *testing.T) {
	mem, addr, page := mapped(t, unix.PROT_READ|unix.PROT_WRITE)
	got := Slice(addr, page)
	require.Len(t, got, int(page))
	got[3] = 7
	require.Equal(t, byte(7), mem[3])
	for _, c := range []struct{ addr, n uint64 }{
		{0, 8}, {bottom - 1, 8}, {addr, 0}, {top - 4, 8}, {addr, 1 << 63}, {^uint64(0), 8}, {heapFrom, 8}, {heapFrom - 1, 2}, {heapTo - 1, 1},
	} {
		require.Nil(t, Slice(c.addr, c.n), "%#x, %d", c.addr, c.n)
	}
}

func TestProbe(t *testing.T) {
	_, addr, page := mapped(t, unix.PROT_READ|unix.PROT_WRITE)
	require.NoError(t, Probe(nil, true))
	require.NoError(t, Probe(Slice(addr+1, page-1), true))
	require.NoError(t, peekPages(uintptr(addr), uintptr(addr+page), uintptr(page)))
	require.ErrorIs(t, Probe(Slice(addr+page-1, 2), false), syscall.EFAULT)
	require.ErrorIs(t, peekPages(uintptr(addr), uintptr(addr+2*page), uintptr(page)), syscall.EFAULT)
	_, addr, page = mapped(t, unix.PROT_READ)
	require.NoError(t, Probe(Slice(addr, page), false))
	if populates() {
		require.ErrorIs(t, Probe(Slice(addr, page), true), syscall.EFAULT)
	}
}

func TestGuard(t *testing.T) {
	_, addr, page := mapped(t, unix.PROT_READ|unix.PROT_WRITE)
	seen := byte(1)
	require.NoError(t, Guard(func() { seen = Slice(addr, 1)[0] }))
	require.Zero(t, seen)
	require.ErrorIs(t, Guard(func() { seen = Slice(addr+page, 1)[0] }), syscall.EFAULT)
	require.Panics(t, func() { _ = Guard(func() { panic("no fault") }) })
}
