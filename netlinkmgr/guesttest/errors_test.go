//go:build guest && linux

package guesttest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/u-root/u-root/pkg/kmodule"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/netlinkmgr"
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/tests/netlinktest"
)

// nobody is a user without any privilege.
const nobody = 65534

// TestBadModule: a file that is no module of this kernel.
func TestBadModule(t *testing.T) {
	m := bare(t)
	veth(t, "ta", "tb", "10.78.0.1/24")
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "modules.dep"), []byte("rdma_rxe.ko: crc32_generic.ko\ncrc32_generic.ko:\n"), 0o644))
	image := moduleFile(t, "crc32_generic")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "crc32_generic.ko"), image, 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "rdma_rxe.ko"), []byte(strings.Repeat("no module ", 100)), 0o644))
	modulesAre(t, dir)
	_, err := m.Ensure(t.Context(), netlinkmgr.EnsureOptions{NetDev: "ta"})
	require.ErrorAs(t, err, new(*netlinkmgr.ModuleError))
	require.ErrorIs(t, err, syscall.ENOEXEC)
	require.Contains(t, err.Error(), "not built for the running kernel")
	require.Empty(t, loaded(t), "the first module is unloaded again")
}

// modulesAre has the kernel's modules looked for in a directory.
func modulesAre(t *testing.T, dir string) {
	k := must.Get(netlinkmgr.Running())(t)
	place := "/lib/modules/" + k.Release
	require.NoError(t, unix.Mount(dir, place, "", unix.MS_BIND, ""))
	t.Cleanup(func() { _ = unix.Unmount(place, unix.MNT_DETACH) })
}

func moduleFile(t *testing.T, name string) []byte {
	var found string
	require.NoError(t, filepath.Walk("/lib/modules", func(p string, _ os.FileInfo, err error) error {
		if filepath.Base(p) == name+".ko" {
			found = p
		}
		return err
	}))
	return must.Get(os.ReadFile(found))(t)
}

func TestNoPermission(t *testing.T) {
	m := bare(t)
	veth(t, "ta", "tb", "10.78.0.1/24")
	o := run(t, nobody, "rdmashim", "link", "up", "ta")
	require.Equal(t, 1, o.code)
	require.Contains(t, o.stderr, "CAP_SYS_MODULE")
	require.Empty(t, o.stdout)
	require.Empty(t, loaded(t))

	// With the modules loaded, it is the link that may not be made.
	ensure(t, "ta")
	require.NoError(t, m.DeleteLink(t.Context(), "rxe0"))
	for _, line := range []string{"link up ta", "link add rxe0 type rxe netdev ta"} {
		o = run(t, nobody, "rdmashim", strings.Fields(line)...)
		require.Equal(t, 1, o.code)
		require.Contains(t, o.stderr, "CAP_NET_ADMIN", line)
	}
	require.NoError(t, netlink.LinkSetDown(link(t, "ta")))
	o = run(t, nobody, "rdmashim", "link", "up", "ta")
	require.Contains(t, o.stderr, "bring ta up: no permission")
	require.NoError(t, netlink.LinkSetUp(link(t, "ta")))
	ensure(t, "ta")
	o = run(t, nobody, "rdmashim", "link", "delete", "rxe0")
	require.Equal(t, 1, o.code)
	require.Contains(t, o.stderr, "CAP_NET_ADMIN")
	require.Zero(t, run(t, nobody, "rdmashim", "link", "show").code, "anybody may look")
	require.Zero(t, run(t, nobody, "rdmashim", "link", "up", "ta").code, "nor is it needed when the link is there")
}

// TestNetDevGone: it was never there, or goes just before the link is made.
func TestNetDevGone(t *testing.T) {
	m := bare(t)
	_, err := m.Ensure(t.Context(), netlinkmgr.EnsureOptions{NetDev: "nosuch"})
	var e *netlinkmgr.NetDevGoneError
	require.ErrorAs(t, err, &e)
	require.Contains(t, e.Known, "lo")

	veth(t, "ta", "tb", "10.78.0.1/24")
	l := link(t, "ta")
	_, err = m.Ensure(t.Context(), netlinkmgr.EnsureOptions{NetDev: "ta", Log: func(step string) {
		if strings.HasPrefix(step, "add link") {
			_ = netlink.LinkDel(l)
		}
	}})
	require.ErrorAs(t, err, &e)
	require.ErrorIs(t, err, syscall.ENODEV)
	require.Empty(t, loaded(t), "modules are unloaded again")
}

