//go:build guest && linux

package interop

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
)

// TestMulticast: what the soft RNIC or rxe sends to a group comes to each queue
// pair in it, on both, and to none that has left.
func TestMulticast(t *testing.T) {
	for i, group := range []netip.Addr{netip.MustParseAddr("239.77.4.95"), netip.MustParseAddr("ff15::4d:5f")} {
		t.Run(families[i].name, func(t *testing.T) { toGroup(t, families[i], group) })
	}
}

func toGroup(t *testing.T, f family, group netip.Addr) {
	joinIP(t, group)
	soft, rxe := openSoft(t, softName(f, 0, "")), openRXE(t, f)
	var ends, left []*end
	for i, d := range []*uapi.Device{soft, soft, rxe, rxe} {
		e := newDevice(t, []string{"soft", "soft 2", "rxe", "rxe 2"}[i], d, 1<<14).datagramEnd(t)
		attach := func() error { return d.AttachMulticast(e.qp, group) }
		if d == soft { // its device makes a socket for the group
			require.NoError(t, lab.space.Do(attach))
		} else {
			require.NoError(t, attach())
		}
		ends = append(ends, e)
	}
	way := map[*uapi.Device]uapi.AH{}
	for _, d := range []*uapi.Device{soft, rxe} {
		ah := must.Get(d.CreateAH(netip.AddrPortFrom(group, 0), uapi.AHConfig{}))(t)
		way[d] = ah
	}
	for range 2 {
		for _, from := range []*end{ends[0], ends[len(ends)-1]} {
			for _, n := range []int{0, 1, 4, 1000, 4096} {
				sendToGroup(t, from, way[from.device], group, n, ends, left)
			}
		}
		if len(left) == 0 { // the second ones leave
			for _, e := range []*end{ends[1], ends[3]} {
				require.NoError(t, e.device.DetachMulticast(e.qp, group))
			}
			ends, left = []*end{ends[0], ends[2]}, []*end{ends[1], ends[3]}
		}
	}
	require.Zero(t, lab.kmsg.badICRCs(t))
}

// sendToGroup sends a message of n bytes to a group. Behind it, each of those
// that have left gets another one.
func sendToGroup(t *testing.T, from *end, way uapi.AH, group netip.Addr, n int, members, left []*end) {
	here, want := from.endpoint(t), pattern(n)
	for _, e := range append(left, members...) {
		fill(e.target(), uapi.GRHLen+n)
		e.post(t, uapi.WR{Op: uapi.OpRecv, SGE: []uapi.SGE{{MR: e.mr, Offset: uint64(e.half + margin), Length: uint64(uapi.GRHLen + n)}}})
	}
	copy(from.source(), want)
	send := func(way uapi.AH, qpn, imm uint32) {
		from.post(t, uapi.WR{Op: uapi.OpSendImm, Flags: uapi.Signaled, Imm: imm, AH: way, RemoteQPN: qpn, RemoteQKey: datagramQKey,
			SGE: []uapi.SGE{{MR: from.mr, Length: uint64(n)}}})
	}
	send(way, uapi.MulticastQPN, 1)
	completions := map[uapi.Opcode]uapi.WC{}
	for range 2 { // the sender is a member: its receive may complete first
		wc := from.ends(t, uapi.WCSuccess)
		completions[wc.Opcode] = wc
	}
	require.Contains(t, completions, uapi.WCOpSend)
	for _, e := range members {
		wc, what := completions[uapi.WCOpRecv], fmt.Sprintf("%d bytes from %s to %s", n, from.name, e.name)
		if e != from {
			wc = e.success(t, uapi.WCOpRecv)
		}
		require.EqualValues(t, uapi.GRHLen+n, wc.ByteLen, what)
		require.Equal(t, []uint32{here.QPN, 1}, []uint32{wc.SrcQPN, wc.Imm}, what)
		grh := append([]byte(nil), e.target()[margin:][:uapi.GRHLen]...)
		holds(t, what, e.target(), append(grh, want...))
		src := must.Get(uapi.DatagramSource(grh))(t)
		require.Equal(t, here.Addr.Addr(), src, what)
		require.Equal(t, group, destination(grh, group.BitLen()/8), what)
		count(1, n)
	}
	for _, e := range left {
		to := e.endpoint(t)
		send(from.way(t, to), to.QPN, 2)
		from.success(t, uapi.WCOpSend)
		require.EqualValues(t, 2, e.success(t, uapi.WCOpRecv).Imm, "%s has left", e.name)
	}
}

// destination is that of a route header with 16 or 4 bytes of address, which
// are the last of IPv6's and of IPv4's, which stands in the second half
// (IBA A17.4.5.2).
func destination(grh []byte, length int) netip.Addr {
	a, _ := netip.AddrFromSlice(grh[uapi.GRHLen-length:])
	return a
}

// joinIP has eth0 take packets to a group: rxe's attaching sets the interface's
// filter only (rxe_mcast.c:rxe_mcast_add).
func joinIP(t *testing.T, group netip.Addr) {
	l := must.Get(netlink.LinkByName("eth0"))(t)
	domain := unix.AF_INET
	if group.Is6() {
		domain = unix.AF_INET6
	}
	fd := must.Get(unix.Socket(domain, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0))(t)
	t.Cleanup(func() { unix.Close(fd) })
	var err error
	if group.Is6() {
		err = unix.SetsockoptIPv6Mreq(fd, unix.IPPROTO_IPV6, unix.IPV6_JOIN_GROUP, &unix.IPv6Mreq{Multiaddr: group.As16(), Interface: uint32(l.Attrs().Index)})
	} else {
		err = unix.SetsockoptIPMreqn(fd, unix.IPPROTO_IP, unix.IP_ADD_MEMBERSHIP, &unix.IPMreqn{Multiaddr: group.As4(), Ifindex: int32(l.Attrs().Index)})
	}
	require.NoError(t, err)
}
