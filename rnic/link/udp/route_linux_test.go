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
	"github.com/rdmashim/rdmashim/tests/netns"
)

// inNamespace runs f in a network namespace of its own, with its lo up.
func inNamespace(t *testing.T, f func(lo netlink.Link)) {
	t.Helper()
	var wg sync.WaitGroup
	var refused error
	wg.Go(func() {
		runtime.LockOSThread() // the thread ends with the goroutine
		if refused = unix.Unshare(unix.CLONE_NEWNET); refused != nil {
			return
		}
		lo, err := netlink.LinkByName("lo")
		if err == nil {
			err = netlink.LinkSetUp(lo)
		}
		if err != nil {
			t.Error(err)
			return
		}
		f(lo)
	})
	wg.Wait()
	if errors.Is(refused, syscall.EPERM) || errors.Is(refused, syscall.ENOSYS) {
		netns.Refused(t, refused)
	}
	require.NoError(t, refused)
}

// A route may carry less than its interface does.
func TestPathMTU(t *testing.T) {
	inNamespace(t, func(lo netlink.Link) {
		narrow := netip.MustParseAddr("127.9.0.1")
		err := netlink.RouteAdd(&netlink.Route{
			LinkIndex: lo.Attrs().Index, Dst: &net.IPNet{IP: narrow.AsSlice(), Mask: net.CIDRMask(32, 32)},
			MTU: 1300, Type: unix.RTN_LOCAL, Table: unix.RT_TABLE_LOCAL, Scope: unix.RT_SCOPE_HOST,
		})
		if err != nil {
			t.Error(err)
			return
		}
		l, err := Listen(loopback4, Options{})
		if err != nil {
			t.Error(err)
			return
		}
		defer l.Close()
		path := l.PathMTU
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
			got, err := path(netip.MustParseAddr(c.peer))
			if !errors.Is(err, c.err) || got != c.want {
				t.Errorf("path to %s: %d, %v", c.peer, got, err)
			}
		}
		sendTooLong(t, l, narrow)
	})
}

// silent is an address that no machine has.
const silent = "10.77.0.99"

// wired makes a veth pair between the calling thread's namespace, where it is
// eth0 with 10.77.0.1, and another's, where it is eth0 with 10.77.0.2.
func wired(other *os.File) error {
	a := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "eth0"}, PeerName: "eth0", PeerNamespace: netlink.NsFd(other.Fd())}
	if err := netlink.LinkAdd(a); err != nil {
		return err
	}
	return addressed("eth0", "10.77.0.1/24")
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
	spaces, made, named, done := make(chan *os.File, 1), make(chan error, 1), make(chan error, 1), make(chan struct{})
	var there sync.WaitGroup
	there.Go(func() {
		defer close(spaces)
		inNamespace(t, func(netlink.Link) {
			f, err := os.Open("/proc/thread-self/ns/net")
			if err != nil {
				t.Error(err)
				return
			}
			defer f.Close()
			spaces <- f
			if err := <-made; err == nil {
				err = addressed("eth0", "10.77.0.2/24")
				named <- err
			}
			<-done
		})
	})
	defer there.Wait()
	defer close(done)
	other := <-spaces
	if other == nil {
		t.SkipNow()
	}
	inNamespace(t, func(netlink.Link) {
		err := wired(other)
		made <- err
		if err == nil {
			err = <-named
		}
		dst := func(s string) *net.IPNet { _, n, _ := net.ParseCIDR(s); return n }
		err = errors.Join(err, netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "eth1"}, PeerName: "eth2"}),
			addressed("eth1", "10.78.0.1/24"), addressed("eth2", "10.79.0.1/24"), addressed("lo", "10.80.0.1/32"),
			netlink.RouteAdd(&netlink.Route{Dst: dst("10.90.0.0/24"), Gw: net.ParseIP(silent)}),
			netlink.RouteAdd(&netlink.Route{Dst: dst("10.91.0.0/24"), Gw: net.ParseIP("10.77.0.2")}),
			netlink.RouteAdd(&netlink.Route{Dst: dst("10.92.0.0/24"), Type: unix.RTN_UNREACHABLE}))
		if err != nil {
			t.Error(err)
			return
		}
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
			l, err := Listen(netip.AddrPortFrom(netip.MustParseAddr(c.from), 0), Options{})
			if err != nil {
				t.Error(err)
				continue
			}
			if err := l.Reach(netip.MustParseAddr(c.to), c.patience); !errors.Is(err, c.want) {
				t.Errorf("%s to %s: %v, not %v", c.from, c.to, err, c.want)
			}
			l.Close()
		}
		l, err := Listen(netip.AddrPortFrom(netip.MustParseAddr("10.78.0.1"), 0), Options{})
		if err != nil {
			t.Error(err)
			return
		}
		defer l.Close()
		eth1, err := netlink.LinkByName("eth1")
		if err == nil {
			err = netlink.LinkSetDown(eth1)
		}
		if err != nil {
			t.Error(err)
		}
		if err := l.Reach(netip.MustParseAddr("10.78.0.2"), brief); !errors.Is(err, syscall.ENODEV) {
			t.Errorf("an interface that is down: %v", err)
		}
	})
}

// sendTooLong sends packets that the route to an address does not carry, among
// those that it does: each one is counted, and none of it is GSO's fault.
func sendTooLong(t *testing.T, l link.Link, at netip.Addr) {
	peer, err := Listen(netip.AddrPortFrom(at, 0), Options{})
	if err != nil {
		t.Error(err)
		return
	}
	defer peer.Close()
	var batch []link.Packet
	for i := range 30 {
		size := 1024
		if i >= 10 && i < 20 {
			size = 4096
		}
		batch = append(batch, link.Packet{Peer: peer.Caps().Local, Head: head(wire.PSN(i), size), Payload: fill(size, byte(i))})
	}
	if err := l.Send(batch); err != nil {
		t.Error(err)
	}
	in := make([]link.Packet, 32)
	for got := 0; got < 20; {
		n, err := link.Receive(peer, in)
		if err != nil {
			t.Error(err)
			return
		}
		for _, p := range in[:n] {
			var bth wire.BTH
			want := wire.PSN(got)
			if got >= 10 {
				want += 10
			}
			if bth.Parse(p.Head) != nil || bth.PSN != want {
				t.Errorf("packet %d came as %v", got, bth.PSN)
			}
			got++
		}
	}
	if n := counter(t, l, "drop_send_msgsize"); n != 10 {
		t.Errorf("%d packets were counted as too long", n)
	}
	if n := counter(t, l, "gso_reduced"); n != 0 {
		t.Errorf("GSO was reduced %d times", n)
	}
}
