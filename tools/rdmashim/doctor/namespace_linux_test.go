package doctor

import (
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/tests/netns"
	"github.com/rdmashim/rdmashim/uapi"
)

func up(t *testing.T, name string) netlink.Link {
	t.Helper()
	l := must.Get(netlink.LinkByName(name))(t)
	require.NoError(t, netlink.LinkSetUp(l))
	return l
}

// veth makes a pair, both up, with an address on its first end, for as long as
// the test.
func veth(t *testing.T, name, other, addr string) netlink.Link {
	t.Helper()
	require.NoError(t, netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: name}, PeerName: other}))
	t.Cleanup(func() {
		if l, err := netlink.LinkByName(name); err == nil {
			require.NoError(t, netlink.LinkDel(l))
		}
	})
	up(t, other)
	l := up(t, name)
	a := must.Get(netlink.ParseAddr(addr))(t)
	require.NoError(t, netlink.AddrAdd(l, a))
	return l
}

func setting(t *testing.T, path, value string) {
	t.Helper()
	path = "/proc/sys/net/" + path
	old := must.Get(os.ReadFile(path))(t)
	require.NoError(t, os.WriteFile(path, []byte(value), 0))
	t.Cleanup(func() { _ = os.WriteFile(path, old, 0) })
}

// really runs the doctor on this machine, as it is.
func really(t *testing.T, o Options) *Report {
	t.Helper()
	s := must.Get(Running())(t)
	r := must.Get(Run(t.Context(), s, o))(t)
	return r
}

// expect runs the doctor on a broken thing.
func expect(t *testing.T, o Options, check string, status Status, says, fix string) *Report {
	t.Helper()
	r := really(t, o)
	requireCheck(t, find(t, r, check), status, says, fix)
	return r
}

// hold gives the UDP port to another process until the test ends, and returns
// its number.
func hold(t *testing.T, addr string) int {
	t.Helper()
	c := must.Get(net.ListenPacket("udp", addr))(t)
	f := must.Get(c.(*net.UDPConn).File())(t)
	require.NoError(t, c.Close())
	holder := exec.Command("cat") // ends with its input
	in := must.Get(holder.StdinPipe())(t)
	holder.ExtraFiles = []*os.File{f}
	require.NoError(t, holder.Start())
	require.NoError(t, f.Close())
	t.Cleanup(func() {
		require.NoError(t, in.Close())
		require.NoError(t, holder.Wait())
	})
	return holder.Process.Pid
}

const onVeth = "soft:10.77.0.1"

