package udp

import (
	"errors"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/rnic/wire"
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
		t.Skip("a network namespace was refused; run as root: ", refused)
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
		path := l.(link.Routed).PathMTU
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
