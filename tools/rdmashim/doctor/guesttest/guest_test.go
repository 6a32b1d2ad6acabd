//go:build guest && linux

package guesttest

import (
	"bytes"
	"encoding/json"
	"errors"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/netlinkmgr"
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/tools/rdmashim/doctor"
)

const (
	nobody = 65534
	// patience bounds every wait: an emulated processor is slow.
	patience = time.Minute
)

// way is how the doctor is run: by this process, but where the tool is asked
// for or another user or namespace is.
type way struct {
	tool    bool
	device  string // empty: rxe0
	peer    netip.Addr
	user    uint32
	netns   bool  // in a network namespace of its own
	memlock int64 // limit in bytes, if not 0
}

// run runs the doctor and checks that exit status and report agree.
func run(t *testing.T, w way) *doctor.Report {
	t.Helper()
	if w.device == "" {
		w.device = "rxe0"
	}
	if w.memlock != 0 {
		var old unix.Rlimit
		require.NoError(t, unix.Getrlimit(unix.RLIMIT_MEMLOCK, &old))
		require.NoError(t, unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{Cur: uint64(w.memlock), Max: old.Max}))
		defer func() { require.NoError(t, unix.Setrlimit(unix.RLIMIT_MEMLOCK, &old)) }()
	}
	if !w.tool && w.user == 0 && !w.netns {
		r, err := doctor.Run(t.Context(), must.Get(doctor.Running())(t), doctor.Options{Device: w.device, Peer: w.peer})
		require.NoError(t, err)
		return r
	}
	args := []string{"doctor", "-j", w.device}
	if w.peer.IsValid() {
		args = append(args, "--peer", w.peer.String())
	}
	cmd := exec.CommandContext(t.Context(), "rdmashim", args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	if w.user != 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: w.user, Gid: w.user}
	}
	if w.netns {
		cmd.SysProcAttr.Cloneflags = unix.CLONE_NEWNET
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	var r doctor.Report
	require.NoError(t, json.Unmarshal(out, &r), "%s%s", out, stderr.String())
	require.Empty(t, stderr.String())
	require.Equal(t, r.OK, err == nil, "exit status %v", err)
	return &r
}

