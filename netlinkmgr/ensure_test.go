package netlinkmgr_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/netlinkmgr"
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/tests/netlinktest"
)

var moduleOrder = []string{"insert crc32_generic", "insert ib_core", "insert udp_tunnel", "insert ip6_udp_tunnel", "insert ib_uverbs", "insert rdma_rxe"}

// changes drops the steps that change nothing.
func changes(did []string) []string {
	return slices.DeleteFunc(slices.Clone(did), func(s string) bool { return s == "watch" })
}

func TestEnsureFromNothing(t *testing.T) {
	k := netlinktest.New()
	k.Dev("eth0").Up = false
	var log []string
	r, err := k.Manager().Ensure(t.Context(), netlinkmgr.EnsureOptions{
		Modules: []string{"rdma_ucm"},
		Log:     func(step string) { log = append(log, step) },
	})
	require.NoError(t, err)
	require.Equal(t, "rxe0", r.Device)
	require.Equal(t, "eth0", r.NetDev)
	require.Equal(t, netlinkmgr.PortActive, r.State)
	require.Equal(t, 1, r.GIDIndex, "IPv4 goes before the link-local entry 0")
	require.Equal(t, "::ffff:10.0.2.15", r.GID.String())
	require.Equal(t, netlinkmgr.GIDRoCEv2, r.GIDType)
	require.Equal(t, "/dev/infiniband/uverbs0", r.UVerbs)
	require.Empty(t, r.Warnings)
	require.Contains(t, r.Reasons[0], "eth0 was found: down, has an IPv4 address, has a default route")
	require.Contains(t, r.Reasons[0], "docker0: no carrier")
	require.Contains(t, r.Reasons[len(r.Reasons)-1], "first in the order")

	want := append(slices.Clone(moduleOrder), "insert rdma_ucm", "setup eth0", "newlink rxe0 rxe eth0")
	require.Equal(t, want, changes(k.Did))
	require.Len(t, log, len(want), "each change is logged")
	require.Equal(t, "add link rxe0 on eth0", log[len(log)-1])

	// Again: nothing changes, the same answer.
	k.Did = nil
	again := must.Get(k.Manager().Ensure(t.Context(), netlinkmgr.EnsureOptions{Modules: []string{"rdma_ucm"}}))(t)
	require.Empty(t, changes(k.Did))
	require.Zero(t, again.Made)
	require.Equal(t, r.Device, again.Device)
	require.Equal(t, r.GIDIndex, again.GIDIndex)

	// Removing the result of the second, which made nothing, leaves all;
	// removing the first undoes all.
	require.NoError(t, k.Manager().Remove(t.Context(), again))
	require.Len(t, k.Links, 1)
	for range 2 {
		require.NoError(t, k.Manager().Remove(t.Context(), r))
		require.Empty(t, k.Links)
		require.Empty(t, k.Modules)
		require.False(t, k.Dev("eth0").Up)
	}
}

func TestEnsureTakesWhatIsThere(t *testing.T) {
	for name, o := range map[string]netlinkmgr.EnsureOptions{
		"any":                {},
		"the netdev's":       {NetDev: "eth0"},
		"by name":            {Name: "mine"},
		"by name and netdev": {Name: "mine", NetDev: "eth0"},
	} {
		t.Run(name, func(t *testing.T) {
			k := netlinktest.New()
			k.LoadRXE()
			k.AddLink("mine", "eth0", true)
			r := must.Get(k.Manager().Ensure(t.Context(), o))(t)
			require.Equal(t, "mine", r.Device)
			require.Empty(t, changes(k.Did))
			require.Contains(t, strings.Join(r.Reasons, "\n"), "has the rxe link mine already")
		})
	}
}

func TestEnsureNamesFreely(t *testing.T) {
	k := netlinktest.New()
	k.LoadRXE()
	k.AddLink("rxe0", "docker0", true)
	r := must.Get(k.Manager().Ensure(t.Context(), netlinkmgr.EnsureOptions{NetDev: "eth0"}))(t)
	require.Equal(t, "rxe1", r.Device)
	// A second link by name goes to a device that has none.
	k.Devs = append(k.Devs, netlinkmgr.NetDev{Index: 9, Name: "eth9", Kind: "veth", Ethernet: true, Up: true, Carrier: true, Addrs: netlinktest.Addrs("10.9.0.1/24")})
	r = must.Get(k.Manager().Ensure(t.Context(), netlinkmgr.EnsureOptions{Name: "second"}))(t)
	require.Equal(t, "eth9", r.NetDev)
}

