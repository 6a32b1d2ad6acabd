package udp

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tests/must"
)

// TestNoChecksumIPv6: RoCEv2 devices, rdma_rxe among them, send a UDP checksum
// of 0 over IPv6 as well, which a socket drops unless told otherwise.
func TestNoChecksumIPv6(t *testing.T) {
	b := listen(t, loopback6)
	c, flow := raw(t, b)
	rc, err := c.SyscallConn()
	require.NoError(t, err)
	require.NoError(t, rc.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.IPPROTO_UDP, unix.UDP_NO_CHECK6_TX, 1)
	}))
	require.NoError(t, err)
	// The first one has no checksum, the second one has.
	for psn := range wire.PSN(2) {
		p := head(psn, 0)
		p = wire.AppendICRC(p, flow.ICRC(0, p))
		must.Get(c.WriteToUDPAddrPort(p, b.Caps().Local))(t)
		require.NoError(t, rc.Control(func(fd uintptr) {
			err = unix.SetsockoptInt(int(fd), unix.IPPROTO_UDP, unix.UDP_NO_CHECK6_TX, 0)
		}))
		require.NoError(t, err)
	}
	for psn, got := range recvN(t, b, 2) {
		var bth wire.BTH
		require.NoError(t, bth.Parse(got.Head))
		require.EqualValues(t, psn, bth.PSN)
	}
}
