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

// TestRegMRProbes holds the errnos measured for pages that are not there, or
// not writable.
func TestRegMRProbes(t *testing.T) {
	c := newClient(t, true)
	pd := c.pd()
	b := mmap(t, 3)
	addr, _ := c.f.Pin(b)
	page := uint64(pageSize)
	all := 3 * page
	_, err := c.mr(pd, addr, all, abi.AccessLocalWrite)
	require.NoError(t, err)

	middle := b[page : 2*page]
	require.NoError(t, syscall.Mprotect(middle, syscall.PROT_READ))
	_, err = c.mr(pd, addr, all, abi.AccessLocalWrite)
	require.ErrorIs(t, err, syscall.EFAULT, "read-only page, LOCAL_WRITE")
	_, err = c.mr(pd, addr+page-1, 2, abi.AccessLocalWrite)
	require.ErrorIs(t, err, syscall.EFAULT, "one byte of it")
	_, err = c.mr(pd, addr, page, abi.AccessLocalWrite)
	require.NoError(t, err, "the page before it")
	for _, access := range []abi.AccessFlags{0, abi.AccessRemoteRead} {
		_, err = c.mr(pd, addr, all, access)
		require.NoError(t, err, "read-only page, %v", access)
	}

	require.NoError(t, syscall.Mprotect(middle, syscall.PROT_NONE))
	_, err = c.mr(pd, addr, all, 0)
	require.ErrorIs(t, err, syscall.EFAULT, "page that cannot be read")
	_, err = c.mr(pd, addr+2*page, page, abi.AccessLocalWrite)
	require.NoError(t, err)
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