// TestSoftDevice breaks the network below a soft device, one thing at a time.
func TestSoftDevice(t *testing.T) {
	if !netns.Own(t) {
		return
	}
	soft := Options{Device: onVeth}
	at := netip.MustParseAddr
	t.Run("healthy", func(t *testing.T) {
		veth(t, "d0", "d1", "10.77.0.1/24")
		r := really(t, soft)
		require.True(t, r.OK)
		for _, c := range r.Checks {
			if c.Name != "buffers" { // the machine's limit
				require.Contains(t, []Status{Pass, Skip}, c.Status, "%+v", c)
			}
		}
		require.Equal(t, Pass, find(t, r, "loopback").Status)
		require.Equal(t, onVeth, r.Device)
	})
	t.Run("lo down", func(t *testing.T) { // as it is in a new namespace
		l := must.Get(netlink.LinkByName("lo"))(t)
		require.NoError(t, netlink.LinkSetDown(l))
		defer up(t, "lo")
		r := expect(t, Options{Device: "soft"}, "netdev", Fail, "lo is down", "ip link set lo up")
		require.Equal(t, Fail, find(t, r, "loopback").Status)
		for _, c := range r.Checks {
			if c.Name != "netdev" && c.Name != "loopback" && c.Name != "buffers" {
				require.Contains(t, []Status{Pass, Skip}, c.Status, "one reason is enough: %+v", c)
			}
		}
	})
	t.Run("asked to lose", func(t *testing.T) {
		require.Contains(t, find(t, really(t, Options{Device: "sim?loss=100%"}), "loopback").Fix, "loss=")
	})
	t.Run("netdev down", func(t *testing.T) {
		l := veth(t, "d0", "d1", "10.77.0.1/24")
		require.NoError(t, netlink.LinkSetDown(l))
		expect(t, soft, "netdev", Fail, "d0 is down", "ip link set d0 up")
	})
	t.Run("no carrier", func(t *testing.T) {
		veth(t, "d0", "d1", "10.77.0.1/24")
		l := must.Get(netlink.LinkByName("d1"))(t)
		require.NoError(t, netlink.LinkSetDown(l))
		expect(t, soft, "netdev", Fail, "no carrier", "bring its other end up")
	})
	t.Run("no such address", func(t *testing.T) {
		r := expect(t, Options{Device: "soft:10.99.0.1"}, "netdev", Fail, "no network device has the address 10.99.0.1", "ip addr add")
		require.Equal(t, Fail, find(t, r, "loopback").Status)
		require.Contains(t, find(t, r, "loopback").Fix, "see netdev")
		require.Equal(t, "the network device is not known", find(t, r, "rp_filter").Detail, "it is asked for an address that it has not")
	})
	t.Run("MTU", func(t *testing.T) {
		l := veth(t, "d0", "d1", "10.77.0.1/24")
		require.NoError(t, netlink.LinkSetMTU(l, 600))
		expect(t, soft, "mtu", Warn, "active MTU 512, for the MTU of d0 is 600", "ip link set d0 mtu 1500")
		require.NoError(t, netlink.LinkSetMTU(l, 300))
		r := expect(t, soft, "mtu", Fail, "is 300", "ip link set d0 mtu 1500")
		require.Equal(t, "see mtu", find(t, r, "loopback").Fix)
	})
	t.Run("MTU changes under an open device", func(t *testing.T) {
		l := veth(t, "d0", "d1", "10.77.0.1/24")
		s := must.Get(Running())(t)
		for mtu, want := range map[int]Check{
			9000: {Status: Warn, Detail: "active MTU is 1024, though the MTU of d0, 9000, carries 4096", Fix: "open the device again"},
			700:  {Status: Fail, Detail: "active MTU is 1024, but the MTU of d0 is 700", Fix: "ip link set d0 mtu 1104"},
		} {
			require.NoError(t, netlink.LinkSetMTU(l, 1500))
			s.Open = func(device string) (*uapi.Device, error) {
				defer func() { require.NoError(t, netlink.LinkSetMTU(l, mtu)) }()
				return uapi.Open(device, uapi.OpenConfig{})
			}
			r := must.Get(Run(t.Context(), s, soft))(t)
			requireCheck(t, find(t, r, "mtu"), want.Status, want.Detail, want.Fix)
		}
	})
	t.Run("link-local", func(t *testing.T) {
		l := veth(t, "local0", "local1", "10.77.0.1/24") // package net remembers names' numbers
		at := &net.IPNet{IP: net.ParseIP("fe80::77"), Mask: net.CIDRMask(64, 128)}
		require.NoError(t, netlink.AddrAdd(l, &netlink.Addr{IPNet: at, Flags: unix.IFA_F_NODAD}))
		r := expect(t, Options{Device: "soft:[fe80::77%local0]"}, "gid", Warn, "link-local fe80::77", "take another address")
		require.Equal(t, Pass, find(t, r, "loopback").Status, "%+v", find(t, r, "loopback"))
		r = expect(t, Options{Device: "soft:[fe80::77%nosuch0]"}, "netdev", Fail, "no network device has the address fe80::77%nosuch0", "ip addr add")
		require.Equal(t, "see netdev", find(t, r, "loopback").Fix)
	})
	t.Run("address not usable yet", func(t *testing.T) {
		setting(t, "ipv6/conf/default/dad_transmits", "1000") // duplicate address detection takes that many seconds
		veth(t, "d0", "d1", "fd00:77::1/64")
		r := expect(t, Options{Device: "soft:[fd00:77::1]"}, "netdev", Fail, "fd00:77::1 of d0 is not usable yet", "ip addr show dev d0 tentative")
		require.Equal(t, "see netdev", find(t, r, "loopback").Fix)
	})
	t.Run("port held", func(t *testing.T) {
		veth(t, "d0", "d1", "10.77.0.1/24")
		pid := strconv.Itoa(hold(t, "10.77.0.1:4791"))
		r := expect(t, soft, "udp-port", Fail, "held by process "+pid+" (cat) on 10.77.0.1:4791", "kill "+pid)
		require.Contains(t, find(t, r, "loopback").Fix, "see udp-port")
		require.True(t, really(t, Options{Device: onVeth + "?port=0"}).OK, "another port is free")
	})
	t.Run("port held everywhere", func(t *testing.T) {
		pid := strconv.Itoa(hold(t, ":4791"))
		expect(t, Options{Device: "soft"}, "udp-port", Warn, "cards and rdma_rxe do not", "kill "+pid)
	})
	t.Run("no route", func(t *testing.T) {
		veth(t, "d0", "d1", "10.77.0.1/24")
		expect(t, Options{Device: onVeth, Peer: at("203.0.113.9")}, "route", Fail, "no route to the peer 203.0.113.9: network is unreachable", "ip route add 203.0.113.9/32 dev d0 src 10.77.0.1")
		expect(t, Options{Device: onVeth, Peer: at("10.77.0.9")}, "route", Pass, "directly on d0", "")
	})
	t.Run("shared memory", func(t *testing.T) {
		veth(t, "d0", "d1", "10.77.0.1/24")
		o := Options{Device: "soft:127.0.0.8", Peer: at("127.0.0.7")}
		expect(t, o, "route", Pass, "no device is open there", "")
		for shared, words := range map[string]string{
			"on":  "the peer 127.0.0.7 is on this machine, and is reached through shared memory",
			"off": "is reached by UDP: it is no soft device, or has shm=off",
		} {
			c := must.Get(uapi.Open("soft:127.0.0.7?shm="+shared, uapi.OpenConfig{}))(t)
			expect(t, o, "route", Pass, words, "")
			if shared == "on" {
				expect(t, Options{Device: o.Device + "?shm=off", Peer: o.Peer}, "route", Pass, "without shm=off", "")
			}
			require.NoError(t, c.Close())
		}
		expect(t, Options{Device: onVeth, Peer: at("10.77.0.9")}, "route", Pass, "by UDP: it is not in this network namespace", "")
	})
	t.Run("loopback address, peer elsewhere", func(t *testing.T) {
		veth(t, "d0", "d1", "10.77.0.1/24")
		expect(t, Options{Device: "soft", Peer: at("10.77.0.9")}, "route", Fail, "the peer 10.77.0.9 is reached by d0", "rdmashim doctor --peer 10.77.0.9 soft:10.77.0.1")
		expect(t, Options{Device: "soft", Peer: at("10.77.0.1")}, "route", Pass, "on this machine", "")
		expect(t, Options{Device: "soft", Peer: at("203.0.113.9")}, "route", Fail, "no route", "ip route add")
	})
	t.Run("route carries less", func(t *testing.T) {
		l := veth(t, "d0", "d1", "10.77.0.1/24")
		require.NoError(t, netlink.RouteAdd(&netlink.Route{LinkIndex: l.Attrs().Index, Dst: &net.IPNet{IP: net.IPv4(10, 88, 0, 0), Mask: net.CIDRMask(16, 32)}, MTU: 700}))
		expect(t, Options{Device: onVeth, Peer: at("10.88.0.1")}, "route", Warn, "carries 700 bytes", "mtu 1104")
	})
	t.Run("blackhole", func(t *testing.T) {
		veth(t, "d0", "d1", "10.77.0.1/24")
		dst := &net.IPNet{IP: net.IPv4(10, 89, 0, 0), Mask: net.CIDRMask(16, 32)}
		require.NoError(t, netlink.RouteAdd(&netlink.Route{Dst: dst, Type: unix.RTN_UNREACHABLE}))
		defer netlink.RouteDel(&netlink.Route{Dst: dst, Type: unix.RTN_UNREACHABLE})
		expect(t, Options{Device: onVeth, Peer: at("10.89.0.1")}, "route", Fail, "no route to the peer", "ip route add")
	})
	t.Run("two in one network", func(t *testing.T) {
		veth(t, "e0", "e1", "10.77.0.2/24") // made first, so its route is preferred
		veth(t, "d0", "d1", "10.77.0.1/24")
		expect(t, soft, "source-route", Warn, "leave by e0, not by d0", "ip rule add from 10.77.0.1 table 100")
		expect(t, Options{Device: "soft:10.77.0.2"}, "source-route", Warn, "d0 is in 10.77.0.0/24, too", "arp_ignore=1")
		setting(t, "ipv4/conf/all/rp_filter", "1")
		expect(t, soft, "rp_filter", Fail, "the way back to 10.77.0.0/24 is by e0", "net.ipv4.conf.d0.rp_filter=2")
		setting(t, "ipv4/conf/d0/rp_filter", "2")
		expect(t, soft, "rp_filter", Pass, "loose", "")
	})
	t.Run("rules fixed as said", func(t *testing.T) {
		veth(t, "e0", "e1", "10.77.0.2/24")
		l := veth(t, "d0", "d1", "10.77.0.1/24")
		require.NoError(t, netlink.RouteAdd(&netlink.Route{LinkIndex: l.Attrs().Index, Dst: &net.IPNet{IP: net.IPv4(10, 77, 0, 0), Mask: net.CIDRMask(24, 32)}, Src: net.IPv4(10, 77, 0, 1), Table: 100}))
		rule := netlink.NewRule()
		rule.Src, rule.Table = &net.IPNet{IP: net.IPv4(10, 77, 0, 1), Mask: net.CIDRMask(32, 32)}, 100
		require.NoError(t, netlink.RuleAdd(rule))
		defer netlink.RuleDel(rule)
		setting(t, "ipv4/conf/all/arp_ignore", "1")
		expect(t, soft, "source-route", Pass, "leave by d0", "")
	})
	t.Run("container", func(t *testing.T) {
		l := veth(t, "d0", "d1", "10.77.0.1/24")
		require.NoError(t, netlink.RouteAdd(&netlink.Route{LinkIndex: l.Attrs().Index, Gw: net.IPv4(10, 77, 0, 254)}))
		expect(t, soft, "nat", Warn, "as containers have it", "--network host")
		require.NotEqual(t, Warn, find(t, really(t, Options{Device: onVeth, Peer: at("10.77.0.9")}), "nat").Status)
	})
}

// TestFeatures reads the switches of a veth, which has no GRO unless asked.
func TestFeatures(t *testing.T) {
	if !netns.Own(t) {
		return
	}
	veth(t, "d0", "d1", "10.77.0.1/24")
	on := must.Get(features("d0"))(t)
	require.True(t, on["tx-generic-segmentation"], "%v", on)
	require.False(t, on["rx-gro"], "%v", on)
	must.Fail(features("nosuch0"))(t, unix.ENODEV)
}
