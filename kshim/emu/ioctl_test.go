package emu

import (
	"net/netip"
	"syscall"
	"testing"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/stretchr/testify/require"
)

func TestIoctlHeader(t *testing.T) {
	c := newClient(t, true)
	alloc := func() []byte {
		return argument(abi.ObjectDevice, abi.MethodInvokeWrite,
			attr(abi.AttrWriteCmd, 8, uint64(abi.CmdAllocPD)), attr(abi.AttrCoreIn, 8, 0), attr(abi.AttrCoreOut, 4, c.addr))
	}
	require.NoError(t, c.ioctl(alloc()))
	require.ErrorIs(t, c.f.Ioctl(alloc()), syscall.EFAULT, "not announced")
	for n := range abi.IoctlHdrSize {
		require.ErrorIs(t, c.ioctl(alloc()[:n]), syscall.EFAULT, "%d bytes", n)
	}
	for n := abi.IoctlHdrSize; n < len(alloc()); n++ {
		require.ErrorIs(t, c.ioctl(alloc()[:n]), syscall.EFAULT, "%d bytes", n)
	}
	for name, x := range map[string]struct {
		change func(b []byte)
		errno  syscall.Errno
	}{
		"length":           {func(b []byte) { b[0]++ }, syscall.EINVAL},
		"num_attrs":        {func(b []byte) { b[6]++ }, syscall.EINVAL},
		"both, too long":   {func(b []byte) { le.PutUint16(b, 24+16*255); le.PutUint16(b[6:], 255) }, syscall.EINVAL},
		"both, beyond":     {func(b []byte) { le.PutUint16(b, 24+16*4); le.PutUint16(b[6:], 4) }, syscall.EFAULT},
		"object":           {func(b []byte) { b[2] = 1 }, syscall.EPROTONOSUPPORT},
		"method":           {func(b []byte) { b[4] = 9 }, syscall.EPROTONOSUPPORT},
		"reserved1":        {func(b []byte) { b[15] = 1 }, syscall.EPROTONOSUPPORT},
		"reserved2":        {func(b []byte) { b[20] = 1 }, syscall.EPROTONOSUPPORT},
		"driver":           {func(b []byte) { b[16] = 18 }, syscall.EINVAL}, // measured
		"unknown attr":     {func(b []byte) { b[24] = 77 }, syscall.EPROTONOSUPPORT},
		"unknown optional": {func(b []byte) { b[24] = 77; b[24+4] = 0 }, syscall.EINVAL}, // the command is missing then
		"attr data":        {func(b []byte) { b[24+6] = 1 }, syscall.EINVAL},
		"twice":            {func(b []byte) { copy(b[40:56], b[24:40]) }, syscall.EINVAL},
		"short constant":   {func(b []byte) { b[24+2] = 4 }, syscall.EINVAL},
		"short request":    {func(b []byte) { b[40+2] = 4 }, syscall.ENOSPC},
		"tiny request":     {func(b []byte) { b[40+2] = 3 }, syscall.EINVAL},
	} {
		b := alloc()
		x.change(b)
		require.ErrorIs(t, c.ioctl(b), x.errno, name)
	}
	// A kernel ignores an attribute that it does not know, if the client does
	// not insist.
	extra := attr(0x55, 8, 1)
	extra.Flags = 0
	require.NoError(t, c.ioctl(argument(abi.ObjectDevice, abi.MethodInvokeWrite, attr(abi.AttrWriteCmd, 8, uint64(abi.CmdAllocPD)),
		extra, attr(abi.AttrCoreIn, 8, 0), attr(abi.AttrCoreOut, 4, c.addr))))
	require.ErrorIs(t, c.ioctl(argument(abi.ObjectDevice, abi.MethodQueryContext)), syscall.EOPNOTSUPP, "as measured on rxe")
}

