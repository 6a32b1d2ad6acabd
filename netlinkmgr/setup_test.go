package netlinkmgr_test

import (
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/netlinkmgr"
	"github.com/rdmashim/rdmashim/tests/netlinktest"
)

// twoSpaces is a machine with two more network devices, one of them in a
// network namespace.
func twoSpaces() *netlinktest.Kernel {
	k := netlinktest.New()
	k.Devs = append(k.Devs, netlinkmgr.NetDev{Index: 4, Name: "eth1", Kind: "device", Ethernet: true, Up: true, Carrier: true, MTU: 1500})
	k.Spaces = map[string][]netlinkmgr.NetDev{"blue": {{Index: 2, Name: "veth0", Kind: "veth", Ethernet: true, Up: true, Carrier: true, MTU: 1500}}}
	return k
}

func texts(list []netlinkmgr.Change) (out []string) {
	for _, c := range list {
		out = append(out, c.Text)
	}
	return out
}

func TestApplySetup(t *testing.T) {
	k := twoSpaces()
	exclusive := netlinkmgr.NetNSExclusive
	s := netlinkmgr.Setup{NetNS: &exclusive, Links: []netlinkmgr.LinkSetup{
		{Name: "a", NetDev: "eth0", MTU: 4200}, {Name: "b", NetDev: "eth1"}, {Name: "c", NetDev: "veth0", NetNS: "blue", MTU: 9000},
	}}
	plan, err := k.Manager().PlanSetup(t.Context(), s, netlinkmgr.SetupOptions{})
	require.NoError(t, err)
	require.Empty(t, k.Did, "a plan changes nothing")

	var log []string
	did, err := k.Manager().ApplySetup(t.Context(), s, netlinkmgr.SetupOptions{Log: func(c netlinkmgr.Change) { log = append(log, c.Text) }})
	require.NoError(t, err)
	require.Equal(t, texts(plan.Changes), texts(did.Changes))
	require.Equal(t, texts(plan.Changes), log)
	require.Equal(t, append(slices.Clone(moduleOrder), "setnetns 0", "setmtu eth0 4200", "setmtu veth0 9000",
		"newlink a rxe eth0", "newlink b rxe eth1", "newlink c rxe veth0"), k.Did)
	require.Len(t, did.Warnings, 1, "rxe in a namespace")

	// Again, nothing; and what is saved is what was applied.
	k.Did = nil
	did, err = k.Manager().ApplySetup(t.Context(), s, netlinkmgr.SetupOptions{Prune: true})
	require.NoError(t, err)
	require.Empty(t, did.Changes)
	require.Empty(t, k.Did)
	saved, err := k.Manager().SaveSetup(t.Context())
	require.NoError(t, err)
	s.Links[1].MTU = 1500
	require.Equal(t, s, saved)
}

// TestRenamePrune: links are renamed in an order that works, others deleted
// only if that is asked for.
func TestRenamePrune(t *testing.T) {
	k := twoSpaces()
	k.LoadRXE()
	k.AddLink("rxe0", "eth0", true)
	k.AddLink("rxe1", "eth1", true)
	k.AddLink("old", "docker0", true)
	s := netlinkmgr.Setup{Links: []netlinkmgr.LinkSetup{{Name: "rxe1", NetDev: "eth0"}, {Name: "old", NetDev: "eth1"}}}
	_, err := k.Manager().PlanSetup(t.Context(), s, netlinkmgr.SetupOptions{})
	var taken *netlinkmgr.NameTakenError
	require.ErrorAs(t, err, &taken)
	require.Equal(t, "docker0", taken.NetDev)

	s.Links[1].Name = "rxe2"
	p, err := k.Manager().PlanSetup(t.Context(), s, netlinkmgr.SetupOptions{})
	require.NoError(t, err)
	require.Equal(t, []string{"rename link rxe1 on eth1 to rxe2", "rename link rxe0 on eth0 to rxe1"}, texts(p.Changes))
	require.Equal(t, []netlinkmgr.LinkSetup{{Name: "old", NetDev: "docker0"}}, p.Extra)

	s.Links[1].Name = "old"
	p, err = k.Manager().ApplySetup(t.Context(), s, netlinkmgr.SetupOptions{Prune: true})
	require.NoError(t, err)
	require.Equal(t, []string{"delete link old on docker0", "rename link rxe1 on eth1 to old", "rename link rxe0 on eth0 to rxe1"}, texts(p.Changes))

	s.Links[0].Name, s.Links[1].Name = "old", "rxe1"
	_, err = k.Manager().PlanSetup(t.Context(), s, netlinkmgr.SetupOptions{Prune: true})
	require.ErrorContains(t, err, "exchange their names")
}

