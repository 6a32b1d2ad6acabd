package uapi

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// inNamespace marks the run of this test binary inside a network namespace of
// its own, where 127.0.0.1 is nobody else's.
const inNamespace = "RDMASHIM_TEST_IN_NAMESPACE"

// ownNamespace runs a test again in a network namespace of its own, with lo up.
// It reports whether this is that run.
func ownNamespace(t *testing.T) bool {
	t.Helper()
	if os.Getenv(inNamespace) == t.Name() {
		loopbackUp(t)
		t.Setenv("RDMASHIM_DEVICE", "")
		return true
	}
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), inNamespace+"="+t.Name())
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET}
	if os.Getuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	text, err := cmd.CombinedOutput()
	if len(text) == 0 && err != nil && os.Getenv("CI") != "true" {
		t.Skipf("no network namespace to be had (%v); run as root or allow user namespaces", err)
	}
	require.NoError(t, err, "%s", text)
	if m := skipped.FindSubmatch(text); m != nil && strings.Contains(string(text), "--- SKIP: "+t.Name()) {
		t.Skip(string(m[1]))
	}
	require.Contains(t, string(text), "--- PASS: "+t.Name())
	return false
}

// skipped is a line of a test's own in what go test prints.
var skipped = regexp.MustCompile(`(?m)^\s+\S+_test\.go:\d+: (.*)$`)

func loopbackUp(t *testing.T) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	defer unix.Close(fd)
	ifr, err := unix.NewIfreq("lo")
	require.NoError(t, err)
	require.NoError(t, unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, ifr))
	ifr.SetUint16(ifr.Uint16() | unix.IFF_UP)
	require.NoError(t, unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, ifr))
}

// TestDialLocalhost: the address of a name at which there is no device costs no
// time; where both IP versions have one, the one that listens is found although
// the default context begins at the other.
func TestDialLocalhost(t *testing.T) {
	if !ownNamespace(t) {
		return
	}
	named(t, "localhost", "::1", "127.0.0.1")
	server, err := Open("soft:[::1]")
	if errors.Is(err, syscall.EADDRNOTAVAIL) && os.Getenv("CI") != "true" {
		t.Skip("no ::1; enable IPv6: sysctl net.ipv6.conf.all.disable_ipv6=0: ", err)
	}
	require.NoError(t, err)
	defer server.Close()
	l, err := Listen("localhost:7000")
	require.NoError(t, err)
	require.Equal(t, "[::1]:7000", l.Addr().String())
	accepting(t, l)
	dial := func() {
		start := time.Now()
		qp, err := Dial(t.Context(), "localhost:7000", DialConfig{})
		require.NoError(t, err)
		c, err := Default()
		require.NoError(t, err)
		info, err := c.QueryConn(qp)
		require.NoError(t, err)
		require.Equal(t, "[::1]:7000", info.RemoteAddr.String())
		require.Less(t, time.Since(start), DefaultConnectTimeout/2, "no share was waited for")
		require.NoError(t, DestroyQP(qp))
		require.NoError(t, Close())
	}
	dial()
	other, err := Open("soft:127.0.0.1")
	require.NoError(t, err)
	defer other.Close()
	dial()
}

// TestSilentLast: only addresses of this host are known to have no device.
func TestSilentLast(t *testing.T) {
	if !ownNamespace(t) {
		return
	}
	c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.2:4791")))
	require.NoError(t, err)
	defer c.Close()
	var list, want []netip.AddrPort
	for _, a := range []string{"127.0.0.1:1", "192.0.2.1:1", "[::1]:1", "127.0.0.2:1"} {
		list = append(list, netip.MustParseAddrPort(a))
	}
	for _, i := range []int{1, 3, 0, 2} {
		want = append(want, list[i])
	}
	require.Equal(t, want, silentLast(list))
	require.Equal(t, []netip.Addr{list[0].Addr(), list[3].Addr(), list[2].Addr()}, loopbackListeners())
}
