package doctor

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/netlinkmgr"
	"github.com/rdmashim/rdmashim/uapi"
)

// TestGIDChoice: the GID that would be opened is not the usable one, or not
// RoCE v2.
func TestGIDChoice(t *testing.T) {
	c, err := uapi.Open("sim", uapi.OpenConfig{})
	require.NoError(t, err)
	defer c.Close()
	v4 := netip.MustParseAddr("::ffff:10.0.0.1")
	e := &exam{kind: host, kernel: "mlx5_0", rdma: &netlinkmgr.Port{}, opened: c, gids: []netlinkmgr.GID{
		{Index: 1, GID: netip.MustParseAddr("fe80::1"), Type: netlinkmgr.GIDRoCEv2, Scope: netlinkmgr.ScopeLinkLocal},
		{Index: 3, GID: v4, Type: netlinkmgr.GIDRoCEv2, Scope: netlinkmgr.ScopeIPv4, Usable: true, Best: true, Why: "the only one"},
	}}
	e.info.GIDIndex = 1
	got := checkGID(e)
	require.Equal(t, Warn, got.Status)
	require.Contains(t, got.Detail, "3 (10.0.0.1) is the one to use: the only one")
	require.Contains(t, got.Fix, "uapi.OpenConfig{GIDIndex: new(3)}")
	e.info.GIDIndex = 3
	require.Equal(t, Pass, checkGID(e).Status)
	e.gids[1].Type = netlinkmgr.GIDRoCEv1
	got = checkGID(e)
	require.Equal(t, Fail, got.Status)
	require.Contains(t, got.Detail, "no RoCE v2 entry: index 3 is IB/RoCE v1")
	e.gids = nil
	require.Equal(t, "the GID table is empty", checkGID(e).Detail)
}
