//go:build linux || darwin

package emu

import (
	"syscall"
	"testing"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/stretchr/testify/require"
)

func mmap(t *testing.T, pages int) []byte {
	b, err := syscall.Mmap(-1, 0, pages*int(pageSize), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	require.NoError(t, err)
	t.Cleanup(func() { _ = syscall.Munmap(b) })
	return b
}

// TestVanishedBuffers: memory that is announced but gone is EFAULT, not a
// crash.
func TestVanishedBuffers(t *testing.T) {
	c := newClient(t, true)
	b := mmap(t, 1)
	addr, _ := c.f.Pin(b)
	require.NoError(t, syscall.Mprotect(b, syscall.PROT_NONE))
	_, err := c.do(abi.CmdAllocPD, &abi.AllocPD{Response: addr}, 4)
	require.ErrorIs(t, err, syscall.EFAULT)
	_, err = c.do(abi.CmdGetContext, &abi.GetContext{Response: addr}, 8)
	require.Error(t, err)
	_, err = c.do(abi.CmdCreateCompChannel, &abi.CreateCompChannel{Response: addr}, 4)
	require.ErrorIs(t, err, syscall.EFAULT)
	_, err = c.do(abi.CmdCreateCQ, &abi.CreateCQ{Response: addr, CQE: 1, CompChannel: -1}, 24)
	require.ErrorIs(t, err, syscall.EFAULT)
	require.Empty(t, c.dev.Live, "what the client cannot learn of is destroyed")
	_, err = c.f.Write(b)
	require.Error(t, err)
	arg := argument(abi.ObjectDevice, abi.MethodInvokeWrite,
		attr(abi.AttrWriteCmd, 8, uint64(abi.CmdRegMR)), attr(abi.AttrCoreIn, abi.RegMRSize, addr), attr(abi.AttrCoreOut, 12, c.addr))
	require.ErrorIs(t, c.ioctl(arg), syscall.EFAULT, "a request that lies there")
}
