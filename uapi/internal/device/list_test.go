package device

import (
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
)

func TestHostDevices(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"rxe0/parent":                     "eth0\n",
		"rxe0/node_guid":                  "5054:00ff:fe12:3456\n",
		"rxe0/ports/1/state":              "4: ACTIVE\n",
		"rxe0/ports/1/gids/0":             "fe80:0000:0000:0000:5054:00ff:fe12:3456\n",
		"rxe0/ports/1/gid_attrs/types/0":  "RoCE v2\n",
		"rxe0/ports/1/gid_attrs/ndevs/0":  "eth0\n",
		"rxe0/ports/1/gids/2":             "0000:0000:0000:0000:0000:0000:0000:0000\n",
		"rxe0/ports/1/gids/10":            "0000:0000:0000:0000:0000:ffff:0a00:0001\n",
		"rxe0/ports/1/gid_attrs/types/10": "RoCE v2\n",
		"rxe0/ports/1/gid_attrs/ndevs/10": "eth0\n",
		"strange/ports/1/gids/0":          "not a GID",
	} {
		path := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	list := hostDevices(root)
	require.Len(t, list, 2)
	rxe := list[0]
	require.Equal(t, "host:rxe0", rxe.Device)
	require.Equal(t, "ACTIVE", rxe.PortState)
	require.Equal(t, "eth0", rxe.NetDev)
	require.Equal(t, "10.0.0.1:4791", rxe.Address.String())
	require.Equal(t, []GID{
		{Index: 0, Addr: netip.MustParseAddr("fe80::5054:ff:fe12:3456"), Type: "RoCE v2", NetDev: "eth0"},
		{Index: 10, Addr: netip.MustParseAddr("10.0.0.1"), Type: "RoCE v2", NetDev: "eth0"},
	}, rxe.GIDs)
	require.Equal(t, 10, rxe.GIDIndex)
	require.Contains(t, rxe.GIDReason, "RoCE v2, IPv4")
	require.Equal(t, uint64(0x505400fffe123456), rxe.NodeGUID)
	require.Equal(t, "RXE", rxe.Driver)
	require.Empty(t, rxe.Notices)
	require.Empty(t, list[1].GIDs)
	require.Contains(t, list[1].Notices[0], "rdma_rxe")
	require.Empty(t, hostDevices(filepath.Join(root, "none")))
}

func TestSoftDeviceOn(t *testing.T) {
	up := &net.Interface{Name: "eth0", MTU: 1500, Flags: net.FlagUp}
	info, ok := softDeviceOn(up, &net.IPNet{IP: net.ParseIP("10.0.0.1"), Mask: net.CIDRMask(24, 32)})
	require.True(t, ok)
	require.Equal(t, []any{"soft:10.0.0.1", "10.0.0.1:4791", 1024, "ACTIVE"}, []any{info.Device, info.Address.String(), info.MTU, info.PortState})
	info, ok = softDeviceOn(&net.Interface{Name: "eth1", MTU: 9000}, &net.IPNet{IP: net.ParseIP("fe80::1"), Mask: net.CIDRMask(64, 128)})
	require.True(t, ok)
	require.Equal(t, []any{"soft:[fe80::1%eth1]", 4096, "DOWN"}, []any{info.Device, info.MTU, info.PortState})
	must.Get(Parse(info.Device))(t)
	_, ok = softDeviceOn(up, &net.UnixAddr{})
	require.False(t, ok)
}

func TestPathMTU(t *testing.T) {
	for mtu, want := range map[int]int{65536: 4096, 9000: 4096, 4176: 4096, 4175: 2048, 1500: 1024, 1280: 1024, 600: 512, 100: 256} {
		require.Equal(t, want, mtuForInterface(mtu), "interface MTU %d", mtu)
	}
}

// FuzzHostDevice reads a kernel device's attributes with any contents.
func FuzzHostDevice(f *testing.F) {
	f.Add("4: ACTIVE\n", "5054:00ff:fe12:3456\n", "eth0\n", "0", "::ffff:0a00:0001\n", "RoCE v2\n")
	f.Add("", ":::", "\x00", "-1", "fe80::1%x", "IB/RoCE v1")
	dir := f.TempDir() // one for all, which is much quicker
	for _, d := range []string{"ports/1/gids", "ports/1/gid_attrs/types", "ports/1/gid_attrs/ndevs"} {
		require.NoError(f, os.MkdirAll(filepath.Join(dir, d), 0o755))
	}
	f.Fuzz(func(t *testing.T, state, guid, parent, index, gid, kind string) {
		index = filepath.Base(filepath.Clean("/" + index))
		for name, text := range map[string]string{
			"ports/1/state": state, "node_guid": guid, "parent": parent,
			"ports/1/gids/" + index: gid, "ports/1/gid_attrs/types/" + index: kind, "ports/1/gids/1": gid,
		} {
			name = filepath.Join(dir, name)
			_ = os.WriteFile(name, []byte(text), 0o644) // but a name that cannot be a file's
			defer os.Remove(name)
		}
		info := hostDevice(dir, "rxe0")
		require.Equal(t, "host:rxe0", info.Device)
		for _, g := range info.GIDs {
			require.True(t, g.Addr.IsValid())
		}
	})
}
