package emu

import (
	"net/netip"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

// newCMHost is a connection manager's file in a process of a host.
func newCMHost(t *testing.T, bed *cmBed) *cmHost {
	h := newFakeHost()
	p := bed.m.ProcessOf(h, "test")
	t.Cleanup(p.Exit)
	f, err := p.Open("/dev/infiniband/rdma_cm")
	require.NoError(t, err)
	return &cmHost{t: t, h: h, p: p, f: f.(*ucmFile)}
}

// bindIB binds an id to a struct sockaddr_ib.
func (c *cmHost) bindIB(id uint32, addr string, service uint64, size uint16) error {
	req := abi.UCMBind{ID: id, AddrSize: size}
	req.Addr.SetGID(netip.MustParseAddr(addr).As16(), 0xffff, service, ^uint64(0))
	return c.do(abi.UCMCmdBind, &req, abi.UCMBindSize, 0)
}

func (c *cmHost) query(id uint32, option abi.UCMQueryOption, out int) error {
	clear(c.h.arena[:out])
	return c.do(abi.UCMCmdQuery, &abi.UCMQuery{Response: address(c.h.arena), ID: id, Option: option}, abi.UCMQuerySize, out)
}

// TestCMAddressIB: an id binds to the wildcard address of InfiniBand and a
// service id of its port space, as librdmacm does to learn whether it may.
func TestCMAddressIB(t *testing.T) {
	bed := newCMBed(t)
	c := newCMHost(t, bed)
	const tcp = uint64(abi.UCMPSTCP) << 16
	create := abi.UCMCreateID{UID: 1, Response: address(c.h.arena), PS: abi.UCMPSIB, QPType: abi.QPTRC}
	require.NoError(t, c.do(abi.UCMCmdCreateID, &create, abi.UCMCreateIDSize, 4))
	id := le.Uint32(c.h.arena)
	require.ErrorIs(t, c.bindIB(id, "::", tcp, abi.SockaddrIn6Size), syscall.EINVAL)
	require.ErrorIs(t, c.bindIB(id, "::", 0x1000000, abi.SockaddrIBSize), syscall.EPROTONOSUPPORT)
	require.ErrorIs(t, c.bindIB(id, "::ffff:10.0.0.1", tcp, abi.SockaddrIBSize), syscall.ENODEV)
	require.NoError(t, c.bindIB(id, "::", tcp|77, abi.SockaddrIBSize))
	require.NoError(t, c.query(id, abi.UCMQueryAddr, abi.UCMQueryAddrRespSize))
	var resp abi.UCMQueryAddrResp
	require.NoError(t, resp.Parse(c.h.arena))
	require.Equal(t, tcp|77, resp.SrcAddr.Service())
	require.ErrorIs(t, c.bindIB(c.create(2), "::", tcp|77, abi.SockaddrIBSize), syscall.EADDRNOTAVAIL)
}

// TestCMQueryPath: a route has one path record once it is resolved, if there is
// room for it.
func TestCMQueryPath(t *testing.T) {
	bed := newCMBed(t)
	c := newCMHost(t, bed)
	paths := func(id uint32, out int) (n uint32) {
		t.Helper()
		require.NoError(t, c.query(id, abi.UCMQueryPath, out))
		return le.Uint32(c.h.arena)
	}
	const most = abi.UCMQueryPathRespSize + 6*abi.UCMPathRecSize
	id := c.create(1)
	require.Zero(t, paths(id, most))
	req := abi.UCMResolveAddr{ID: id, DstSize: abi.SockaddrInSize}
	_, err := req.DstAddr.Set(netip.MustParseAddrPort("10.0.0.2:7"))
	require.NoError(t, err)
	require.NoError(t, c.do(abi.UCMCmdResolveAddr, &req, abi.UCMResolveAddrSize, 0))
	require.Zero(t, paths(id, most))
	require.NoError(t, c.do(abi.UCMCmdResolveRoute, &abi.UCMResolveRoute{ID: id}, abi.UCMResolveRouteSize, 0))
	require.Equal(t, uint32(1), paths(id, most-6*abi.UCMPathRecSize), "no room")
	require.Equal(t, uint32(1), paths(id, most))
	clear(c.h.arena)
	// Older Linux (6.1.176) wants a byte more (ucma.c: ucma_query_path).
	require.Equal(t, uint32(1), paths(id, abi.UCMQueryPathRespSize+abi.UCMPathRecSize))
	var path abi.UCMPathRec
	require.NoError(t, path.Parse(c.h.arena[abi.UCMQueryPathRespSize:]))
	require.Equal(t, uint32(0x2b), path.Flags)
	require.Equal(t, netip.MustParseAddr("10.0.0.2").As16(), [16]byte(path.PathRec[8:24]))
	require.True(t, netip.MustParseAddr("::ffff:10.0.0.1") == netip.AddrFrom16([16]byte(path.PathRec[24:40])) ||
		netip.MustParseAddr("::ffff:10.0.0.2") == netip.AddrFrom16([16]byte(path.PathRec[24:40])))
	require.Equal(t, []byte{0xff, 0xff}, path.PathRec[50:52])
	require.ErrorIs(t, c.query(id, abi.UCMQueryOption(9), most), syscall.ENOSYS)
}

// TestCMClass: librdmacm finds the version of the connection manager.
func TestCMClass(t *testing.T) {
	bed := newCMBed(t)
	text, err := bed.m.all.readAttribute("/sys/class/misc/rdma_cm/abi_version")
	require.NoError(t, err)
	require.Equal(t, "4\n", text)
}
