//go:build guest && linux

package guesttest

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
	"github.com/ulikunitz/xz"
	"github.com/vishvananda/netlink"

	"github.com/rdmashim/rdmashim/netlinkmgr"
	"github.com/rdmashim/rdmashim/tests/must"
)

// TestAddShowDelete: the commands make, show and delete a link.
func TestAddShowDelete(t *testing.T) {
	m := noLinks(t)
	veth(t, "ta", "tb", "10.78.0.1/24")
	require.NoError(t, m.Remove(t.Context(), ensure(t, "ta"))) // loads the modules only if nothing else did
	ensure(t, "ta")
	require.NoError(t, m.DeleteLink(t.Context(), "rxe0"))

	require.Equal(t, outcome{}, ours(t, "link add mine type rxe netdev ta"))
	show := rows(t, ours(t, "-j link show mine/1"))
	require.Len(t, show, 1)
	require.Equal(t, "mine", show[0]["ifname"])
	require.Equal(t, "ta", show[0]["netdev"])
	require.Equal(t, "ACTIVE", show[0]["state"])
	require.Equal(t, "LINK_UP", show[0]["physical_state"])
	require.EqualValues(t, link(t, "ta").Attrs().Index, show[0]["netdev_index"])

	// The node GUID is the MAC's EUI-64, in this order.
	mac := link(t, "ta").Attrs().HardwareAddr
	d := device(t, "mine")
	want := netlinkmgr.GUID(uint64(mac[0]^2)<<56 | uint64(mac[1])<<48 | uint64(mac[2])<<40 | 0xfffe<<24 | uint64(mac[3])<<16 | uint64(mac[4])<<8 | uint64(mac[5]))
	require.Equal(t, want, *d.NodeGUID)
	require.True(t, m.IsRXE(t.Context(), d))

	require.Equal(t, outcome{}, ours(t, "link delete mine"))
	require.Equal(t, "[]\n", ours(t, "-j link show").stdout)
	gone := ours(t, "link delete mine")
	require.Equal(t, 1, gone.code)
	require.Contains(t, gone.stderr, `no RDMA device "mine"`)
}

// TestUpTwice: from a kernel without RDMA to a usable link, again, and back.
func TestUpTwice(t *testing.T) {
	m := bare(t)
	veth(t, "ta", "tb", "10.78.0.1/24")
	require.NoError(t, netlink.LinkSetDown(link(t, "ta")))
	o := netlinkmgr.EnsureOptions{NetDev: "ta", Modules: []string{"rdma_ucm"}, Timeout: patience}

	o.DryRun = true
	dry := must.Get(m.Ensure(t.Context(), o))(t)
	require.Empty(t, loaded(t), "a dry run loads nothing")
	require.False(t, isUp(t, "ta"))

	o.DryRun = false
	first := must.Get(m.Ensure(t.Context(), o))(t)
	require.ElementsMatch(t, dry.Steps, first.Steps, "the dry run said what would be done; modules that need not each other go in any order")
	require.Equal(t, "rxe0", first.Device)
	require.Equal(t, "::ffff:10.78.0.1", first.GID.String())
	require.Equal(t, netlinkmgr.GIDRoCEv2, first.GIDType)
	require.FileExists(t, first.UVerbs)
	require.Contains(t, loaded(t), "rdma_ucm")

	second := must.Get(m.Ensure(t.Context(), o))(t)
	require.Zero(t, second.Made)
	require.Empty(t, second.Steps)
	require.Equal(t, first.GIDIndex, second.GIDIndex)
	up := rows(t, ours(t, "-j link up ta"))
	require.Equal(t, "rxe0", up[0]["ifname"])
	require.Equal(t, false, up[0]["created"])

	require.NoError(t, m.Remove(t.Context(), second))
	require.Equal(t, "rxe0", device(t, "rxe0").Name, "what was there stays")
	require.NoError(t, m.Remove(t.Context(), first))
	require.Empty(t, loaded(t))
	require.False(t, isUp(t, "ta"))
	require.NoError(t, m.Remove(t.Context(), first), "again")
}

// TestUpAgain: the command that a unit calls at boot makes the link with its
// name and MTU, from a kernel without RDMA; run again, it changes nothing.
func TestUpAgain(t *testing.T) {
	bare(t)
	veth(t, "ta", "tb", "10.78.0.1/24")
	for _, says := range []string{"set the MTU of ta to 4200 (was 1500)", "ta has the rxe link first already"} {
		o := ours(t, "link up ta --mtu 4200 --name first")
		require.Zero(t, o.code, o.stderr)
		require.Contains(t, o.stderr, says)
		require.Contains(t, o.stdout, "link first/1 state ACTIVE netdev ta")
		require.Equal(t, 4200, link(t, "ta").Attrs().MTU)
	}
	o := ours(t, "link up ta --mtu 65536")
	require.Equal(t, 1, o.code)
	require.Contains(t, o.stderr, "the device does not take it")
	require.Equal(t, 4200, link(t, "ta").Attrs().MTU)
}

