package echo

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"

	"github.com/rdmashim/rdmashim/tests/netns"
	"github.com/rdmashim/rdmashim/tools/internal/cli/clitest"
)

// TestLoIsDown: commands that need it say so.
func TestLoIsDown(t *testing.T) {
	if !netns.Own(t) {
		return
	}
	lo, err := netlink.LinkByName("lo")
	require.NoError(t, err)
	require.NoError(t, netlink.LinkSetDown(lo))
	addr, err := netlink.ParseAddr("127.0.0.1/8")
	require.NoError(t, err)
	require.NoError(t, netlink.AddrDel(lo, addr)) // as in a fresh namespace
	for _, args := range []string{"echo client 127.0.0.1", "echo client --over tcp 127.0.0.1", "echo server --listen :0"} {
		o := clitest.RunTool(t, strings.Fields(args)...)
		require.Equal(t, 1, o.Code)
		require.Equal(t, 1, strings.Count(o.Stderr, "the interface lo is down, which 127.0.0.1 needs: ip link set lo up"), o.Stderr)
	}
}
