package shm

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"strconv"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/rnic/link/udp"
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/tests/netns"
)

// here and there are global addresses, whose devices meet in a directory.
var here, there = netip.MustParseAddrPort("10.99.0.1:4796"), netip.MustParseAddrPort("10.99.0.2:4796")

// addLo gives lo an address, and brings it up.
func addLo(t *testing.T, a netip.Addr) {
	t.Helper()
	lo := must.Get(netlink.LinkByName("lo"))(t)
	require.NoError(t, netlink.LinkSetUp(lo))
	err := netlink.AddrAdd(lo, &netlink.Addr{IPNet: &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(32, 32)}})
	if !errors.Is(err, syscall.EEXIST) {
		require.NoError(t, err)
	}
}

// meetingDir makes a directory whose name is short, as a socket's must be.
func meetingDir(t *testing.T) string {
	t.Helper()
	dir := must.Get(os.MkdirTemp("", "shm"))(t)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// wrapHere opens the device at here.
func wrapHere(t *testing.T, o Options) (*Link, error) {
	t.Helper()
	inner := must.Get(udp.Listen(here, udp.Options{}))(t)
	l, err := Wrap(inner, o)
	if err != nil {
		require.NoError(t, inner.Close())
	}
	return l, err
}

// Devices of two containers, with namespaces of their own for the network,
// mounts, processes and users, meet in a directory that both have. What a
// killed one leaves there is removed, and of two with one address the second is
// refused.
func TestSharedDirectory(t *testing.T) {
	if !netns.Own(t) {
		return
	}
	o := Options{Dir: meetingDir(t)}
	addLo(t, here.Addr())
	a := must.Get(wrapHere(t, o))(t)
	require.Zero(t, a.Meet(there), "nobody is there")
	container := syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWNET | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
	}
	for range 2 { // again after a kill
		p, line, err := startPeer(t, there, container, EnvDir+"="+o.Dir)
		require.NoError(t, err)
		require.Equal(t, "ready", line)
		require.ErrorIs(t, Probe(Options{}, there), syscall.ECONNREFUSED, "its network is another")
		require.NoError(t, Probe(o, there))
		require.NotZero(t, a.Meet(there))
		require.NoError(t, p.Process.Kill())
		_ = p.end()
		until(func() bool { return a.outsLeft() == 0 })
		require.ErrorIs(t, Probe(o, there), syscall.ECONNREFUSED)
	}
	p, line, err := startPeer(t, here, container, EnvDir+"="+o.Dir)
	require.NoError(t, err)
	require.Equal(t, "twice", line)
	require.NoError(t, p.end())
	require.Zero(t, counter(a, "shm_fallback"))

	entries := func() (names []string) {
		list := must.Get(os.ReadDir(o.Dir))(t)
		for _, e := range list {
			info := must.Get(e.Info())(t)
			require.Equal(t, os.ModeSocket|0o600, info.Mode())
			names = append(names, e.Name())
		}
		return names
	}
	require.Len(t, entries(), 4, "of two devices, one of them killed")
	require.NoError(t, a.Close())
	require.Len(t, entries(), 2)
	a = must.Get(wrapHere(t, o))(t)
	require.Len(t, entries(), 3, "the bell of the killed one is gone")
	require.NoError(t, a.Close())

	require.NoError(t, os.Chmod(o.Dir, 0o755))
	must.Fail(wrapHere(t, o))(t, syscall.EPERM, "others reach the directory")
}

// Devices of two users meet, in a directory or by abstract names, only if each
// names the other's user.
func TestOtherUsers(t *testing.T) {
	if !netns.Own(t) {
		return
	}
	const other = 4796 // and 4797, nobody's in particular
	us := os.Geteuid()
	addLo(t, here.Addr())
	addLo(t, there.Addr())
	dir := meetingDir(t)
	if os.Chown(dir, us, other) != nil {
		t.Skip("no other user to be had; run as root")
	}
	for _, test := range []struct {
		dir          string
		ours, theirs int
		met          bool
	}{
		{"", us, other, false},
		{"", other, other, false},
		{"", us, us, false},
		{"", other, us, true},
		{dir, other, us, true},
		{dir, other, other + 1, false},
	} {
		require.NoError(t, os.Chmod(dir, 0o770|os.ModeSticky))
		o := Options{Dir: test.dir, Users: []int{test.ours}}
		a := must.Get(wrapHere(t, o))(t)
		p, line, err := startPeer(t, there, syscall.SysProcAttr{Credential: &syscall.Credential{Uid: other, Gid: other}},
			EnvDir+"="+test.dir, EnvUsers+"=7,"+strconv.Itoa(test.theirs))
		require.NoError(t, err)
		require.Equal(t, "ready", line, "%+v", test)
		if test.ours != other {
			require.ErrorIs(t, Probe(o, there), syscall.EPERM)
		}
		require.Equal(t, test.met, a.Meet(there) != 0, "%+v", test)
		require.Equal(t, test.met, counter(a, "shm_fallback") == 0)
		require.NoError(t, p.end())
		require.NoError(t, a.Close())
	}
	for _, mode := range []os.FileMode{0o770, 0o777 | os.ModeSticky} {
		require.NoError(t, os.Chmod(dir, mode))
		must.Fail(wrapHere(t, Options{Dir: dir, Users: []int{other}}))(t, syscall.EPERM, "%v", mode)
	}
	require.NoError(t, os.Chmod(dir, 0o700))
	require.NoError(t, os.Chown(dir, other, other))
	_, err := wrapHere(t, Options{Dir: dir, Users: []int{other + 1}})
	require.ErrorIs(t, err, syscall.EPERM, "another user's")
}

// TestEnvOptions: users are numbers, and one that stands for many is none.
func TestEnvOptions(t *testing.T) {
	t.Setenv(EnvDir, "/run/shm")
	t.Setenv(EnvUsers, "1000,0")
	o := must.Get(EnvOptions())(t)
	require.Equal(t, Options{Dir: "/run/shm", Users: []int{1000, 0}}, o)
	for _, text := range []string{"root", "1000;0", "-1", "4294967296", "65534"} {
		t.Setenv(EnvUsers, text)
		must.Fail(EnvOptions())(t, syscall.EINVAL, text)
	}
}

// TestNameOfEnding: a device that comes when another one ends gets the name,
// which that one has for a moment longer than its port; a name that is kept is
// EADDRINUSE.
func TestNameOfEnding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := unixAddr(own(12))
		other := must.Get(net.ListenUnix("unixpacket", at))(t)
		_, err := takeName(at)
		require.ErrorIs(t, err, syscall.EADDRINUSE)
		taken := make(chan error, 1)
		go func() {
			l, err := takeName(at)
			if err == nil {
				err = l.Close()
			}
			taken <- err
		}()
		synctest.Wait() // until it waits for the name
		require.NoError(t, other.Close())
		require.NoError(t, <-taken)
	})
}
