package netlinkmgr

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

func gid(index int, addr string, kind GIDType) GID {
	a := netip.AddrFrom16(netip.MustParseAddr(addr).As16())
	return GID{Device: "rxe0", Port: 1, Index: index, GID: a, Type: kind, NetDev: "eth0", Scope: scopeOf(a)}
}

func eth0(list ...string) []NetDev { return []NetDev{dev(2, "eth0", "up", list...)} }

// TestBestGID holds the choice to UCX's order.
func TestBestGID(t *testing.T) {
	all := eth0("10.0.0.1/24", "10.0.0.2/24", "2001:db8::1/64", "fd00::1/64", "fe80::1/64")
	ll1, ll2 := gid(0, "fe80::1", GIDRoCEv1), gid(1, "fe80::1", GIDRoCEv2)
	g1, g2 := gid(2, "2001:db8::1", GIDRoCEv1), gid(3, "2001:db8::1", GIDRoCEv2)
	v1, v2 := gid(4, "10.0.0.1", GIDRoCEv1), gid(5, "10.0.0.1", GIDRoCEv2)
	ula, second := gid(6, "fd00::1", GIDRoCEv2), gid(7, "10.0.0.2", GIDRoCEv2)
	for _, c := range []struct {
		name string
		list []GID
		devs []NetDev
		best int // -1: none
		why  string
	}{
		{"v2 IPv4 before all", []GID{ll1, ll2, g1, g2, v1, v2, ula, second}, all, 5, "first in the order"},
		{"v2 global before link-local and v1 IPv4", []GID{ll1, ll2, g1, g2, v1}, all, 3, "no usable IPv4"},
		{"v2 link-local before v1", []GID{ll1, ll2, v1}, all, 1, "nothing routable"},
		{"v1 IPv4 before v1 others", []GID{ll1, g1, v1}, all, 4, "no usable RoCE v2"},
		{"the lower index among equals", []GID{second, v2}, all, 7, "first in the order"},
		{"none", nil, all, -1, ""},
		{"address gone", []GID{v2, ll2}, eth0("fe80::1/64"), 1, "nothing routable"},
		{"all addresses gone", []GID{v2, ll2}, eth0(), -1, ""},
		{"netdev elsewhere", []GID{v2}, nil, -1, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			judgeGIDs(c.list, c.devs)
			b := bestGID(c.list)
			if c.best < 0 {
				require.Nil(t, b)
			} else {
				require.NotNil(t, b)
				require.Equal(t, c.best, b.Index)
				require.Contains(t, b.Why, c.why)
			}
			for _, g := range c.list {
				require.NotEmpty(t, g.Why, "each entry says why")
			}
		})
	}
}

func TestUnusableGID(t *testing.T) {
	g := gid(0, "10.0.0.1", GIDRoCEv2)
	devs := eth0("10.0.0.1/24")
	ok, why := usableGID(&g, devs)
	require.True(t, ok, why)
	devs[0].Addrs[0].Tentative = true
	_, why = usableGID(&g, devs)
	require.Contains(t, why, "duplicate address detection")
	devs[0].Up = false
	_, why = usableGID(&g, devs)
	require.Contains(t, why, "down")
	g.NetDev = ""
	_, why = usableGID(&g, devs)
	require.Contains(t, why, "no network device")
}
