//go:build guest && linux

package doctor

import (
	"encoding/json"
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/netlinkmgr"
)

const (
	nobody = 65534
	// patience bounds a wait: an emulated processor is slow.
	patience = time.Minute
)

var rxe0 = Options{Device: "rxe0"}

// healthy makes rxe0 on eth0 usable again, as 'rdmashim link up' does.
func healthy(t *testing.T) {
	t.Helper()
	_, err := netlinkmgr.Ensure(t.Context(), netlinkmgr.EnsureOptions{Name: "rxe0", NetDev: "eth0", Timeout: patience, Modules: []string{"rdma_ucm", "ib_umad"}})
	require.NoError(t, err)
}

// eth0 is the network device below rxe0.
func eth0(t *testing.T) netlink.Link {
	t.Helper()
	l, err := netlink.LinkByName("eth0")
	require.NoError(t, err)
	return l
}

// becomes runs the doctor until a check is as expected: the kernel changes ports
// and GIDs a moment after their network device.
func becomes(t *testing.T, check string, status Status, says, fix string) *Report {
	t.Helper()
	for end := time.Now().Add(patience); ; {
		r := really(t, rxe0)
		if find(t, r, check).Status == status || time.Now().After(end) {
			c := find(t, r, check)
			require.Equal(t, status, c.Status, "%+v", c)
			require.Contains(t, c.Detail, says)
			require.Contains(t, c.Fix, fix)
			return r
		}
	}
}

// examined is what the command says to a user, or in another network namespace.
func examined(t *testing.T, attr *syscall.SysProcAttr) *Report {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "rdmashim", "doctor", "-j", "rxe0")
	cmd.SysProcAttr, cmd.Stderr = attr, os.Stderr
	text, err := cmd.Output()
	var status *exec.ExitError
	require.True(t, err == nil || errors.As(err, &status), "%v", err)
	r := &Report{}
	require.NoError(t, json.Unmarshal(text, r), "%s", text)
	require.Equal(t, map[bool]int{true: 0, false: 1}[r.OK], cmd.ProcessState.ExitCode())
	return r
}

var asNobody = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}

func failed(t *testing.T, r *Report, check, says, fix string) {
	t.Helper()
	c := find(t, r, check)
	require.Equal(t, Fail, c.Status, "%+v", c)
	require.Contains(t, c.Detail, says)
	require.Contains(t, c.Fix, fix)
}