// TestEnsureErrors provokes each failure: its type, its errno, its advice, and
// that nothing half-made stays.
func TestEnsureErrors(t *testing.T) {
	eth1 := netlinkmgr.NetDev{Index: 5, Name: "eth1", Kind: "device", Ethernet: true, Up: true, Carrier: true, Addrs: netlinktest.Addrs("10.1.0.1/24")}
	for _, c := range []struct {
		name   string
		make   func(*netlinktest.Kernel)
		o      netlinkmgr.EnsureOptions
		target any
		errno  syscall.Errno
		says   []string
	}{
		{"no module", func(k *netlinktest.Kernel) { k.Files["lib/modules/"+netlinktest.Release+"/modules.dep"] = "a.ko:\n" },
			netlinkmgr.EnsureOptions{}, new(*netlinkmgr.NoModuleError), syscall.ENOENT, []string{"no module rdma_rxe in /lib/modules/" + netlinktest.Release, "apt-get install linux-image-"}},
		{"no modules at all", func(k *netlinktest.Kernel) { delete(k.Files, "lib/modules/"+netlinktest.Release+"/modules.dep") },
			netlinkmgr.EnsureOptions{}, new(*netlinkmgr.NoModuleError), syscall.ENOENT, []string{"rdma_rxe"}},
		{"no extra module", nil, netlinkmgr.EnsureOptions{Modules: []string{"ib_umad"}}, new(*netlinkmgr.NoModuleError), syscall.ENOENT, []string{"ib_umad"}},
		{"module of another kernel", func(k *netlinktest.Kernel) { k.Refuse["insert rdma_rxe"] = syscall.ENOEXEC },
			netlinkmgr.EnsureOptions{}, new(*netlinkmgr.ModuleError), syscall.ENOEXEC, []string{"rdma_rxe.ko", "reboot"}},
		{"locked down", func(k *netlinktest.Kernel) { k.Refuse["insert ib_core"] = syscall.EPERM },
			netlinkmgr.EnsureOptions{}, new(*netlinkmgr.ModuleError), syscall.EPERM, []string{"locked down"}},
		{"no permission to load", func(k *netlinktest.Kernel) {
			k.Refuse["insert ib_core"] = syscall.EPERM
			k.Files["proc/self/status"] = "CapEff:\t0000000000000000\n"
		}, netlinkmgr.EnsureOptions{}, new(*netlinkmgr.PermissionError), syscall.EPERM, []string{"CAP_SYS_MODULE", "root"}},
		{"no permission to bring up", func(k *netlinktest.Kernel) { k.Dev("eth0").Up = false; k.Refuse["setup"] = syscall.EPERM },
			netlinkmgr.EnsureOptions{}, new(*netlinkmgr.PermissionError), syscall.EPERM, []string{"CAP_NET_ADMIN", "bring eth0 up"}},
		{"no permission to add", func(k *netlinktest.Kernel) { k.Refuse["newlink"] = syscall.EPERM; k.Dev("eth0").Up = false },
			netlinkmgr.EnsureOptions{}, new(*netlinkmgr.PermissionError), syscall.EPERM, []string{"CAP_NET_ADMIN", "create link rxe0"}},
		{"name taken", func(k *netlinktest.Kernel) {
			k.LoadRXE()
			k.Devs = append(k.Devs, eth1)
			k.AddLink("rxe0", "eth1", true)
		},
			netlinkmgr.EnsureOptions{Name: "rxe0", NetDev: "eth0"}, new(*netlinkmgr.NameTakenError), syscall.EEXIST, []string{"on eth1", "rdmashim link delete rxe0"}},
		{"name taken by hardware", func(k *netlinktest.Kernel) { k.LoadRXE(); k.AddLink("rxe0", "docker0", false) },
			netlinkmgr.EnsureOptions{Name: "rxe0"}, new(*netlinkmgr.NameTakenError), syscall.EEXIST, []string{"no rxe link"}},
		{"netdev has a link", func(k *netlinktest.Kernel) { k.LoadRXE(); k.AddLink("other", "eth0", true) },
			netlinkmgr.EnsureOptions{Name: "rxe0", NetDev: "eth0"}, new(*netlinkmgr.NetDevHasLinkError), syscall.EEXIST, []string{"eth0 has the rxe link other", "use other"}},
		{"netdev has a link elsewhere", func(k *netlinktest.Kernel) { k.Refuse["newlink"] = syscall.EEXIST },
			netlinkmgr.EnsureOptions{}, new(*netlinkmgr.NetDevHasLinkError), syscall.EEXIST, []string{"rdmashim link show"}},
		{"netdev not there", nil, netlinkmgr.EnsureOptions{NetDev: "eth7"}, new(*netlinkmgr.NetDevGoneError), syscall.ENODEV, []string{"eth7", "lo, eth0, docker0"}},
		{"netdev goes", func(k *netlinktest.Kernel) {
			k.Before = func(op string) {
				if op == "newlink" {
					k.Lock()
					k.Devs = k.Devs[:1]
					k.Unlock()
				}
			}
		}, netlinkmgr.EnsureOptions{}, new(*netlinkmgr.NetDevGoneError), syscall.ENODEV, []string{"went away"}},
		{"vlan", func(k *netlinktest.Kernel) {
			k.Devs = append(k.Devs, netlinkmgr.NetDev{Index: 5, Name: "eth0.5", Kind: "vlan", Ethernet: true, Up: true})
		},
			netlinkmgr.EnsureOptions{NetDev: "eth0.5"}, new(*netlinkmgr.NetDevUnsuitableError), syscall.EINVAL, []string{"VLAN"}},
		{"none serves", func(k *netlinktest.Kernel) { k.Dev("eth0").Carrier = false },
			netlinkmgr.EnsureOptions{}, new(*netlinkmgr.NoNetDevError), syscall.ENODEV, []string{"lo: loopback", "eth0: no carrier", "ip link add"}},
		{"senseless name", nil, netlinkmgr.EnsureOptions{Name: "a/b"}, new(*netlinkmgr.OpError), syscall.EINVAL, []string{`"a/b"`}},
		{"kernel refuses", func(k *netlinktest.Kernel) { k.Refuse["newlink"] = syscall.ENOMEM },
			netlinkmgr.EnsureOptions{}, new(*netlinkmgr.OpError), syscall.ENOMEM, []string{"create link rxe0 (rxe) on eth0"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := netlinktest.New()
			if c.make != nil {
				c.make(k)
			}
			links, modules, up := len(k.Links), len(k.Modules), k.Dev("eth0").Up
			_, err := k.Manager().Ensure(t.Context(), c.o)
			require.ErrorAs(t, err, c.target)
			require.ErrorIs(t, err, c.errno)
			for _, s := range c.says {
				require.Contains(t, err.Error(), s)
			}
			require.NotContains(t, err.Error(), "\n")
			require.Len(t, k.Links, links, "no link stays")
			require.Len(t, k.Modules, modules, "no module stays")
			if d := k.Dev("eth0"); d != nil {
				require.Equal(t, up, d.Up, "the network device is as it was")
			}
		})
	}
}