// TestApplyUndoes: whatever change fails, everything is as before.
func TestApplyUndoes(t *testing.T) {
	exclusive := netlinkmgr.NetNSExclusive
	s := netlinkmgr.Setup{NetNS: &exclusive, Links: []netlinkmgr.LinkSetup{
		{Name: "a", NetDev: "eth0", MTU: 4200}, {Name: "c", NetDev: "veth0", NetNS: "blue"}, {Name: "new", NetDev: "eth1"}, {Name: "last", NetDev: "lo"},
	}}
	start := func() *netlinktest.Kernel {
		k := twoSpaces()
		k.LoadRXE()
		k.Devs[0].Ethernet = true
		k.AddLink("x", "docker0", true)
		k.AddLink("y", "eth1", true)
		return k
	}
	whole := start()
	_, err := whole.Manager().ApplySetup(t.Context(), s, netlinkmgr.SetupOptions{Prune: true})
	require.NoError(t, err)
	require.Len(t, whole.Did, 7, "mode, delete, rename, MTU, three adds: %v", whole.Did)
	for n := range whole.Did {
		k := start()
		before, err := k.Manager().SaveSetup(t.Context())
		require.NoError(t, err)
		count := 0
		k.Before = func(op string) {
			k.Lock()
			defer k.Unlock()
			clear(k.Refuse)
			if count == n {
				k.Refuse[op] = syscall.ENOMEM
			}
			count++
		}
		_, err = k.Manager().ApplySetup(t.Context(), s, netlinkmgr.SetupOptions{Prune: true})
		require.ErrorIs(t, err, syscall.ENOMEM, "change %d", n)
		require.Equal(t, n > 0, strings.Contains(err.Error(), "is undone"))
		k.Before = nil
		after, err := k.Manager().SaveSetup(t.Context())
		require.NoError(t, err)
		require.Equal(t, before, after, "change %d", n)
	}
}

// TestHalfDone: what cannot be undone is said.
func TestHalfDone(t *testing.T) {
	k := twoSpaces()
	k.LoadRXE()
	k.Refuse["dellink"] = syscall.EPERM
	k.Refuse["setmtu"] = syscall.EIO
	s := netlinkmgr.Setup{Links: []netlinkmgr.LinkSetup{{Name: "a", NetDev: "eth0"}, {Name: "b", NetDev: "eth1"}}}
	k.Before = func(op string) {
		if op == "newlink" && len(k.Links) == 1 {
			k.Refuse["newlink"] = syscall.ENOMEM
		}
	}
	_, err := k.Manager().ApplySetup(t.Context(), s, netlinkmgr.SetupOptions{})
	var half *netlinkmgr.HalfDoneError
	require.ErrorAs(t, err, &half)
	require.ErrorIs(t, err, syscall.ENOMEM)
	require.Equal(t, []string{"add link a on eth0"}, half.Done)
	require.Contains(t, err.Error(), "delete link a: no permission")
}

// TestBadSetup: what is wrong is found before anything changes.
func TestBadSetup(t *testing.T) {
	link := func(l ...netlinkmgr.LinkSetup) netlinkmgr.Setup { return netlinkmgr.Setup{Links: l} }
	for _, c := range []struct {
		s    netlinkmgr.Setup
		says string
	}{
		{link(netlinkmgr.LinkSetup{NetDev: "eth0"}), "link 1 of the setup: it has no name"},
		{link(netlinkmgr.LinkSetup{Name: "a%d", NetDev: "eth0"}), `"a%d" cannot be the name of a link`},
		{link(netlinkmgr.LinkSetup{Name: "a"}), `link 1 of the setup, "a": it has no netdev`},
		{link(netlinkmgr.LinkSetup{Name: "a", NetDev: "../eth0"}), "network device"},
		{link(netlinkmgr.LinkSetup{Name: "a", NetDev: "eth0", NetNS: "../x"}), "network namespace"},
		{link(netlinkmgr.LinkSetup{Name: "a", NetDev: "eth0", MTU: 300}), "mtu 300 is not between 336 and 65536"},
		{link(netlinkmgr.LinkSetup{Name: "a", NetDev: "eth0"}, netlinkmgr.LinkSetup{Name: "a", NetDev: "eth1"}), `link 2 of the setup, "a": another link has this name`},
		{link(netlinkmgr.LinkSetup{Name: "a", NetDev: "eth0"}, netlinkmgr.LinkSetup{Name: "b", NetDev: "eth0"}), "another link is on eth0"},
		{link(netlinkmgr.LinkSetup{Name: "a", NetDev: "eth0"}, netlinkmgr.LinkSetup{Name: "b", NetDev: "eth9"}), "network device eth9 is not there"},
		{link(netlinkmgr.LinkSetup{Name: "a", NetDev: "eth0", NetNS: "red"}), `no network namespace is named "red" (there are: blue)`},
		{link(netlinkmgr.LinkSetup{Name: "ib0", NetDev: "eth0"}), "the name ib0 is taken by the RDMA device on eth1, which is no rxe link"},
	} {
		k := twoSpaces()
		k.LoadRXE()
		k.AddLink("ib0", "eth1", false)
		_, err := k.Manager().ApplySetup(t.Context(), c.s, netlinkmgr.SetupOptions{})
		require.ErrorContains(t, err, c.says)
		require.Empty(t, k.Did)
	}
	k := twoSpaces()
	_, err := k.Manager().ApplySetup(t.Context(), link(netlinkmgr.LinkSetup{Name: "a", NetDev: "eth0", MTU: 60000}), netlinkmgr.SetupOptions{})
	require.ErrorIs(t, err, syscall.EINVAL)
	require.ErrorContains(t, err, "minmtu")
	require.Empty(t, k.Modules, "modules are unloaded again")
}