func find(t *testing.T, r *doctor.Report, name string) doctor.Check {
	t.Helper()
	for _, c := range r.Checks {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("no check %s", name)
	return doctor.Check{}
}

func expect(t *testing.T, w way, check string, status doctor.Status, says, fix string) *doctor.Report {
	t.Helper()
	r := run(t, w)
	c := find(t, r, check)
	require.Equal(t, status, c.Status, "%+v", c)
	require.Contains(t, c.Detail, says)
	require.Contains(t, c.Fix, fix)
	return r
}

func link(t *testing.T, name string) netlink.Link {
	t.Helper()
	l := must.Get(netlink.LinkByName(name))(t)
	return l
}

// ensure has rxe0 up again, with all modules.
func ensure(t *testing.T) *netlinkmgr.Result {
	t.Helper()
	r, err := netlinkmgr.Ensure(t.Context(), netlinkmgr.EnsureOptions{Name: "rxe0", Timeout: patience, Modules: []string{"rdma_ucm"}})
	require.NoError(t, err)
	return r
}

func TestHealthy(t *testing.T) {
	ensure(t)
	for _, w := range []way{{tool: true}, {user: nobody}} {
		r := run(t, w)
		require.True(t, r.OK, "%+v", r)
		require.Equal(t, "host:rxe0", r.Device)
		for _, c := range r.Checks {
			if c.Name == "memlock" && w.user == nobody {
				require.Equal(t, doctor.Warn, c.Status)
				continue
			}
			require.Contains(t, []doctor.Status{doctor.Pass, doctor.Skip}, c.Status, "user %d: %+v", w.user, c)
		}
		for _, name := range []string{"modules", "netns", "files", "netdev", "mtu", "port", "gid", "hardware", "route", "source-route", "rp_filter", "udp-port", "loopback"} {
			require.Equal(t, doctor.Pass, find(t, r, name).Status, name)
		}
	}
}

func TestNoRoute(t *testing.T) {
	netdev := ensure(t).NetDev
	expect(t, way{tool: true, peer: netip.MustParseAddr("203.0.113.9")}, "route", doctor.Fail, "no route to the peer 203.0.113.9", "dev "+netdev)
}

func TestNetDevDown(t *testing.T) {
	netdev := ensure(t).NetDev
	require.NoError(t, netlink.LinkSetDown(link(t, netdev)))
	defer ensure(t)
	r := expect(t, way{}, "netdev", doctor.Fail, netdev+" is down", "ip link set "+netdev+" up")
	for _, above := range []string{"port", "gid"} {
		c := find(t, r, above)
		require.Equal(t, doctor.Fail, c.Status, "%+v", c)
		require.Equal(t, "ip link set "+netdev+" up", c.Fix, "what mends the network device mends the %s", above)
	}
	require.Equal(t, doctor.Fail, find(t, r, "loopback").Status)
	require.NoError(t, netlink.LinkSetUp(link(t, netdev)))
	ensure(t)
	require.Equal(t, doctor.Pass, find(t, run(t, way{}), "netdev").Status)
}

func TestSmallMTU(t *testing.T) {
	l := link(t, ensure(t).NetDev)
	old := l.Attrs().MTU
	require.NoError(t, netlink.LinkSetMTU(l, 700))
	defer func() { require.NoError(t, netlink.LinkSetMTU(l, old)) }()
	expect(t, way{}, "mtu", doctor.Warn, "active MTU 512", "mtu 1500")
	require.NoError(t, netlink.LinkSetMTU(l, 300))
	expect(t, way{}, "mtu", doctor.Fail, "is 300: not even packets of 256 bytes", "mtu 1500")
}

func TestNoAddress(t *testing.T) {
	l := link(t, ensure(t).NetDev)
	addrs := must.Get(netlink.AddrList(l, netlink.FAMILY_ALL))(t)
	for i := range addrs {
		require.NoError(t, netlink.AddrDel(l, &addrs[i]))
	}
	defer ensure(t)
	defer func() {
		for i := range addrs {
			addrs[i].Flags |= unix.IFA_F_NODAD
			addrs[i].ValidLft, addrs[i].PreferedLft = 0, 0
			require.NoError(t, netlink.AddrReplace(l, &addrs[i]))
		}
	}()
	expect(t, way{}, "gid", doctor.Fail, "", "ip addr add")
}

func TestFiles(t *testing.T) {
	const path = "/dev/infiniband/uverbs0"
	ensure(t)
	require.NoError(t, os.Chmod(path, 0o600))
	defer func() { require.NoError(t, os.Chmod(path, 0o666)) }()
	r := expect(t, way{user: nobody}, "files", doctor.Fail, path+" may not be opened", "chmod a+rw "+path)
	require.Equal(t, "see files", find(t, r, "loopback").Fix)
	require.Equal(t, doctor.Pass, find(t, run(t, way{}), "files").Status, "root may")

	require.NoError(t, os.Rename(path, path+"-away"))
	expect(t, way{}, "files", doctor.Fail, path+" is not there", "udevadm trigger")
	require.NoError(t, os.Rename(path+"-away", path))

	const cm = "/dev/infiniband/rdma_cm"
	require.NoError(t, os.Rename(cm, cm+"-away"))
	defer func() { require.NoError(t, os.Rename(cm+"-away", cm)) }()
	expect(t, way{}, "files", doctor.Warn, cm, "modprobe rdma_ucm")
}

func TestMemlock(t *testing.T) {
	ensure(t)
	r := expect(t, way{user: nobody, memlock: 16 << 10}, "memlock", doctor.Fail, "16 KiB", "ulimit -l unlimited")
	require.Equal(t, doctor.Fail, find(t, r, "loopback").Status, "it is indeed too little")
	r = expect(t, way{user: nobody, memlock: 1 << 20}, "memlock", doctor.Warn, "1 MiB", "ulimit -l unlimited")
	require.Equal(t, doctor.Pass, find(t, r, "loopback").Status)
	expect(t, way{memlock: 16 << 10}, "memlock", doctor.Pass, "CAP_IPC_LOCK", "")
}

// TestOtherNamespace: in the shared mode the device is seen everywhere.
func TestOtherNamespace(t *testing.T) {
	netdev := ensure(t).NetDev
	r := expect(t, way{netns: true}, "netns", doctor.Fail, "its network device "+netdev+" is in another namespace", "soft device")
	require.Equal(t, doctor.Fail, find(t, r, "netdev").Status)
}

// TestExclusive: then the device is seen in its own namespace only.
func TestExclusive(t *testing.T) {
	ensure(t)
	m := must.Get(netlinkmgr.Open())(t)
	set := func(shared bool) { // a namespace that has ended is there for a while
		for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
			err := m.SetNetNS(t.Context(), shared)
			if !errors.Is(err, syscall.EBUSY) || time.Now().After(deadline) {
				require.NoError(t, err)
				return
			}
		}
	}
	set(false)
	defer set(true)
	require.True(t, run(t, way{}).OK)
	r := expect(t, way{netns: true}, "netns", doctor.Fail, "the mode is exclusive and rxe0 is not in this network namespace", "rdma dev set rxe0 netns NAMESPACE")
	require.Equal(t, doctor.Fail, find(t, r, "loopback").Status)
}

