//go:build linux || darwin

package trace

import (
	"syscall"
	"testing"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/stretchr/testify/require"
)

// TestVanishedMemory: a mapping that has gone, which the kernel answers with
// EFAULT, is no crash here.
func TestVanishedMemory(t *testing.T) {
	_, f, out := traced(t)
	m, err := syscall.Mmap(-1, 0, 4096, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	require.NoError(t, err)
	addr, _ := f.Pin(m)
	require.NoError(t, syscall.Mprotect(m, syscall.PROT_NONE)) // unmapping it would let another test's memory come there
	defer func() { require.NoError(t, syscall.Munmap(m)) }()
	_, err = f.Write(m[:16])
	require.NoError(t, err)
	require.Equal(t, "write(3, memory that cannot be read) = 16", out.take())
	require.NoError(t, f.Ioctl(m[:64]))
	require.Equal(t, "ioctl(3, memory that cannot be read) = 0", out.take())
	_, _ = f.Write(writeCmd(abi.CmdAllocPD, &abi.AllocPD{Response: addr}, 8, 4))
	require.Equal(t, "write(3, ALLOC_PD {}) = 16 response not in announced memory", out.take())
}