// TestNetDevGoesLater: with the network device, the kernel takes the link away.
func TestNetDevGoesLater(t *testing.T) {
	m := noLinks(t)
	veth(t, "ta", "tb", "10.78.0.1/24")
	require.NoError(t, netlink.LinkSetDown(link(t, "tb")))
	l := link(t, "ta")
	_, err := m.Ensure(t.Context(), netlinkmgr.EnsureOptions{NetDev: "ta", Timeout: patience, Log: func(step string) {
		if strings.HasPrefix(step, "add link") {
			go func() {
				for {
					if _, err := m.Device(t.Context(), "rxe0"); err == nil {
						_ = netlink.LinkDel(l)
						return
					}
				}
			}()
		}
	}})
	require.ErrorIs(t, err, syscall.ENODEV)
	require.Less(t, len(err.Error()), 300)
}

func TestVLAN(t *testing.T) {
	m := noLinks(t)
	veth(t, "ta", "tb", "10.78.0.1/24")
	ensure(t, "ta")
	require.NoError(t, m.DeleteLink(t.Context(), "rxe0"))
	require.NoError(t, kmodule.Probe("8021q", ""))
	v := &netlink.Vlan{LinkAttrs: netlink.LinkAttrs{Name: "ta.5", ParentIndex: link(t, "ta").Attrs().Index}, VlanId: 5}
	require.NoError(t, netlink.LinkAdd(v))
	_, err := m.Ensure(t.Context(), netlinkmgr.EnsureOptions{NetDev: "ta.5"})
	require.ErrorAs(t, err, new(*netlinkmgr.NetDevUnsuitableError))
	// The kernel says EPERM there, which is not about privileges.
	o := ours(t, "link add rxe0 type rxe netdev ta.5")
	require.Equal(t, 1, o.code)
	require.Contains(t, o.stderr, "VLAN")
}

// TestNotReady: no address, or no carrier.
func TestNotReady(t *testing.T) {
	m := bare(t)
	veth(t, "ta", "tb", "10.78.0.1/24")
	require.NoError(t, netlink.LinkSetDown(link(t, "tb")))
	_, err := m.Ensure(t.Context(), netlinkmgr.EnsureOptions{NetDev: "ta", Timeout: time.Second})
	var e *netlinkmgr.NotReadyError
	require.ErrorAs(t, err, &e)
	require.ErrorIs(t, err, syscall.ETIMEDOUT)
	require.Contains(t, e.Why, "no carrier")
	require.Empty(t, loaded(t), "nothing half-made stays")

	require.NoError(t, netlink.LinkSetUp(link(t, "tb")))
	addrs, err := netlink.AddrList(link(t, "ta"), netlink.FAMILY_ALL)
	for errors.Is(err, netlink.ErrDumpInterrupted) { // the address of tb came meanwhile
		addrs, err = netlink.AddrList(link(t, "ta"), netlink.FAMILY_ALL)
	}
	require.NoError(t, err)
	for _, a := range addrs {
		require.NoError(t, netlink.AddrDel(link(t, "ta"), &a))
	}
	_, err = m.Ensure(t.Context(), netlinkmgr.EnsureOptions{NetDev: "ta", Timeout: time.Second})
	require.ErrorAs(t, err, &e)
	require.Contains(t, err.Error(), "ip addr add")
	require.Empty(t, loaded(t))
}

func TestUnknownKind(t *testing.T) {
	noLinks(t)
	veth(t, "ta", "tb", "10.78.0.1/24")
	ensure(t, "ta")
	o := ours(t, "link add s0 type nosuch netdev ta")
	require.Equal(t, 1, o.code)
	require.Contains(t, o.stderr, `no link type "nosuch"`)
}

// TestRefusals: the errors that kshim/rdmanl imitates are this kernel's.
func TestRefusals(t *testing.T) {
	b := makeBusy(t)
	kernel := must.Get(netlinkmgr.Running())(t)
	d := must.Get(netlinkmgr.New(kernel).Device(t.Context(), b.r.Device))(t)
	for _, r := range netlinktest.Refusals(d.Index) {
		_, err := kernel.RDMA(t.Context(), r.Request)
		if r.Errno == 0 {
			require.NoError(t, err, r.Name)
		} else if !errors.Is(err, r.Errno) {
			t.Errorf("%s: %v, not %v", r.Name, err, r.Errno)
		}
	}
}