const inNamespace = "RDMASHIM_TEST_IN_NAMESPACE"

// TestNoSocketInNamespace: with its network device in another namespace than
// the initial one, rxe of Linux 6.1 receives nothing.
func TestNoSocketInNamespace(t *testing.T) {
	if os.Getenv(inNamespace) == "" {
		ensure(t)
		require.NoError(t, netlink.RdmaLinkDel("rxe0"))
		defer ensure(t)
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), inNamespace+"=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET}
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Contains(t, string(out), "--- PASS: "+t.Name())
		return
	}
	require.NoError(t, netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "v0"}, PeerName: "v1"}))
	a := must.Get(netlink.ParseAddr("10.77.0.1/24"))(t)
	require.NoError(t, netlink.AddrAdd(link(t, "v0"), a))
	for _, name := range []string{"lo", "v1", "v0"} {
		require.NoError(t, netlink.LinkSetUp(link(t, name)))
	}
	require.NoError(t, netlink.RdmaLinkAdd("rxe0", "rxe", "v0"))
	defer netlink.RdmaLinkDel("rxe0")
	r := expect(t, way{}, "netns", doctor.Fail, "has no UDP socket here (from Linux 7.1", "rdmashim doctor soft:10.77.0.1")
	require.Equal(t, doctor.Fail, find(t, r, "udp-port").Status)
}

func TestNoLink(t *testing.T) {
	ensure(t)
	require.NoError(t, netlink.RdmaLinkDel("rxe0"))
	defer ensure(t)
	r := expect(t, way{}, "loopback", doctor.Fail, "rxe0 does not open", "rdmashim link up --name rxe0")
	require.Equal(t, doctor.Pass, find(t, r, "modules").Status)
	require.Equal(t, doctor.Skip, find(t, r, "port").Status)
	// As said:
	out, err := exec.CommandContext(t.Context(), "rdmashim", "link", "up", "--name", "rxe0").CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.True(t, run(t, way{}).OK)
}

// TestModules unloads them, and lets another process have the port.
func TestModules(t *testing.T) {
	ensure(t)
	require.NoError(t, unix.DeleteModule("rdma_ucm", unix.O_NONBLOCK))
	defer ensure(t)
	expect(t, way{}, "modules", doctor.Warn, "rdma_ucm is not", "modprobe rdma_ucm")
	require.NoError(t, netlink.RdmaLinkDel("rxe0"))
	require.NoError(t, unix.DeleteModule("rdma_rxe", unix.O_NONBLOCK))
	r := expect(t, way{}, "modules", doctor.Fail, "not loaded: rdma_rxe", "rdmashim link up")
	require.Equal(t, doctor.Pass, find(t, r, "udp-port").Status)

	holder := must.Get(net.ListenPacket("udp", ":4791"))(t)
	defer holder.Close()
	pid := strconv.Itoa(os.Getpid())
	expect(t, way{tool: true}, "udp-port", doctor.Fail, "held by process "+pid, "kill "+pid)
}

// TestSoftBesideRXE: rdma_rxe has the port on every address, and an ordinary
// user gets the buffers that the system allows.
func TestSoftBesideRXE(t *testing.T) {
	netdev := link(t, ensure(t).NetDev)
	c := find(t, run(t, way{device: "soft"}), "udp-port")
	require.Equal(t, doctor.Warn, c.Status, "%+v", c)
	require.Contains(t, c.Detail, "rdma_rxe")
	require.Equal(t, "rmmod rdma_rxe", c.Fix)

	addrs := must.Get(netlink.AddrList(netdev, netlink.FAMILY_V4))(t)
	require.NotEmpty(t, addrs)
	expect(t, way{device: "soft:" + addrs[0].IP.String()}, "udp-port", doctor.Fail, "held by rdma_rxe", "rmmod rdma_rxe")

	const limit = "/proc/sys/net/core/rmem_max"
	old := must.Get(os.ReadFile(limit))(t)
	defer func() { require.NoError(t, os.WriteFile(limit, old, 0)) }()
	require.NoError(t, os.WriteFile(limit, []byte("212992"), 0))
	expect(t, way{device: "soft", user: nobody}, "buffers", doctor.Warn, "208 KiB to receive", "sysctl -w net.core.rmem_max=4194304")
	expect(t, way{device: "soft"}, "buffers", doctor.Pass, "CAP_NET_ADMIN; others get net.core.rmem_max, 212992", "")
}
