package netlinkmgr

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
)

func dev(index int, name string, flags string, list ...string) NetDev {
	has := func(s string) bool { return strings.Contains(flags, s) }
	d := NetDev{Index: index, Name: name, Kind: "device", Ethernet: !has("tun"), Up: has("up"), Carrier: has("up") && !has("nocarrier"), Default: has("default"), Physical: has("card"), Loopback: has("lo")}
	for _, s := range list {
		d.Addrs = append(d.Addrs, NetAddr{Prefix: netip.MustParsePrefix(s)})
	}
	return d
}

func TestChooseFree(t *testing.T) {
	for _, c := range []struct {
		name string
		devs []NetDev
		want string
		says string
	}{
		{"an address before a default route", []NetDev{dev(1, "a", "up default card"), dev(2, "b", "up", "10.0.0.1/8")}, "b", "a: ranks lower"},
		{"IPv4 before IPv6", []NetDev{dev(1, "a", "up default card", "fd00::1/64"), dev(2, "b", "up", "10.0.0.1/8")}, "b", ""},
		{"global before link-local", []NetDev{dev(1, "a", "up card", "fe80::1/64"), dev(2, "b", "up", "fd00::1/64")}, "b", "has an IPv6 address"},
		{"up before down", []NetDev{dev(1, "a", "card default", "10.0.0.1/8"), dev(2, "b", "up", "10.0.0.2/8")}, "b", ""},
		{"the default route's", []NetDev{dev(1, "a", "up card", "10.0.0.1/8"), dev(2, "b", "up default", "10.0.0.2/8")}, "b", ""},
		{"a card before a bridge", []NetDev{dev(1, "a", "up", "10.0.0.1/8"), dev(2, "b", "up card", "10.0.0.2/8")}, "b", ""},
		{"the first among equals", []NetDev{dev(1, "a", "up card", "10.0.0.1/8"), dev(2, "b", "up card", "10.0.0.2/8")}, "a", ""},
		{"a down one, for want of others", []NetDev{dev(1, "lo", "up lo"), dev(2, "b", "")}, "b", "down, has no routable address"},
		{"none", []NetDev{dev(1, "lo", "up lo"), dev(2, "wg0", "up tun", "10.0.0.1/8"), dev(3, "br0", "up nocarrier", "10.0.0.1/8")}, "", "lo: loopback; wg0: it is no Ethernet device; br0: no carrier"},
		{"nothing at all", nil, "", "(none)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := choose(EnsureOptions{}, c.devs, nil)
			if c.want == "" {
				require.ErrorAs(t, err, new(*NoNetDevError))
				require.Contains(t, err.Error(), c.says)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.want, got.dev.Name)
			require.Contains(t, got.reason, c.says)
			require.Nil(t, got.link)
		})
	}
}

func TestChooseBesideHardware(t *testing.T) {
	devs := []NetDev{dev(1, "mlx", "up card default", "10.0.0.1/8"), dev(2, "b", "up", "10.0.0.2/8")}
	ports := []portOf{{Port: Port{Device: "mlx5_0", Port: 1, NetDev: "mlx"}}}
	c := must.Get(choose(EnsureOptions{}, devs, ports))(t)
	require.Equal(t, "b", c.dev.Name, "hardware is not shadowed unasked")
	require.Contains(t, c.reason, "the RDMA device mlx5_0 is on it")
	c = must.Get(choose(EnsureOptions{NetDev: "mlx"}, devs, ports))(t)
	require.Nil(t, c.link)
}

func TestChooseActiveLink(t *testing.T) {
	devs := []NetDev{dev(1, "a", "up"), dev(2, "b", "up", "10.0.0.2/8")}
	active, down := PortActive, PortState(1)
	ports := []portOf{
		{Port{Device: "rxe0", NetDev: "a", State: &down}, true},
		{Port{Device: "rxe1", NetDev: "b", State: &active}, true},
		{Port{Device: "rxe2", NetDev: "elsewhere", State: &active}, true},
	}
	c := must.Get(choose(EnsureOptions{}, devs, ports))(t)
	require.Equal(t, "rxe1", c.link.Device)
	c = must.Get(choose(EnsureOptions{Name: "rxe0"}, devs, ports))(t)
	require.Equal(t, "rxe0", c.link.Device)
	c = must.Get(choose(EnsureOptions{}, devs, ports[:1]))(t)
	require.Equal(t, "rxe0", c.link.Device, "one that is down serves when there is no other")
}
