package shm

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/rnic/link/udp"
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/tests/netns"
)

// peerAt marks the run of this test binary as another process with a device.
const peerAt = "RDMASHIM_TEST_SHM_PEER"

// TestPeerProcess is the program that startPeer starts. Its device has the
// options of the environment.
func TestPeerProcess(t *testing.T) {
	at := os.Getenv(peerAt)
	if at == "" {
		return
	}
	if a := netip.MustParseAddrPort(at).Addr(); !a.IsLoopback() && os.Geteuid() == 0 {
		addLo(t, a)
	}
	// Without lo, as in a namespace that was just made, there is no UDP; but
	// addresses of lo can be bound.
	inner := must.Get(udp.Listen(netip.MustParseAddrPort(at), udp.Options{}))(t)
	o := must.Get(EnvOptions())(t)
	l, err := Wrap(inner, o)
	if errors.Is(err, ErrTwice) {
		fmt.Println("twice")
		require.NoError(t, inner.Close())
		return
	}
	require.NoError(t, err)
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
	require.NoError(t, l.Close())
}

// peer is another process with a device.
type peer struct {
	*exec.Cmd
	in  io.Closer // whose end ends it
	out io.Reader
}

// startPeer starts one, with env, NAME=VALUE, besides the environment, and
// returns the first line that it prints. An error says that it cannot be
// started.
func startPeer(t *testing.T, at netip.AddrPort, attr syscall.SysProcAttr, env ...string) (p peer, line string, err error) {
	t.Helper()
	p.Cmd = exec.Command("/proc/self/exe", "-test.run=^TestPeerProcess$")
	p.Env = append(append(os.Environ(), peerAt+"="+at.String()), env...)
	p.SysProcAttr, p.Stderr = &attr, os.Stderr
	p.in, err = p.StdinPipe()
	require.NoError(t, err)
	p.out, err = p.StdoutPipe()
	require.NoError(t, err)
	if err = p.Start(); err == nil {
		text := bufio.NewReader(p.out)
		line, _ = text.ReadString('\n')
		p.out, line = text, strings.TrimSpace(line)
	}
	return p, line, err
}

// end waits for the peer, which its standard input ends.
func (p *peer) end() error {
	p.in.Close()
	_, _ = io.Copy(io.Discard, p.out)
	return p.Wait()
}

// Devices of two processes meet if their processes share a network namespace,
// as the containers of one pod do, and only then.
func TestNamespaces(t *testing.T) {
	if !netns.Own(t) {
		return
	}
	a := listen(t)
	there := netip.MustParseAddrPort("127.0.0.1:4796")
	for _, flags := range []uintptr{0, unix.CLONE_NEWNET} {
		p, line, err := startPeer(t, there, syscall.SysProcAttr{Cloneflags: flags})
		require.NoError(t, err)
		require.Equal(t, "ready", line)
		if flags == 0 {
			require.NoError(t, Probe(Options{}, there))
			require.NotZero(t, a.Meet(there))
		} else {
			require.ErrorIs(t, Probe(Options{}, there), syscall.ECONNREFUSED)
			require.Zero(t, a.Meet(there))
		}
		require.NoError(t, p.end())
		until(func() bool { return a.outsLeft() == 0 })
	}
	require.Zero(t, counter(a, "shm_fallback"))
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
