//go:build linux || darwin

package uapi_test

import (
	"os"
	"runtime"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/uapitest"
)

// page maps a page of memory that is not Go's.
func page(t *testing.T, prot int) []byte {
	t.Helper()
	mem, err := syscall.Mmap(-1, 0, os.Getpagesize(), prot, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	require.NoError(t, err)
	return mem
}

func TestRegisterReadOnlyMemory(t *testing.T) {
	t.Parallel()
	a, b := uapitest.Pair(t, "")
	x, y := uapitest.Connect(t, a, b)
	mem := page(t, syscall.PROT_READ)
	_, err := x.RegMR(mem, uapi.AccessLocalWrite)
	require.ErrorIs(t, err, syscall.EFAULT)
	mr, _ := mustMR(t, x.Context, mem, 0)
	y.Buf[0] = 1
	x.Must(x.PostWrite(x.QP, mr, 0, x.Peer.Addr, x.Peer.RKey, 100))
	require.NoError(t, x.Next(1)[0].Err())
	require.Zero(t, y.Buf[0])
	require.NoError(t, x.DeregMR(mr))
	require.NoError(t, syscall.Munmap(mem))
}

func TestRegisterMemoryThatIsNotThere(t *testing.T) {
	a, _ := uapitest.Pair(t, "")
	mem := page(t, syscall.PROT_READ|syscall.PROT_WRITE)
	require.NoError(t, syscall.Munmap(mem))
	_, err := a.RegMR(mem, uapi.AccessLocalWrite)
	require.ErrorIs(t, err, syscall.EFAULT)
	_, err = a.RegMR(mem, 0)
	require.ErrorIs(t, err, syscall.EFAULT)
}

// A mapping that vanishes while it is registered fails requests, not the
// process.
func TestMemoryVanishes(t *testing.T) {
	a, b := uapitest.Pair(t, "")
	x, y := uapitest.Connect(t, a, b)
	mem := page(t, syscall.PROT_READ|syscall.PROT_WRITE)
	mr, info := mustMR(t, y.Context, mem, uapi.AccessLocalWrite|uapi.AccessRemoteWrite)
	require.NoError(t, syscall.Munmap(mem))
	x.Must(x.PostWrite(x.QP, x.MR, 0, info.Addr, info.RKey, 8))
	require.Equal(t, uapi.WCRemOpErr, x.Next(1)[0].Status)
	require.NoError(t, y.DeregMR(mr))
}

func TestMemoryVanishesLocally(t *testing.T) {
	a, b := uapitest.Pair(t, "")
	x, _ := uapitest.Connect(t, a, b)
	mem := page(t, syscall.PROT_READ|syscall.PROT_WRITE)
	mr, _ := mustMR(t, x.Context, mem, uapi.AccessLocalWrite)
	require.NoError(t, syscall.Munmap(mem))
	x.Must(x.PostWrite(x.QP, mr, 0, x.Peer.Addr, x.Peer.RKey, 8))
	require.Equal(t, uapi.WCLocProtErr, x.Next(1)[0].Status)
}

// TestRegisteredMemoryIsNotTouched: memory of Alloc costs a registered region
// no page before there is data: the ring of a silent connection is cheap.
func TestRegisteredMemoryIsNotTouched(t *testing.T) {
	if runtime.GOOS != "linux" {
		return
	}
	t.Parallel()
	c, err := uapi.Open("soft?port=0")
	require.NoError(t, err)
	defer c.Close()
	mem, err := uapi.Alloc(5 << 20) // an arena of its own, where nothing was before
	require.NoError(t, err)
	mr, err := c.RegMR(mem, uapi.AccessLocalWrite|uapi.AccessRemoteWrite)
	require.NoError(t, err)
	require.Zero(t, resident(t, mem))
	mem[0] = 1
	require.NotZero(t, resident(t, mem))
	require.NoError(t, c.DeregMR(mr))
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
