//go:build linux || darwin

package uapi_test

import (
	"os"
	"runtime"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/uapitest"
)

// page maps a page of memory that is not Go's.
func page(t *testing.T, prot int) []byte {
	t.Helper()
	return must.Get(syscall.Mmap(-1, 0, os.Getpagesize(), prot, syscall.MAP_ANON|syscall.MAP_PRIVATE))(t)
}

// A mapping that vanishes while it is registered fails requests, the peer's and
// this side's, and not the process.
func TestMemoryVanishes(t *testing.T) {
	a, b := uapitest.Pair(t, "")
	mem := page(t, syscall.PROT_READ|syscall.PROT_WRITE)
	there, info := mustMR(t, b, mem, uapi.AccessLocalWrite|uapi.AccessRemoteWrite)
	here, _ := mustMR(t, a, mem, uapi.AccessLocalWrite)
	require.NoError(t, syscall.Munmap(mem))
	x, _ := uapitest.Connect(t, a, b)
	x.Must(x.PostWrite(x.QP, x.MR, 0, info.Addr, info.RKey, 8))
	require.Equal(t, uapi.WCRemOpErr, x.NextUnchecked(1)[0].Status)
	x, _ = uapitest.Connect(t, a, b)
	x.Must(x.PostWrite(x.QP, here, 0, x.Peer.Addr, x.Peer.RKey, 8))
	require.Equal(t, uapi.WCLocProtErr, x.NextUnchecked(1)[0].Status)
	require.NoError(t, b.DeregMR(there))
}

// TestRegisteredMemoryIsNotTouched: memory of Alloc costs a registered region
// no page before there is data: the ring of a silent connection is cheap.
func TestRegisteredMemoryIsNotTouched(t *testing.T) {
	if runtime.GOOS != "linux" {
		return
	}
	t.Parallel()
	d := openDevice(t, "soft?port=0")
	mem := must.Get(uapi.Alloc(5 << 20))(t) // an arena of its own, where nothing was before
	mr := must.Get(d.RegMR(mem, uapi.AccessLocalWrite|uapi.AccessRemoteWrite))(t)
	require.Zero(t, resident(t, mem))
	mem[0] = 1
	require.NotZero(t, resident(t, mem))
	require.NoError(t, d.DeregMR(mr))
	require.NoError(t, uapi.Free(mem))
}

// resident is how many pages of mem there are.
func resident(t *testing.T, mem []byte) (n int) {
	t.Helper()
	pages := make([]byte, len(mem)/os.Getpagesize())
	_, _, errno := syscall.Syscall(syscall.SYS_MINCORE, uintptr(unsafe.Pointer(&mem[0])), uintptr(len(mem)), uintptr(unsafe.Pointer(&pages[0])))
	require.Zero(t, errno)
	for _, p := range pages {
		n += int(p & 1)
	}
	return n
}