// TestUpWaitsForCarrier: the link is usable once the cable is in.
func TestUpWaitsForCarrier(t *testing.T) {
	m := noLinks(t)
	veth(t, "ta", "tb", "10.78.0.1/24")
	require.NoError(t, netlink.LinkSetDown(link(t, "tb")))
	done := make(chan error, 1)
	created := make(chan struct{}, 16)
	go func() {
		_, err := m.Ensure(t.Context(), netlinkmgr.EnsureOptions{NetDev: "ta", Timeout: patience, Log: func(step string) {
			if strings.HasPrefix(step, "add link") {
				created <- struct{}{}
			}
		}})
		done <- err
	}()
	<-created
	require.NoError(t, netlink.LinkSetUp(link(t, "tb")))
	require.NoError(t, <-done)
}

// TestGIDTable: entries follow the addresses, and the best is marked.
func TestGIDTable(t *testing.T) {
	m := noLinks(t)
	veth(t, "ta", "tb", "fd78::1/64")
	r := ensure(t, "ta")
	require.Equal(t, "fd78::1", r.GID.String(), "global goes before link-local")

	addr := must.Get(netlink.ParseAddr("10.78.0.1/24"))(t)
	require.NoError(t, netlink.AddrAdd(link(t, "ta"), addr))
	r = ensure(t, "ta")
	require.Equal(t, "10.78.0.1", r.GID.Unmap().String(), "IPv4 goes before IPv6")
	gids := must.Get(m.GIDs(t.Context(), r.Device, 1))(t)
	require.Len(t, gids, 3)
	var best []int
	for _, g := range gids {
		require.Equal(t, netlinkmgr.GIDRoCEv2, g.Type)
		require.Equal(t, "ta", g.NetDev)
		require.NotEmpty(t, g.Why)
		if g.Best {
			best = append(best, g.Index)
		}
	}
	require.Equal(t, []int{r.GIDIndex}, best)

	table := rows(t, ours(t, "-j link gid "+r.Device))
	require.Len(t, table, 3)
	require.Equal(t, "10.78.0.1", table[r.GIDIndex]["address"])
	require.Equal(t, true, table[r.GIDIndex]["best"])
}

// TestNetNSMode: set by one tool, seen by the other.
func TestNetNSMode(t *testing.T) {
	m := noLinks(t)
	veth(t, "ta", "tb", "10.78.0.1/24")
	ensure(t, "ta")
	require.NoError(t, m.DeleteLink(t.Context(), "rxe0"))
	defer ours(t, "system set netns shared")
	require.Equal(t, outcome{}, ours(t, "system set netns exclusive"))
	require.Contains(t, run(t, 0, theirs(t), "system", "show").stdout, "netns exclusive")
	require.Equal(t, "exclusive", rows(t, ours(t, "-j system show"))[0]["netns"])
	require.Equal(t, outcome{}, ours(t, "sys set netns shared"))
	require.Contains(t, run(t, 0, theirs(t), "system", "show").stdout, "netns shared")
}

// TestCompressedModules: modules as other distributions ship them.
func TestCompressedModules(t *testing.T) {
	m := bare(t)
	veth(t, "ta", "tb", "10.78.0.1/24")
	pack := []func(io.Writer) (io.WriteCloser, error){
		func(w io.Writer) (io.WriteCloser, error) { return xz.NewWriter(w) },
		func(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w) },
		func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriter(w), nil },
	}
	suffix := []string{".xz", ".zst", ".gz"}
	dir := t.TempDir()
	var dep strings.Builder
	file := map[string]string{}
	for i, name := range []string{"crc32_generic", "ib_core", "udp_tunnel", "ip6_udp_tunnel", "ib_uverbs", "rdma_rxe"} {
		var b bytes.Buffer
		z := must.Get(pack[i%3](&b))(t)
		must.Get(z.Write(moduleFile(t, name)))(t)
		require.NoError(t, z.Close())
		file[name] = name + ".ko" + suffix[i%3]
		require.NoError(t, os.WriteFile(filepath.Join(dir, file[name]), b.Bytes(), 0o644))
	}
	for name, needs := range map[string][]string{
		"crc32_generic": nil, "ib_core": nil, "udp_tunnel": nil, "ip6_udp_tunnel": {"udp_tunnel"}, "ib_uverbs": {"ib_core"},
		"rdma_rxe": {"ib_uverbs", "ib_core", "ip6_udp_tunnel", "udp_tunnel"},
	} {
		dep.WriteString(file[name] + ":")
		for _, n := range needs {
			dep.WriteString(" " + file[n])
		}
		dep.WriteString("\n")
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "modules.dep"), []byte(dep.String()), 0o644))
	modulesAre(t, dir)
	r := must.Get(m.Ensure(t.Context(), netlinkmgr.EnsureOptions{NetDev: "ta", Timeout: patience}))(t)
	require.Len(t, r.Made.Modules, 6)
	require.NoError(t, m.Remove(t.Context(), r))
	require.Empty(t, loaded(t))
}