func TestEnsureDryRun(t *testing.T) {
	k := netlinktest.New()
	k.Dev("eth0").Up = false
	r := must.Get(k.Manager().Ensure(t.Context(), netlinkmgr.EnsureOptions{DryRun: true}))(t)
	require.Empty(t, k.Did)
	require.True(t, r.DryRun)
	require.Zero(t, r.Made)
	require.Equal(t, "rxe0", r.Device)
	require.Len(t, r.Steps, 8)
	require.Equal(t, "load module ib_core from /lib/modules/"+netlinktest.Release+"/kernel/drivers/infiniband/core/ib_core.ko", r.Steps[1])
	require.Equal(t, []string{"bring eth0 up", "add link rxe0 on eth0"}, r.Steps[6:])

	// A fault that a dry run finds is an error as well.
	_, err := k.Manager().Ensure(t.Context(), netlinkmgr.EnsureOptions{DryRun: true, NetDev: "nope"})
	require.ErrorIs(t, err, syscall.ENODEV)
}

func TestEnsureWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := netlinktest.New()
		k.ActiveAfter, k.GIDAfter = 7, 5
		start := time.Now()
		r := must.Get(k.Manager().Ensure(t.Context(), netlinkmgr.EnsureOptions{}))(t)
		require.Equal(t, 1, r.GIDIndex)
		require.Less(t, time.Since(start), time.Second)
	})
}