func TestQueryGIDEntry(t *testing.T) {
	c := newClient(t, true)
	query := func(port, index uint64, size int, flags uint64) error {
		return c.ioctl(argument(abi.ObjectDevice, abi.MethodQueryGIDEntry,
			attr(abi.AttrQueryGIDEntryPort, size, port), attr(abi.AttrQueryGIDEntryGIDIndex, size, index),
			attr(abi.AttrQueryGIDEntryFlags, 4, flags), attr(abi.AttrQueryGIDEntryRespEntry, 32, c.addr)))
	}
	require.NoError(t, query(1, 0, 8, 0))
	gid := netip.AddrFrom16([16]byte(c.page[:16]))
	require.Equal(t, "::ffff:10.0.0.1", gid.String())
	require.Equal(t, []uint32{0, 1, 2, 1}, []uint32{le.Uint32(c.page[16:]), le.Uint32(c.page[20:]), le.Uint32(c.page[24:]), le.Uint32(c.page[28:])},
		"index, port, type RoCE v2, ifindex")
	require.ErrorIs(t, query(1, 1, 8, 0), abi.ENODATA)
	require.ErrorIs(t, query(1, 8, 8, 0), syscall.EINVAL)
	require.ErrorIs(t, query(0, 0, 8, 0), syscall.EINVAL)
	require.ErrorIs(t, query(2, 0, 8, 0), syscall.EINVAL)
	require.ErrorIs(t, query(257, 0, 8, 0), syscall.EINVAL)
	require.ErrorIs(t, query(1<<32, 0, 8, 0), syscall.EINVAL)
	require.ErrorIs(t, query(1, 0, 4, 0), syscall.EINVAL, "measured: 8 bytes")
	require.ErrorIs(t, query(1, 0, 8, 1), syscall.EINVAL)
}

func TestQueryGIDTable(t *testing.T) {
	c := newClient(t, true)
	query := func(entry uint64, room int) error {
		for i := range c.page {
			c.page[i] = 0xa5
		}
		return c.ioctl(argument(abi.ObjectDevice, abi.MethodQueryGIDTable,
			attr(abi.AttrQueryGIDTableEntrySize, 8, entry), attr(abi.AttrQueryGIDTableFlags, 4, 0),
			attr(abi.AttrQueryGIDTableRespEntries, room, c.addr), attr(abi.AttrQueryGIDTableRespNumEntries, 8, c.addr+2048)))
	}
	for _, entry := range []int{32, 16, 40} {
		require.NoError(t, query(uint64(entry), 3*entry))
		require.Equal(t, uint64(2), le.Uint64(c.page[2048:]))
		require.Equal(t, "::ffff:10.0.0.1", netip.AddrFrom16([16]byte(c.page[:16])).String())
		require.Equal(t, "fe80::1", netip.AddrFrom16([16]byte(c.page[entry:entry+16])).String())
		if entry >= 32 {
			require.Equal(t, uint32(3), le.Uint32(c.page[entry+16:]), "index")
		}
		require.Zero(t, c.page[3*entry-1], "cleared")
		require.Equal(t, byte(0xa5), c.page[3*entry])
	}
	require.ErrorIs(t, query(32, 32), syscall.EINVAL, "room for one of two")
	require.ErrorIs(t, query(32, 65), syscall.EINVAL)
	require.ErrorIs(t, query(32, 0), syscall.EINVAL)
	require.ErrorIs(t, query(0, 64), syscall.EINVAL)
	require.ErrorIs(t, query(1<<33, 64), syscall.EINVAL)
	none := newClient(t, false)
	c.f = none.f
	arg := argument(abi.ObjectDevice, abi.MethodQueryGIDTable,
		attr(abi.AttrQueryGIDTableEntrySize, 8, 32), attr(abi.AttrQueryGIDTableRespEntries, 64, none.addr),
		attr(abi.AttrQueryGIDTableRespNumEntries, 8, none.addr+2048))
	require.ErrorIs(t, none.ioctl(arg), syscall.EINVAL, "before GET_CONTEXT")
}
