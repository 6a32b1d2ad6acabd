package device

import (
	"net/netip"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/verbs"
)

func gid(index int, addr string, kind abi.GIDType) verbs.GID {
	return verbs.GID{Index: index, Addr: netip.AddrFrom16(netip.MustParseAddr(addr).As16()), Type: kind}
}

func TestChooseGID(t *testing.T) {
	const v1, v2 = abi.GIDTypeRoCEv1, abi.GIDTypeRoCEv2
	local1, local2 := gid(0, "fe80::1", v1), gid(1, "fe80::1", v2)
	ip1, ip2 := gid(2, "10.0.0.1", v1), gid(3, "10.0.0.1", v2)
	global := gid(4, "2001:db8::1", v2)
	other := gid(5, "10.0.0.2", v2)
	for _, c := range []struct {
		table  []verbs.GID
		want   verbs.GID
		reason string
	}{
		{[]verbs.GID{local1, local2, ip1, ip2, global, other}, ip2, "RoCE v2, IPv4"},
		{[]verbs.GID{other, ip2}, other, "RoCE v2, IPv4"}, // of equals the first
		{[]verbs.GID{local1, local2, ip1, global}, global, "global IPv6"},
		{[]verbs.GID{local1, local2, ip1}, local2, "link-local"},
		{[]verbs.GID{local1, ip1}, ip1, "for want of a RoCE v2 entry"},
		{[]verbs.GID{local1}, local1, "for want of a RoCE v2 entry"},
	} {
		got, reason, err := ChooseGID(c.table, nil)
		require.NoError(t, err)
		require.Equal(t, c.want, got)
		require.Contains(t, reason, c.reason)
	}
	got, reason, err := ChooseGID([]verbs.GID{ip2, local2}, new(1))
	require.NoError(t, err)
	require.Equal(t, local2, got)
	require.Contains(t, reason, "asked for")
	_, _, err = ChooseGID([]verbs.GID{ip2}, new(7))
	require.ErrorIs(t, err, syscall.EINVAL)
	_, _, err = ChooseGID(nil, nil)
	require.ErrorIs(t, err, syscall.EADDRNOTAVAIL)
}
