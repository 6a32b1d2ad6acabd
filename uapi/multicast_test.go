package uapi_test

import (
	"net/netip"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
)

// A datagram to a group comes to each queue pair in it, the sender's too.
func TestMulticast(t *testing.T) {
	t.Parallel()
	eachDevice(t, func(t *testing.T, d, _ *uapi.Device) { multicast(t, d) })
	t.Run("through shared memory, faults and a capture", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "groups.pcapng")
		multicast(t, openDevice(t, "soft:127.0.0.1?port=0&shm=on&delay=1us&pcap="+path))
	})
}

func multicast(t *testing.T, c *uapi.Device) {
	a, b := newDgrams(t, c, uapi.QPConfig{}), newDgrams(t, c, uapi.QPConfig{})
	group := netip.MustParseAddr("239.77.4.94")
	if a.at.Addr().Is6() {
		return // a loopback interface has no groups of IPv6
	}
	for _, d := range []*dgrams{a, b, a} {
		require.NoError(t, d.AttachMulticast(d.qp, group))
		must.Get(d.PostRecv(d.qp, d.mr, 0, 1000))(t)
	}
	ah := must.Get(a.CreateAH(netip.AddrPortFrom(group, a.at.Port()), uapi.AHConfig{}))(t)
	defer a.DestroyAH(ah)
	copy(a.buf[2000:], "to all")
	must.Get(a.PostSendTo(a.qp, ah, uapi.MulticastQPN, qkey, a.mr, 2000, 6))(t)
	require.Equal(t, uapi.WCOpRecv, b.next().Opcode)
	require.Equal(t, "to all", string(b.buf[uapi.GRHLen:uapi.GRHLen+6]))
	for range 2 { // its own send, and the message
		require.Equal(t, uapi.WCSuccess, a.next().Status)
	}
	require.Equal(t, "to all", string(a.buf[uapi.GRHLen:uapi.GRHLen+6]))

	for _, d := range []*dgrams{a, b} {
		require.NoError(t, d.DetachMulticast(d.qp, group))
		require.ErrorIs(t, d.DetachMulticast(d.qp, group), syscall.EINVAL)
	}
	for _, bad := range []string{"10.0.0.1", "ff0e::1", "0.0.0.0"} {
		require.ErrorIs(t, a.AttachMulticast(a.qp, netip.MustParseAddr(bad)), syscall.EINVAL)
		require.ErrorIs(t, a.DetachMulticast(a.qp, netip.MustParseAddr(bad)), syscall.EINVAL)
	}
	require.ErrorIs(t, a.AttachMulticast(-1, group), syscall.EBADF)
	require.ErrorIs(t, a.DetachMulticast(-1, group), syscall.EBADF)
	require.NoError(t, a.AttachMulticast(a.qp, group))
	require.NoError(t, b.AttachMulticast(b.qp, group), "left by DestroyQP")
	rc := mustQP(t, c, uapi.QPConfig{})
	require.ErrorIs(t, c.AttachMulticast(rc, group), syscall.EINVAL)
}
