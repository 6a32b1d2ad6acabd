package emu

import (
	"net/netip"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/abi/abitest"
)

var testGroup = netip.MustParseAddr("::ffff:239.1.2.3").As16()

// attach has the queue pair join the group.
func attach(c *client, o *abitest.Objects) {
	c.t.Helper()
	_, err := c.do(abi.CmdAttachMcast, o.AttachMcast(), 0)
	require.NoError(c.t, err)
}

// A queue pair that is in a group is not destroyed by a command, and is by the
// end of its file. The driver is told of each group once.
func TestMulticastMembers(t *testing.T) {
	c := newClient(t, true)
	o := newObjects(c)
	attach(c, o)
	attach(c, o)
	detach := func() error {
		_, err := c.do(abi.CmdDetachMcast, &abi.DetachMcast{QPHandle: o.UD, GID: testGroup}, 0)
		return err
	}
	qp := c.dev.Last
	require.Equal(t, []netip.Addr{netip.AddrFrom16(testGroup)}, qp.Groups)
	destroy := make([]byte, abi.DestroyQPSize)
	(&abi.DestroyQP{Response: c.addr, QPHandle: o.UD}).Put(destroy)
	_, err := c.writeRaw(uint32(abi.CmdDestroyQP), destroy, 4)
	require.ErrorIs(t, err, syscall.EBUSY)
	require.NoError(t, detach())
	require.Empty(t, qp.Groups)
	require.ErrorIs(t, detach(), syscall.EINVAL)
	attach(c, o)
	require.NoError(t, c.f.Close())
}
