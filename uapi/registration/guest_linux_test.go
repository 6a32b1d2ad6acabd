//go:build guest

package registration_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"

	"github.com/rdmashim/rdmashim/netlinkmgr"
	"github.com/rdmashim/rdmashim/uapi/registration"
)

// TestPortDown: a device of the kernel opens while its port is up, and is
// ENETDOWN after.
func TestPortDown(t *testing.T) {
	const addr = "10.79.0.1"
	veth := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "rg0"}, PeerName: "rg1"}
	require.NoError(t, netlink.LinkAdd(veth))
	defer func() { require.NoError(t, netlink.LinkDel(veth)) }()
	peer, err := netlink.LinkByName("rg1")
	require.NoError(t, err)
	prefix, err := netlink.ParseAddr(addr + "/24")
	require.NoError(t, err)
	require.NoError(t, netlink.AddrAdd(veth, prefix))
	require.NoError(t, netlink.LinkSetUp(veth))
	require.NoError(t, netlink.LinkSetUp(peer))
	result, err := netlinkmgr.Ensure(t.Context(), netlinkmgr.EnsureOptions{NetDev: "rg0", Timeout: patience})
	require.NoError(t, err)

	config := plain(registration.Kernel{Addr: addr})
	r, err := registration.Open(soon(t), config)
	require.NoError(t, err)
	x, y := connect(t, r, listen(t, r))
	require.Equal(t, result.Device, y.ConnectionState().Device)
	require.NoError(t, x.CloseWithError(0, ""))
	require.NoError(t, r.Close())

	require.NoError(t, netlink.LinkSetDown(veth))
	require.Eventually(t, func() bool { // the kernel tells the device a little later
		r, err = registration.Open(soon(t), config)
		if err == nil {
			require.NoError(t, r.Close())
		}
		return err != nil
	}, patience, 10*time.Millisecond)
	require.ErrorIs(t, err, syscall.ENETDOWN)
	require.ErrorContains(t, err, result.Device)
	require.ErrorContains(t, err, "rg0")
}