// TestRealKernel breaks rdma_rxe of a real kernel, one thing at a time, and mends it.
func TestRealKernel(t *testing.T) {
	m, err := netlinkmgr.Open()
	require.NoError(t, err)
	healthy(t)
	r := really(t, rxe0)
	require.True(t, r.OK, "%+v", r)
	for _, c := range r.Checks {
		require.Contains(t, []Status{Pass, Skip}, c.Status, "%+v", c)
	}
	require.Equal(t, Pass, find(t, examined(t, asNobody), "loopback").Status, "the guest gives its files to everybody")

	t.Run("kernel", func(t *testing.T) {
		s, err := Running()
		require.NoError(t, err)
		path := filepath.Join("/boot", "config-"+s.Kernel.Release)
		require.NoError(t, os.MkdirAll("/boot", 0o755))
		t.Cleanup(func() { require.NoError(t, os.Remove(path)) })
		require.NoError(t, os.WriteFile(path, []byte("CONFIG_INFINIBAND=m\nCONFIG_INFINIBAND_USER_ACCESS=m\n# CONFIG_RDMA_RXE is not set\n"), 0o644))
		expect(t, rxe0, "kernel", Fail, "without CONFIG_RDMA_RXE ("+path, "")
	})
	t.Run("files", func(t *testing.T) {
		const file = "/dev/infiniband/uverbs0"
		require.NoError(t, os.Chmod(file, 0o600))
		r := examined(t, asNobody)
		require.NoError(t, os.Chmod(file, 0o666))
		failed(t, r, "files", file+" may not be opened by this user", "chmod a+rw "+file)
		failed(t, r, "loopback", "permission denied", "see files")
		require.NoError(t, os.Rename(file, file+".away"))
		r = really(t, rxe0)
		require.NoError(t, os.Rename(file+".away", file))
		failed(t, r, "files", file+" is not there", "udevadm trigger")
	})
	t.Run("memlock", func(t *testing.T) {
		var old unix.Rlimit
		require.NoError(t, unix.Getrlimit(unix.RLIMIT_MEMLOCK, &old))
		require.NoError(t, unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{Cur: 16 << 10, Max: old.Max}))
		r := examined(t, asNobody)
		require.NoError(t, unix.Setrlimit(unix.RLIMIT_MEMLOCK, &old))
		failed(t, r, "memlock", "16 KiB", "ulimit -l unlimited")
		require.Equal(t, Fail, find(t, r, "loopback").Status)
	})
	t.Run("network device", func(t *testing.T) {
		t.Cleanup(func() { require.NoError(t, netlink.LinkSetUp(eth0(t))) })
		require.NoError(t, netlink.LinkSetDown(eth0(t)))
		r := becomes(t, "port", Fail, "port 1 is DOWN", "ip link set eth0 up")
		failed(t, r, "netdev", "eth0 is down", "ip link set eth0 up")
		failed(t, r, "gid", "eth0 is down", "ip link set eth0 up")
		failed(t, r, "loopback", "rxe0 does not open", "see netdev and port")
	})
	healthy(t)
	t.Run("MTU", func(t *testing.T) {
		t.Cleanup(func() { require.NoError(t, netlink.LinkSetMTU(eth0(t), 1500)) })
		require.NoError(t, netlink.LinkSetMTU(eth0(t), 700))
		becomes(t, "mtu", Warn, "active MTU 512", "ip link set eth0 mtu 1500")
		require.NoError(t, netlink.LinkSetMTU(eth0(t), 300))
		becomes(t, "mtu", Fail, "the MTU of eth0 is 300", "ip link set eth0 mtu 1500")
	})
	healthy(t)
	t.Run("address", func(t *testing.T) {
		list, err := netlink.AddrList(eth0(t), netlink.FAMILY_V4)
		require.NoError(t, err)
		require.Len(t, list, 1)
		require.NoError(t, netlink.AddrDel(eth0(t), &netlink.Addr{IPNet: list[0].IPNet}))
		t.Cleanup(func() { require.NoError(t, netlink.AddrAdd(eth0(t), &netlink.Addr{IPNet: list[0].IPNet})) })
		becomes(t, "gid", Warn, "only the link-local GID", "ip addr add ADDRESS/PREFIX dev eth0")
	})
	healthy(t)
	t.Run("route", func(t *testing.T) {
		expect(t, Options{Device: "rxe0", Peer: netip.MustParseAddr("203.0.113.9")}, "route", Fail, "no route to the peer 203.0.113.9", "dev eth0 src 10.77.0.1")
	})
	t.Run("network namespace", func(t *testing.T) {
		failed(t, examined(t, &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET}), "netns", "its network device eth0 is in another namespace", "soft device")
	})
	t.Run("modules", func(t *testing.T) {
		require.NoError(t, unix.DeleteModule("rdma_ucm", unix.O_NONBLOCK))
		expect(t, rxe0, "modules", Warn, "rdma_ucm is not", "modprobe rdma_ucm")
		require.NoError(t, m.DeleteLink(t.Context(), "rxe0"))
		require.NoError(t, m.SetNetNS(t.Context(), false))
		expect(t, rxe0, "netns", Fail, "the mode is exclusive and rxe0 is not in", "rdmashim dev set rxe0 netns PID")
		require.NoError(t, m.SetNetNS(t.Context(), true))
		require.NoError(t, unix.DeleteModule("rdma_rxe", unix.O_NONBLOCK))
		r := expect(t, rxe0, "modules", Fail, "not loaded: rdma_rxe", "rdmashim link up")
		require.Equal(t, Pass, find(t, r, "udp-port").Status)
		pid := strconv.Itoa(hold(t, ":4791"))
		expect(t, rxe0, "udp-port", Fail, "which rdma_rxe needs, is held by process "+pid, "kill "+pid)
	})
	healthy(t)
	require.True(t, really(t, rxe0).OK)
}
