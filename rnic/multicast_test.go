package rnic

import (
	"fmt"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/rnic/link/sim"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// A datagram to a group reaches every queue pair that is in it, of several
// devices and of the sender, once each, with the group in its route header.
func TestMulticast(t *testing.T) {
	for name, c := range map[string]struct{ group, a, b string }{
		"IPv4":      {"239.1.2.3", "10.0.0.1:4791", "10.0.0.2:4791"},
		"IPv6":      {"ff0e::1:2", "[fd00::1]:4791", "[fd00::2]:4791"},
		"UDP ports": {"239.1.2.3", "10.0.0.1:5000", "10.0.0.2:5000"},
	} {
		t.Run(name, func(t *testing.T) {
			group := netip.MustParseAddr(c.group)
			ds := datagramDevices(t, netip.MustParseAddrPort(c.a), netip.MustParseAddrPort(c.b))
			a, b := ds[0], ds[1]
			_, ah := a.createAH(t, abi.AHAttr{DGID: group.As16(), DLID: portLID(a.Addr().Port()),
				SrcPathBits: abi.PathBitsUDP, IsGlobal: 1, PortNum: 1})
			wr := datagram(a, b, 1, ah, 0, 100)
			wr.RemoteQPN = uint32(wire.MulticastQPN)
			a.mem.fill(3)
			for _, d := range ds {
				require.NoError(t, d.qp.qp.AttachMulticast(group))
				d.qp.postRecv(5, d.mem.sge(10_000, 1000))
			}
			a.qp.post(wr)
			a.qp.send.waitStatus(1, abi.WCSuccess)
			for _, d := range ds {
				wc := d.qp.recv.waitStatus(5, abi.WCSuccess)
				require.EqualValues(t, wire.GRHLen+100, wc.ByteLen)
				require.Equal(t, a.qp.qp.Num(), wc.SrcQP)
				require.Equal(t, d.qp.qp.Num(), wc.QPN)
				require.Equal(t, a.mem.buf[:100], d.mem.buf[10_000+wire.GRHLen:][:100])
				_, dst := route(d.mem.buf[10_000:])
				require.Equal(t, group, dst)
			}
			// A connection's packet to a group is for no queue pair, nor is one
			// to a member's number.
			before := b.counter(t, "drop_qpn")
			wr.ID, wr.RemoteQPN = 2, b.qp.qp.Num()
			a.qp.post(wr)
			a.qp.send.waitStatus(2, abi.WCSuccess)
			require.Eventually(t, func() bool {
				return b.counter(t, "drop_qpn") == before+1
			}, patience, time.Millisecond)
		})
	}
}

// A queue pair that leaves its groups receives nothing any more, and the link
// leaves with the last member, also when queue pairs are destroyed.
func TestMulticastLeaves(t *testing.T) {
	group := netip.MustParseAddr("239.1.2.3")
	l := &joins{in: map[netip.Addr]int{}}
	var err error
	l.Link, err = sim.NewNetwork(sim.Options{}).Attach(netip.AddrPort{})
	require.NoError(t, err)
	d := newDevice(t, l, 1<<16, qpOptions{typ: abi.QPTUD})
	one, other := d.qp.qp, newQP(t, d.Device, d.pd, qpOptions{typ: abi.QPTUD}).qp
	require.ErrorIs(t, one.DetachMulticast(group), syscall.EINVAL)
	for range 2 {
		require.NoError(t, one.AttachMulticast(group))
		require.NoError(t, other.AttachMulticast(group))
		require.Equal(t, map[netip.Addr]int{group: 1}, l.in)
	}
	require.NoError(t, one.DetachMulticast(group))
	require.Equal(t, map[netip.Addr]int{group: 1}, l.in)
	require.NoError(t, other.Destroy())
	require.Equal(t, map[netip.Addr]int{group: 0}, l.in)
	require.Empty(t, d.groups)
	l.err = syscall.ENODEV
	require.ErrorIs(t, one.AttachMulticast(group), syscall.ENODEV)
	require.Empty(t, d.groups)
}

// joins is a link that counts the groups that it is in.
type joins struct {
	link.Link
	in  map[netip.Addr]int
	err error
}

func (l *joins) Join(group netip.Addr) error {
	if l.err != nil {
		return fmt.Errorf("join: %w", l.err)
	}
	l.in[group]++
	return nil
}

func (l *joins) Leave(group netip.Addr) { l.in[group]-- }
