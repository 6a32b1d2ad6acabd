//go:build guest && linux

package guesttest

import (
	"bytes"
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/netlinkmgr"
	"github.com/rdmashim/rdmashim/tests/must"
)

// patience bounds every wait: an emulated processor is slow.
const patience = time.Minute

// rdmaModules are the modules that Ensure loads and tests unload, users first.
var rdmaModules = []string{"rdma_ucm", "rdma_cm", "iw_cm", "ib_cm", "ib_umad", "rdma_rxe", "ib_uverbs", "ib_core", "ip6_udp_tunnel", "udp_tunnel", "crc32_generic"}

func manager(t *testing.T) *netlinkmgr.Manager {
	return must.Get(netlinkmgr.Open())(t)
}

// noLinks deletes all links, before the test and after it.
func noLinks(t *testing.T) *netlinkmgr.Manager {
	m := manager(t)
	clean := func() {
		devices, err := m.Devices(t.Context())
		var none *netlinkmgr.NoRDMAError
		if errors.As(err, &none) {
			return
		}
		require.NoError(t, err)
		for _, d := range devices {
			require.NoError(t, m.DeleteLink(t.Context(), d.Name))
		}
	}
	clean()
	t.Cleanup(func() { // the test's context has ended, and others' code serves as well
		links, _ := netlink.RdmaLinkList()
		for _, l := range links {
			_ = netlink.RdmaLinkDel(l.Attrs.Name)
		}
	})
	return m
}

// bare unloads all of RDMA.
func bare(t *testing.T) *netlinkmgr.Manager {
	m := noLinks(t)
	for range rdmaModules {
		for _, name := range rdmaModules {
			_ = unix.DeleteModule(name, unix.O_NONBLOCK)
		}
	}
	require.Empty(t, loaded(t), "modules stay loaded")
	return m
}

// loaded lists those of rdmaModules that are loaded.
func loaded(t *testing.T) (list []string) {
	for _, name := range rdmaModules {
		if _, err := os.Stat("/sys/module/" + name); err == nil {
			list = append(list, name)
		}
	}
	return list
}

// veth makes a pair of network devices of which the first has an address.
func veth(t *testing.T, a, b, addr string) {
	require.NoError(t, netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: a}, PeerName: b}))
	l := link(t, a)
	t.Cleanup(func() { _ = netlink.LinkDel(l) })
	if addr != "" {
		parsed := must.Get(netlink.ParseAddr(addr))(t)
		require.NoError(t, netlink.AddrAdd(l, parsed))
	}
	require.NoError(t, netlink.LinkSetUp(link(t, b)))
	require.NoError(t, netlink.LinkSetUp(l))
}

func link(t *testing.T, name string) netlink.Link {
	return must.Get(netlink.LinkByName(name))(t)
}

func isUp(t *testing.T, name string) bool {
	return link(t, name).Attrs().Flags&net.FlagUp != 0
}

// ensure has a link made, for tests of something else.
func ensure(t *testing.T, netdev string, modules ...string) *netlinkmgr.Result {
	return must.Get(manager(t).Ensure(t.Context(), netlinkmgr.EnsureOptions{NetDev: netdev, Modules: modules, Timeout: patience}))(t)
}

func device(t *testing.T, name string) netlinkmgr.Device {
	return must.Get(manager(t).Device(t.Context(), name))(t)
}

// outcome is a command's output and exit status.
type outcome struct {
	code           int
	stdout, stderr string
}

// run runs a command; user 0 is root.
func run(t *testing.T, user uint32, name string, args ...string) outcome {
	cmd := exec.CommandContext(t.Context(), name, args...)
	if user != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%s: %v", name, err)
	}
	return outcome{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// ours runs the commands as a user calls them.
func ours(t *testing.T, line string) outcome {
	return run(t, 0, "rdmashim", strings.Fields(line)...)
}

// rows decodes a command's JSON.
func rows(t *testing.T, o outcome) (list []map[string]any) {
	require.Zero(t, o.code, "stderr: %s", o.stderr)
	require.NoError(t, json.Unmarshal([]byte(o.stdout), &list), o.stdout)
	return list
}
