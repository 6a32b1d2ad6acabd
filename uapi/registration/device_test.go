package registration

import (
	"net/netip"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/uapi"
)

// TestKernelDevice: the device is the one of the kernel that has the address as
// a RoCE v2 GID, and its port is up. The errors say what there is.
func TestKernelDevice(t *testing.T) {
	gids := func(typ uapi.GIDType, addrs ...string) (list []uapi.GID) {
		for i, a := range addrs {
			list = append(list, uapi.GID{Index: i + 1, Addr: netip.MustParseAddr(a), Type: typ})
		}
		return list
	}
	devices := []uapi.DeviceInfo{
		{Name: "soft0", Device: "soft:10.0.0.1", Kind: "soft", PortState: "ACTIVE", GIDs: gids("RoCE v2", "10.0.0.1")},
		{Name: "old0", Device: "host:old0", Kind: "host", PortState: "ACTIVE", GIDs: gids("IB/RoCE v1", "10.0.0.1")},
		{Name: "rxe0", Device: "host:rxe0", Kind: "host", PortState: "ACTIVE", GIDs: gids("RoCE v2", "fe80::1", "10.0.0.2", "10.0.0.2")},
		{Name: "rxe1", Device: "host:rxe1", Kind: "host", PortState: "DOWN", NetDev: "eth1", GIDs: gids("RoCE v2", "10.0.0.3")},
	}
	d, err := kernelDevice(devices, netip.MustParseAddr("10.0.0.2"))
	require.NoError(t, err)
	require.Equal(t, "host:rxe0", d.Device)
	require.Equal(t, 2, d.GIDIndex)

	_, err = kernelDevice(devices, netip.MustParseAddr("10.0.0.1"))
	require.ErrorIs(t, err, syscall.ENODEV)
	require.ErrorContains(t, err, "old0 (), rxe0 (fe80::1 10.0.0.2), rxe1 (10.0.0.3)")
	_, err = kernelDevice(devices[:1], netip.MustParseAddr("10.0.0.1"))
	require.ErrorIs(t, err, syscall.ENODEV)
	_, err = kernelDevice(devices, netip.MustParseAddr("10.0.0.3"))
	require.ErrorIs(t, err, syscall.ENETDOWN)
	require.ErrorContains(t, err, "host:rxe1")
	require.ErrorContains(t, err, "eth1")
}
