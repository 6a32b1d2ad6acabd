//go:build guest && linux

package guesttest

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// namespace makes a network namespace with a name and moves a device there.
func namespace(t *testing.T, name, dev string) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	own, err := netns.Get()
	require.NoError(t, err)
	defer own.Close()
	ns, err := netns.NewNamed(name)
	require.NoError(t, err)
	defer ns.Close()
	require.NoError(t, netns.Set(own))
	t.Cleanup(func() { _ = netns.DeleteNamed(name) })
	if dev == "" {
		return
	}
	require.NoError(t, netlink.LinkSetNsFd(link(t, dev), int(ns)))
	h, err := netlink.NewHandleAt(ns, unix.NETLINK_ROUTE)
	require.NoError(t, err)
	defer h.Close()
	l, err := h.LinkByName(dev)
	require.NoError(t, err)
	require.NoError(t, h.LinkSetUp(l))
}

func setupFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "links.toml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	return path
}

// TestApply: from a kernel without RDMA to the links of a file; again, nothing
// changes; what is saved makes the same links again; and the unit's command
// does it too.
func TestApply(t *testing.T) {
	m := bare(t)
	veth(t, "ta", "tb", "10.78.0.1/24")
	veth(t, "tc", "td", "10.79.0.1/24")
	namespace(t, "blue", "td")
	path := setupFile(t, `
[[link]]
name = "first"
netdev = "ta"
mtu = 4200
[[link]]
name = "far"
netdev = "td"
netns = "blue"
`)
	dry := rows(t, ours(t, "link apply -j --dry-run "+path))
	require.Empty(t, loaded(t), "a dry run loads nothing")
	did := rows(t, ours(t, "link apply -j "+path))
	require.Len(t, did, len(dry))
	require.Equal(t, 4200, link(t, "ta").Attrs().MTU)
	require.Contains(t, loaded(t), "rdma_rxe")
	require.Equal(t, "ta", rows(t, ours(t, "-j link show first"))[0]["netdev"])
	far := rows(t, ours(t, "-j link show far"))
	require.Len(t, far, 1)
	require.NotContains(t, far[0], "netdev", "its network device is in another namespace")

	require.Empty(t, rows(t, ours(t, "link apply -j "+path)), "twice is once")
	require.Equal(t, outcome{}.stdout, ours(t, "link diff "+path).stdout)
	require.Zero(t, ours(t, "link diff "+path).code)

	saved := ours(t, "link save")
	require.Zero(t, saved.code, saved.stderr)
	again := setupFile(t, saved.stdout)
	require.Zero(t, ours(t, "link diff --prune "+again).code)

	// Other names, another MTU, a link too many.
	require.NoError(t, m.Rename(t.Context(), "first", "other"))
	require.NoError(t, netlink.LinkSetMTU(link(t, "ta"), 1500))
	require.NoError(t, m.DeleteLink(t.Context(), "far"))
	require.Equal(t, outcome{}, ours(t, "link add extra type rxe netdev tc"))
	o := ours(t, "link diff --prune "+again)
	require.Equal(t, 1, o.code)
	require.Equal(t, `- delete link extra on tc
~ rename link other on ta to first
~ set the MTU of ta to 4200 (was 1500)
+ add link far on td in the network namespace blue
`, o.stdout)

	// The unit's command mends it.
	unit := ours(t, "link unit --prune "+again)
	require.Zero(t, unit.code, unit.stderr)
	_, command, ok := strings.Cut(unit.stdout, "\nExecStart=")
	require.True(t, ok, unit.stdout)
	command, _, _ = strings.Cut(command, "\n")
	words := strings.Fields(command)
	o = run(t, 0, words[0], words[1:]...)
	require.Zero(t, o.code, o.stderr)
	require.Equal(t, saved.stdout, ours(t, "link save").stdout)
}

// TestApplyFails: what the kernel refuses leaves all as it was.
func TestApplyFails(t *testing.T) {
	noLinks(t)
	veth(t, "ta", "tb", "10.78.0.1/24")
	ensure(t, "ta")
	before := ours(t, "link save").stdout
	path := setupFile(t, `
[[link]]
name = "new"
netdev = "ta"
mtu = 2000
[[link]]
name = "low"
netdev = "lo"
mtu = 1400
[[link]]
name = "tb0"
netdev = "tb"
mtu = 65536
`)
	o := ours(t, "link apply "+path)
	require.Equal(t, 1, o.code)
	require.Contains(t, o.stderr, "set the MTU of tb to 65536: the device does not take it")
	require.Contains(t, o.stderr, "what was done before is undone")
	require.Equal(t, 1, strings.Count(strings.TrimSpace(o.stderr[strings.LastIndex(o.stderr, "rdmashim:"):]), "\n")+1)
	require.Equal(t, before, ours(t, "link save").stdout)

	o = run(t, nobody, "rdmashim", "link", "apply", setupFileFor(t, nobody, "[[link]]\nname = \"new\"\nnetdev = \"ta\"\n"))
	require.Equal(t, 1, o.code)
	require.Contains(t, o.stderr, "rename rxe0 to new: no permission")
	require.Equal(t, before, ours(t, "link save").stdout)
}

// setupFileFor makes a file that a user may read.
func setupFileFor(t *testing.T, user int, text string) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "setup")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o755))
	path := filepath.Join(dir, "links.toml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	require.NoError(t, os.Chown(path, user, user))
	return path
}
