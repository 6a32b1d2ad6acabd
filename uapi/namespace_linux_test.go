package uapi

import (
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/tests/netns"
)

// TestDialLocalhost: the address of a name at which there is no device costs no
// time; where both IP versions have a device, the listening one is found
// although the default device begins at the other.
func TestDialLocalhost(t *testing.T) {
	if !netns.Own(t) {
		return
	}
	named(t, "localhost", "::1", "127.0.0.1")
	server, err := Open("soft:[::1]", OpenConfig{})
	if errors.Is(err, syscall.EADDRNOTAVAIL) && os.Getenv("CI") != "true" {
		t.Skip("this machine has no ::1; enable IPv6: sysctl net.ipv6.conf.all.disable_ipv6=0: ", err)
	}
	require.NoError(t, err)
	defer server.Close()
	l := must.Get(Listen("localhost:7000", ListenConfig{}))(t)
	require.Equal(t, "[::1]:7000", l.Addr().String())
	accepting(t, l)
	dial := func() {
		start := time.Now()
		d := must.Get(OpenRoute(t.Context(), "localhost:7000", OpenConfig{}))(t)
		qp := must.Get(d.Dial(t.Context(), "localhost:7000", DialConfig{}))(t)
		info := must.Get(d.QueryConn(qp))(t)
		require.Equal(t, "[::1]:7000", info.RemoteAddr.String())
		require.Less(t, time.Since(start), DefaultConnectTimeout/2, "no share was waited for")
		require.NoError(t, d.DestroyQP(qp))
		require.NoError(t, d.Close())
	}
	dial()
}

// TestDialSaysLoIsDown, on a device that was open before.
func TestDialSaysLoIsDown(t *testing.T) {
	if !netns.Own(t) {
		return
	}
	d := testDevice(t, "soft:127.0.0.1")
	lo := must.Get(netlink.LinkByName("lo"))(t)
	require.NoError(t, netlink.LinkSetDown(lo)) // with its address, to which there is a way
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := d.Dial(ctx, "127.0.0.1:7000", DialConfig{})
	require.Error(t, err)
	require.Equal(t, 1, strings.Count(err.Error(), "the interface lo is down"), "%v", err)
	require.ErrorContains(t, err, "ip link set lo up")
}

// TestOpenLocal opens the device of an address, or none.
func TestOpenLocal(t *testing.T) {
	if !netns.Own(t) {
		return
	}
	opened := func(addr, device string, kinds ...Kind) {
		t.Helper()
		d := must.Get(OpenLocal(addr, OpenConfig{Kinds: kinds}))(t)
		require.Regexp(t, device, d.where.OpenName())
		require.NoError(t, d.Close())
	}
	refused := func(addr string, errno syscall.Errno, text string, kinds ...Kind) {
		t.Helper()
		_, err := OpenLocal(addr, OpenConfig{Kinds: kinds})
		require.ErrorIs(t, err, errno)
		require.ErrorContains(t, err, text)
	}
	opened("127.0.0.1", `^soft:127\.0\.0\.1$`)
	opened("127.0.0.7:1234", `^soft:127\.0\.0\.7$`, "soft")
	opened("[::1]", `^soft:\[::1\]$`)
	named(t, "here", "192.0.2.1", "127.0.0.8")
	opened("here", `^soft:127\.0\.0\.8$`)
	refused("192.0.2.1", syscall.EADDRNOTAVAIL, "no device has the address 192.0.2.1; there are soft:127.0.0.1")
	refused("127.0.0.1", syscall.EADDRNOTAVAIL, "no device has the address 127.0.0.1; there is none of kind host", "host")
	refused("0.0.0.0", syscall.EINVAL, "not an address of one interface")
	_, err := Open("soft:127.0.0.1", OpenConfig{Kinds: []Kind{KindHost}})
	require.ErrorIs(t, err, syscall.EINVAL)
	_, err = OpenRoute(t.Context(), "127.0.0.1", OpenConfig{Kinds: []Kind{KindHost}})
	require.ErrorIs(t, err, syscall.EADDRNOTAVAIL)

	t.Setenv("RDMASHIM_DEVICE", "sim?net=local")
	opened("10.0.0.1", `^sim:10\.0\.0\.1\?net=local$`)
	refused("10.0.0.1", syscall.EINVAL, "is of kind sim, and soft was asked for", "soft")
	t.Setenv("RDMASHIM_DEVICE", "soft:127.0.0.3")
	opened("127.0.0.3", `^soft:127\.0\.0\.3$`)
	refused("127.0.0.4", syscall.EADDRNOTAVAIL, "RDMASHIM_DEVICE=soft:127.0.0.3 is on 127.0.0.3, not 127.0.0.4")
	opened("", `^soft:127\.0\.0\.3$`)
	t.Setenv("RDMASHIM_DEVICE", "rxe0")
	refused("127.0.0.1", syscall.EADDRNOTAVAIL, "RDMASHIM_DEVICE=rxe0 does not have the address 127.0.0.1")
	t.Setenv("RDMASHIM_DEVICE", "soft?los=1%")
	refused("127.0.0.1", syscall.EINVAL, "RDMASHIM_DEVICE=soft?los=1%")
	_, err = OpenLocal("127.0.0.3", OpenConfig{Device: "soft:127.0.0.4"})
	require.ErrorContains(t, err, ": soft:127.0.0.4 is on 127.0.0.4, not 127.0.0.3", "the program's word is before the variable's")
}