func TestEnsureNotReady(t *testing.T) {
	for _, c := range []struct {
		name string
		make func(*netlinkmgr.NetDev)
		says string
	}{
		{"no carrier", func(d *netlinkmgr.NetDev) { d.Carrier = false }, "no carrier: connect its cable"},
		{"no address", func(d *netlinkmgr.NetDev) { d.Addrs = nil }, "eth0 has no address: ip addr add"},
		{"tentative", func(d *netlinkmgr.NetDev) {
			d.Addrs = netlinktest.Addrs("fd00::1/64")
			d.Addrs[0].Tentative = true
		}, "duplicate address detection"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := netlinktest.New()
				c.make(k.Dev("eth0"))
				start := time.Now()
				_, err := k.Manager().Ensure(t.Context(), netlinkmgr.EnsureOptions{NetDev: "eth0", Timeout: 3 * time.Second})
				require.ErrorAs(t, err, new(*netlinkmgr.NotReadyError))
				require.ErrorIs(t, err, syscall.ETIMEDOUT)
				require.Contains(t, err.Error(), c.says)
				require.Equal(t, 3*time.Second, time.Since(start))
				require.Empty(t, k.Links)
				require.Empty(t, k.Modules)
			})
		})
	}
}

// TestEnsureSecondBest: a link-local GID does when the promised one stays away.
func TestEnsureSecondBest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := netlinktest.New()
		d := k.Dev("eth0")
		d.Addrs = netlinktest.Addrs("fe80::5054:ff:fe12:3456/64", "fd00::1/64")
		d.Addrs[1].Tentative = true
		r := must.Get(k.Manager().Ensure(t.Context(), netlinkmgr.EnsureOptions{Timeout: time.Second}))(t)
		require.Zero(t, r.GIDIndex)
		require.Contains(t, strings.Join(r.Reasons, "\n"), "did not appear")
	})
}

func TestEnsureCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := netlinktest.New()
		k.Dev("eth0").Carrier = false
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("the user left")
		time.AfterFunc(time.Second, func() { cancel(why) })
		must.Fail(k.Manager().Ensure(ctx, netlinkmgr.EnsureOptions{NetDev: "eth0"}))(t, why)
		require.Empty(t, k.Links, "undone although the context has ended")
		require.Empty(t, k.Modules)
	})
}

// TestEnsureUndoFails: the error names changes that could not be undone.
func TestEnsureUndoFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := netlinktest.New()
		k.Dev("eth0").Addrs = nil
		k.Refuse["dellink"] = syscall.ENOMEM
		_, err := k.Manager().Ensure(t.Context(), netlinkmgr.EnsureOptions{})
		require.ErrorIs(t, err, syscall.ETIMEDOUT)
		require.ErrorIs(t, err, syscall.ENOMEM)
		require.Contains(t, err.Error(), "delete link rxe0")
	})
}

// TestEnsureRaces: two at once end with one link, both content.
func TestEnsureRaces(t *testing.T) {
	k := netlinktest.New()
	k.Before = func(op string) {
		if op == "newlink" {
			k.Lock()
			if len(k.Links) == 0 {
				k.AddLink("rxe0", "eth0", true)
			}
			k.Unlock()
		}
	}
	r := must.Get(k.Manager().Ensure(t.Context(), netlinkmgr.EnsureOptions{}))(t)
	require.Equal(t, "rxe0", r.Device)
	require.Empty(t, r.Made.Link, "the other's link is not ours to remove")
	require.NoError(t, k.Manager().Remove(t.Context(), r))
	require.Len(t, k.Links, 1)
}

// TestRemoveKeepsAnothers: a link of the same name made since is not removed.
func TestRemoveKeepsAnothers(t *testing.T) {
	k := netlinktest.New()
	m := k.Manager()
	r := must.Get(m.Ensure(t.Context(), netlinkmgr.EnsureOptions{}))(t)
	require.NoError(t, m.DeleteLink(t.Context(), "rxe0"))
	require.NoError(t, m.AddLink(t.Context(), "rxe0", "rxe", "eth0"))
	require.NoError(t, m.Remove(t.Context(), r))
	require.Len(t, k.Links, 1)
}

func TestNamespaceWarning(t *testing.T) {
	k := netlinktest.New()
	k.Symlinks["proc/self/ns/net"] = "net:[4026531841]"
	k.Symlinks["proc/1/ns/net"] = "net:[4026531840]"
	r := must.Get(k.Manager().Ensure(t.Context(), netlinkmgr.EnsureOptions{}))(t)
	require.Len(t, r.Warnings, 1)
	require.Contains(t, r.Warnings[0], "7.1")
}
