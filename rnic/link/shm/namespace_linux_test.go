package shm

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/rnic/link/udp"
	"github.com/rdmashim/rdmashim/tests/netns"
)

// peerAt marks the run of this test binary as another process with a device.
const peerAt = "RDMASHIM_TEST_SHM_PEER"

// TestPeerProcess is the program that TestNamespaces starts.
func TestPeerProcess(t *testing.T) {
	at := os.Getenv(peerAt)
	if at == "" {
		return
	}
	dir := os.Getenv(EnvDir)
	if dir != "" {
		addLo(t, netip.MustParseAddrPort(at).Addr())
	}
	// Without lo, as in a namespace that was just made, there is no UDP; but
	// addresses of lo can be bound.
	inner, err := udp.Listen(netip.MustParseAddrPort(at), udp.Options{})
	require.NoError(t, err)
	l, err := Wrap(inner, Options{Dir: dir})
	require.NoError(t, err)
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
	require.NoError(t, l.Close())
}

// Devices of two processes meet if their processes share a network namespace,
// as the containers of one pod do, and only then.
func TestNamespaces(t *testing.T) {
	if !netns.Own(t) {
		return
	}
	a := listen(t)
	peer := netip.MustParseAddrPort("127.0.0.1:4796")
	for _, flags := range []uintptr{0, unix.CLONE_NEWNET} {
		cmd := exec.Command("/proc/self/exe", "-test.run=^TestPeerProcess$")
		cmd.Env = append(os.Environ(), peerAt+"="+peer.String())
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags}
		in, err := cmd.StdinPipe()
		require.NoError(t, err)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		text, err := bufio.NewReader(out).ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "ready\n", text)
		if flags == 0 {
			require.NoError(t, Probe("", peer))
			require.NotZero(t, a.Meet(peer))
		} else {
			require.ErrorIs(t, Probe("", peer), syscall.ECONNREFUSED)
			require.Zero(t, a.Meet(peer))
		}
		require.NoError(t, in.Close())
		_, _ = io.Copy(io.Discard, out)
		require.NoError(t, cmd.Wait())
		until(func() bool { return a.outsLeft() == 0 })
	}
	require.Zero(t, counter(a, "shm_fallback"))
}

// addLo gives lo an address, and brings it up.
func addLo(t *testing.T, a netip.Addr) {
	t.Helper()
	lo, err := netlink.LinkByName("lo")
	require.NoError(t, err)
	require.NoError(t, netlink.LinkSetUp(lo))
	require.NoError(t, netlink.AddrAdd(lo, &netlink.Addr{IPNet: &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(32, 32)}}))
}

// Devices of two containers, with namespaces of their own for the network,
// mounts, processes and users, meet in a directory that both have. What a
// killed one leaves there is removed.
func TestSharedDirectory(t *testing.T) {
	if !netns.Own(t) {
		return
	}
	dir, err := os.MkdirTemp("", "shm") // a socket's name is short
	require.NoError(t, err)
	defer os.RemoveAll(dir)
	at, peer := netip.MustParseAddrPort("10.99.0.1:4796"), netip.MustParseAddrPort("10.99.0.2:4796")
	addLo(t, at.Addr())
	open := func() *Link {
		inner, err := udp.Listen(at, udp.Options{})
		require.NoError(t, err)
		l, err := Wrap(inner, Options{Dir: dir})
		require.NoError(t, err)
		return l
	}
	a := open()
	require.Zero(t, a.Meet(peer), "nobody is there")
	for range 2 { // again after a kill
		cmd := exec.Command("/proc/self/exe", "-test.run=^TestPeerProcess$")
		cmd.Env = append(os.Environ(), peerAt+"="+peer.String(), EnvDir+"="+dir)
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  unix.CLONE_NEWNET | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
		}
		in, err := cmd.StdinPipe()
		require.NoError(t, err)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		text, err := bufio.NewReader(out).ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "ready\n", text)
		require.ErrorIs(t, Probe("", peer), syscall.ECONNREFUSED, "its network is another")
		require.NoError(t, Probe(dir, peer))
		require.NotZero(t, a.Meet(peer))
		require.NoError(t, cmd.Process.Kill())
		_, _ = io.Copy(io.Discard, out)
		require.NoError(t, in.Close())
		_ = cmd.Wait()
		until(func() bool { return a.outsLeft() == 0 })
		require.ErrorIs(t, Probe(dir, peer), syscall.ECONNREFUSED)
	}
	entries := func() (names []string) {
		list, err := os.ReadDir(dir)
		require.NoError(t, err)
		for _, e := range list {
			info, err := e.Info()
			require.NoError(t, err)
			require.Equal(t, os.ModeSocket|0o600, info.Mode())
			names = append(names, e.Name())
		}
		return names
	}
	require.Len(t, entries(), 4, "of two devices, one of them killed")
	require.NoError(t, a.Close())
	require.Len(t, entries(), 2)
	a = open()
	require.Len(t, entries(), 3, "the bell of the killed one is gone")
	require.NoError(t, a.Close())

	require.NoError(t, os.Chmod(dir, 0o755))
	inner, err := udp.Listen(at, udp.Options{})
	require.NoError(t, err)
	defer inner.Close()
	_, err = Wrap(inner, Options{Dir: dir})
	require.ErrorIs(t, err, syscall.EPERM, "others reach the directory")
}

// Devices with link-local addresses meet on one network device only: the same
// address on another one is another host's.
func TestZones(t *testing.T) {
	if !netns.Own(t) {
		return
	}
	at := func(device, addr string) netip.AddrPort {
		l, err := netlink.LinkByName(device)
		if err != nil {
			require.NoError(t, netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: device}, PeerName: device + "x"}))
			l, err = netlink.LinkByName(device)
		}
		require.NoError(t, err)
		require.NoError(t, netlink.LinkSetUp(l))
		ip := &net.IPNet{IP: net.ParseIP(addr), Mask: net.CIDRMask(64, 128)}
		require.NoError(t, netlink.AddrAdd(l, &netlink.Addr{IPNet: ip, Flags: unix.IFA_F_NODAD}))
		return netip.AddrPortFrom(netip.MustParseAddr(addr).WithZone(device), 0)
	}
	a, near, far := listenAt(t, at("a", "fe80::1")), listenAt(t, at("a", "fe80::2")), listenAt(t, at("b", "fe80::3"))
	require.NotZero(t, near.Meet(a.local))
	require.NotZero(t, a.Meet(near.local))
	require.Zero(t, far.Meet(a.local))
}
