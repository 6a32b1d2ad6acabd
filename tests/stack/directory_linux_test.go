package stack

import (
	"net"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"

	"github.com/rdmashim/rdmashim/rnic/link/shm"
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/tests/netns"
	"github.com/rdmashim/rdmashim/uapi"
)

// TestAddressTwice: a device whose address another container's device has in
// the directory that they share is not opened, unless it stays away from there.
func TestAddressTwice(t *testing.T) {
	if !netns.Own(t) {
		return
	}
	lo := must.Get(netlink.LinkByName("lo"))(t)
	require.NoError(t, netlink.AddrAdd(lo, must.Get(netlink.ParseAddr("10.99.0.1/32"))(t)))
	dir := t.TempDir()
	require.NoError(t, syscall.Chmod(dir, 0o700))
	t.Setenv(shm.EnvDir, dir)
	other := must.Get(net.Listen("unixpacket", filepath.Join(dir, "10.99.0.1:4791")))(t)
	defer other.Close()
	_, err := uapi.Open("soft:10.99.0.1", uapi.OpenConfig{})
	require.ErrorIs(t, err, syscall.EADDRINUSE)
	require.ErrorContains(t, err, "need addresses that differ")
	require.NoError(t, must.Get(uapi.Open("soft:10.99.0.1?shm=off", uapi.OpenConfig{}))(t).Close())
	require.NoError(t, other.Close())
	require.NoError(t, must.Get(uapi.Open("soft:10.99.0.1", uapi.OpenConfig{}))(t).Close())
}
