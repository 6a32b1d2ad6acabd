package udp

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/tests/netns"
)

// A route may carry less than its interface does.
func TestPathMTU(t *testing.T) {
	if !netns.Own(t) {
		return
	}
	narrow := netip.MustParseAddr("127.9.0.1")
	require.NoError(t, netlink.RouteAdd(&netlink.Route{
		LinkIndex: must.Get(netlink.LinkByName("lo"))(t).Attrs().Index, Dst: &net.IPNet{IP: narrow.AsSlice(), Mask: net.CIDRMask(32, 32)},
		MTU: 1300, Type: unix.RTN_LOCAL, Table: unix.RT_TABLE_LOCAL, Scope: unix.RT_SCOPE_HOST,
	}))
	l := listen(t, loopback4)
	for _, c := range []struct {
		peer string
		want int
		err  error
	}{
		{"127.0.0.1", l.Caps().MTU, nil},
		{"::ffff:127.0.0.2", l.Caps().MTU, nil},
		{"127.9.0.1", 1300 - ip4Headers, nil},
		{"::1", 0, syscall.EAFNOSUPPORT},
		{"203.0.113.7", 0, syscall.ENETUNREACH},
	} {
		got, err := l.PathMTU(netip.MustParseAddr(c.peer))
		require.ErrorIs(t, err, c.err, c.peer)
		require.Equal(t, c.want, got, c.peer)
	}
	sendTooLong(t, l, narrow)
}

// silent is an address that no machine has.
const silent = "10.77.0.99"

// wired makes a veth pair between the test's namespace, where it is eth0 with
// 10.77.0.1, and another, where it is eth0 with 10.77.0.2.
func wired(t *testing.T) (err error) {
	t.Helper()
	const mine = "/proc/thread-self/ns/net"
	home := must.Get(os.Open(mine))(t)
	defer home.Close()
	var there *os.File // which keeps the other namespace
	var wg sync.WaitGroup
	wg.Go(func() {
		runtime.LockOSThread() // the thread ends with the goroutine
		if err = unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return
		}
		if there, err = os.Open(mine); err == nil {
			err = errors.Join(netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "eth0"},
				PeerName: "eth0", PeerNamespace: netlink.NsFd(home.Fd())}), addressed("eth0", "10.77.0.2/24"))
		}
	})
	wg.Wait()
	t.Cleanup(func() { there.Close() })
	return errors.Join(err, addressed("eth0", "10.77.0.1/24"))
}

// addressed gives an interface an address, and sets it up.
func addressed(name, prefix string) error {
	l, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	a, err := netlink.ParseAddr(prefix)
	if err != nil {
		return err
	}
	return errors.Join(netlink.AddrAdd(l, a), netlink.LinkSetUp(l))
}

// TestReach: the errors are those of addr.c, and a neighbour that is there is
// found by asking for it.
func TestReach(t *testing.T) {
	if !netns.Own(t) {
		return
	}
	dst := func(s string) *net.IPNet { _, n, _ := net.ParseCIDR(s); return n }
	require.NoError(t, errors.Join(wired(t),
		netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "eth1"}, PeerName: "eth2"}),
		addressed("eth1", "10.78.0.1/24"), addressed("eth2", "10.79.0.1/24"), addressed("lo", "10.80.0.1/32"),
		netlink.RouteAdd(&netlink.Route{Dst: dst("10.90.0.0/24"), Gw: net.ParseIP(silent)}),
		netlink.RouteAdd(&netlink.Route{Dst: dst("10.91.0.0/24"), Gw: net.ParseIP("10.77.0.2")}),
		netlink.RouteAdd(&netlink.Route{Dst: dst("10.92.0.0/24"), Type: unix.RTN_UNREACHABLE})))
	const brief, long = time.Millisecond, time.Minute
	for _, c := range []struct {
		from, to string
		patience time.Duration
		want     error
	}{
		{"10.77.0.1", "10.77.0.2", long, nil},
		{"10.77.0.1", "10.91.0.1", brief, nil},
		{"10.77.0.1", "10.77.0.1", brief, nil},
		{"10.77.0.1", "10.78.0.1", brief, nil}, // another interface of this host
		{"10.80.0.1", "10.77.0.2", brief, nil}, // from an address without a wire
		{"10.77.0.1", "203.0.113.7", brief, syscall.ENETUNREACH},
		{"127.0.0.1", "203.0.113.7", brief, syscall.ENETUNREACH},
		{"127.0.0.1", "10.77.0.2", brief, syscall.ENETUNREACH},
		{"10.77.0.1", "10.92.0.1", brief, syscall.EHOSTUNREACH},
		{"10.77.0.1", "10.79.0.9", brief, syscall.EHOSTUNREACH}, // on another interface's link
		{"10.77.0.1", silent, brief, syscall.ETIMEDOUT},
		{"10.77.0.1", "10.90.0.1", brief, syscall.ETIMEDOUT},
		{"10.77.0.1", "10.90.0.1", 0, nil},
	} {
		l := listen(t, netip.AddrPortFrom(netip.MustParseAddr(c.from), 0))
		require.ErrorIs(t, l.Reach(netip.MustParseAddr(c.to), c.patience), c.want, "%s to %s", c.from, c.to)
	}
	l := listen(t, netip.MustParseAddrPort("10.78.0.1:0"))
	require.NoError(t, netlink.LinkSetDown(must.Get(netlink.LinkByName("eth1"))(t)))
	require.ErrorIs(t, l.Reach(netip.MustParseAddr("10.78.0.2"), brief), syscall.ENODEV, "an interface that is down")
}

// sendTooLong sends packets that the route to an address does not carry, among
// those that it does: each one is counted, and none of it is GSO's fault.
func sendTooLong(t *testing.T, l link.Link, at netip.Addr) {
	t.Helper()
	peer := listen(t, netip.AddrPortFrom(at, 0))
	var batch []link.Packet
	for i := range 30 {
		size := 1024
		if i >= 10 && i < 20 {
			size = 4096
		}
		batch = append(batch, link.Packet{Peer: peer.Caps().Local, Head: head(wire.PSN(i), size), Payload: fill(size, byte(i))})
	}
	require.NoError(t, l.Send(batch))
	for i, p := range recvN(t, peer, 20) {
		var bth wire.BTH
		require.NoError(t, bth.Parse(p.Head))
		require.Equal(t, wire.PSN(i+i/10*10), bth.PSN)
	}
	require.EqualValues(t, 10, counter(t, l, "drop_send_msgsize"))
	require.Zero(t, counter(t, l, "gso_reduced"))
}
