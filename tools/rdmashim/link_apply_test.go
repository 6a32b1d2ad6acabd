package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/netlinkmgr"
	"github.com/rdmashim/rdmashim/tests/netlinktest"
)

const setupText = `
[system]
netns = "shared"

[[link]]
name = "rxe0"
netdev = "eth0"
mtu = 4200

[[link]]
name = "far"
type = "rxe"
netdev = "veth0"
netns = "blue"
`

// setupKernel has a network namespace and a link of another name.
func setupKernel() *netlinktest.Kernel {
	k := netlinktest.New()
	k.LoadRXE()
	k.Spaces = map[string][]netlinkmgr.NetDev{"blue": {{Index: 2, Name: "veth0", Kind: "veth", Ethernet: true, Up: true, Carrier: true, MTU: 1500}}}
	k.AddLink("old", "eth0", true)
	k.AddLink("other", "docker0", true)
	return k
}

func setupPath(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "links.toml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	return path
}

// TestLinkApply: diff, dry run, apply, and all of it again.
func TestLinkApply(t *testing.T) {
	k, path := setupKernel(), setupPath(t, setupText)
	stdout, stderr, err := runRDMA(t, k, "link diff "+path)
	var differ *exitStatus
	require.ErrorAs(t, err, &differ)
	require.Equal(t, exitStatus{code: 1}, *differ)
	require.Equal(t, `~ rename link old on eth0 to rxe0
~ set the MTU of eth0 to 4200 (was 1500)
+ add link far on veth0 in the network namespace blue
`, stdout)
	require.Contains(t, stderr, "note: the link other on docker0 is not in the file")
	require.Contains(t, stderr, "warning: far: rxe carries packets outside the initial network namespace only from Linux 7.1")

	stdout, _, err = runRDMA(t, k, "link apply -n "+path)
	require.NoError(t, err)
	require.Contains(t, stdout, "rename link old on eth0 to rxe0\n    2400000002140500")
	require.Empty(t, k.Did)

	stdout, stderr, err = runRDMA(t, k, "link apply --prune -j "+path)
	require.NoError(t, err)
	require.Equal(t, `[{"change":"delete","ifname":"other","netdev":"docker0","text":"delete link other on docker0"},`+
		`{"change":"rename","ifname":"rxe0","netdev":"eth0","from":"old","to":"rxe0","text":"rename link old on eth0 to rxe0"},`+
		`{"change":"mtu","ifname":"rxe0","netdev":"eth0","from":"1500","to":"4200","text":"set the MTU of eth0 to 4200 (was 1500)"},`+
		`{"change":"add","ifname":"far","netdev":"veth0","netns":"blue","text":"add link far on veth0 in the network namespace blue"}]`+"\n", stdout)
	require.NotContains(t, stderr, "note:")

	k.Did = nil
	stdout, stderr, err = runRDMA(t, k, "link apply -j --prune "+path)
	require.NoError(t, err)
	require.Equal(t, "[]\n", stdout)
	require.Contains(t, stderr, "nothing to change")
	require.Empty(t, k.Did)
	stdout, _, err = runRDMA(t, k, "link diff "+path)
	require.NoError(t, err)
	require.Empty(t, stdout)
}

// TestLinkSave: what is saved is applied without a change.
func TestLinkSave(t *testing.T) {
	k := setupKernel()
	_, _, err := runRDMA(t, k, "link apply --prune "+setupPath(t, setupText))
	require.NoError(t, err)
	stdout, stderr, err := runRDMA(t, k, "link save")
	require.NoError(t, err)
	require.Empty(t, stderr)
	require.Equal(t, `# rxe links, for 'rdmashim link apply'; mtu is the network device's.
[system]
netns = 'shared'

[[link]]
name = 'rxe0'
netdev = 'eth0'
mtu = 4200

[[link]]
name = 'far'
netdev = 'veth0'
mtu = 1500
netns = 'blue'
`, stdout)
	again, _, err := runRDMA(t, k, "link diff --prune "+setupPath(t, stdout))
	require.NoError(t, err)
	require.Empty(t, again)
	stdout, _, err = runRDMA(t, k, "link save -j")
	require.NoError(t, err)
	require.Equal(t, `{"system":{"netns":"shared"},"link":[{"name":"rxe0","netdev":"eth0","mtu":4200},{"name":"far","netdev":"veth0","mtu":1500,"netns":"blue"}]}`+"\n", stdout)

	stdout, _, err = runRDMA(t, netlinktest.New(), "link save")
	require.NoError(t, err)
	s, err := parseSetup([]byte(stdout))
	require.NoError(t, err)
	require.Equal(t, netlinkmgr.Setup{}, s, "a kernel without RDMA has no links")
}

// TestBadSetupFile: bad files say where, and nothing is done.
func TestBadSetupFile(t *testing.T) {
	for _, c := range []struct{ text, says string }{
		{"[[link]]\nname = \"a\"\nnetdev = \"eth0\"\nmut = 1500\n", `line 4: unknown key "link.mut"`},
		{"[system]\nnetns = \"shared\"\nspeed = 1\n[other]\nx = 1\n", `line 3: unknown key "system.speed"; line 4: unknown key "other"`},
		{"[[link]]\nname = \"a\nnetdev = \"eth0\"\n", "line 2, column"},
		{"[[link]]\nname = \"a\"\nnetdev = \"eth0\"\nmtu = \"big\"\n", "line 4, column 7: link.mtu cannot be a TOML string"},
		{"[[link]]\nname = \"a\"\nnetdev = \"eth0\"\nmtu = 0\n", "mtu"},
		{"[[link]]\nname = \"a\"\nname = \"b\"\n", "line 3"},
		{"link = 3\n", "line 1, column 8: link cannot be a TOML integer"},
		{"[[link]]\nname = \"a\\u0000b\"\nnetdev = \"eth0\"\n", "cannot be the name of a link"},
		{"[system]\nnetns = \"own\"\n", `"own" is neither shared nor exclusive`},
		{"[[link]]\nname = \"a\"\nnetdev = \"eth0\"\ntype = \"siw\"\n", `type "siw" is not rxe`},
		{"[[link]]\nname = \"a\"\n", "has no netdev"},
		{"\x00", "line 1"},
		{strings.Repeat("#", maxSetupFile+1), "longer than"},
	} {
		path := setupPath(t, c.text)
		for _, command := range []string{"apply", "diff", "unit"} {
			k := setupKernel()
			stdout, _, err := runRDMA(t, k, "link "+command+" "+path)
			require.ErrorContains(t, err, c.says)
			require.Empty(t, stdout)
			require.Empty(t, k.Did)
			var status *exitStatus
			if command == "diff" {
				require.ErrorAs(t, err, &status)
				require.Equal(t, 2, status.code)
			}
		}
	}
	_, _, err := runRDMA(t, setupKernel(), "link apply /nosuch.toml")
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = readSetup("-", strings.NewReader("x"))
	require.ErrorContains(t, err, "stdin: line 1")
	for _, line := range []string{"link apply", "link diff", "link apply a b", "link save a", "link unit -"} {
		_, _, err := runRDMA(t, setupKernel(), line)
		var usage *usageError
		require.ErrorAs(t, err, &usage, line)
	}
}

func TestLinkUnit(t *testing.T) {
	s, err := parseSetup([]byte(setupText))
	require.NoError(t, err)
	s.Links[0].NetDev = "br-lan0"
	unit := unitText("/opt/rdma shim/rdmashim", "/etc/100%/links.toml", true, s)
	require.Equal(t, `[Unit]
Description=rxe links of /etc/100%%/links.toml (rdmashim)
ConditionPathExists=/etc/100%%/links.toml
Wants=network-online.target sys-subsystem-net-devices-br\x2dlan0.device
After=systemd-modules-load.service network-online.target sys-subsystem-net-devices-br\x2dlan0.device

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart="/opt/rdma shim/rdmashim" link apply --prune /etc/100%%/links.toml

[Install]
WantedBy=multi-user.target
`, unit)
}

// Names that mean something to systemd, which is asked itself where it is
// installed: the unit has nothing to complain of, finds its program, and its
// condition holds just when the file is there.
func TestLinkUnitNames(t *testing.T) {
	analyze, lacking := exec.LookPath("systemd-analyze")
	systemd := 0 // its version
	if lacking == nil {
		text, err := exec.Command(analyze, "--version").Output()
		require.NoError(t, err)
		_, err = fmt.Sscanf(string(text), "systemd %d", &systemd)
		require.NoError(t, err, string(text))
	}
	for _, c := range []struct{ name, condition, word string }{
		{"links.toml", "Exists=DIR/links.toml", "DIR/links.toml"},
		{"my links", "Exists=DIR/my links", `"DIR/my links"`},
		{`back\`, `ExistsGlob=DIR/back\\`, `"DIR/back\\"`},
		{`two\\`, `ExistsGlob=DIR/two\\\\`, `"DIR/two\\\\"`},
		{`mid\dle`, `Exists=DIR/mid\dle`, `"DIR/mid\\dle"`},
		{`*?[{x,y}]~ 100%\`, `ExistsGlob=DIR/\*\?\[\{x,y}]~ 100%%\\`, `"DIR/*?[{x,y}]~ 100%%\\"`},
		{"space ", "ExistsGlob=DIR/space[ ]", `"DIR/space "`},
		{`sp\ `, `ExistsGlob=DIR/sp\\[ ]`, `"DIR/sp\\ "`},
		{`a"b'c;#`, `Exists=DIR/a"b'c;#`, `"DIR/a\"b'c;#"`},
		{"100% $HOME %i", "Exists=DIR/100%% $HOME %%i", `"DIR/100%% $$HOME %%i"`},
		{"\u00e9\u00a0", "Exists=DIR/\u00e9\u00a0", "DIR/\u00e9\u00a0"},
	} {
		dir := t.TempDir()
		file := filepath.Join(dir, c.name)
		program := filepath.Join(dir, "$HOME $$ 100% x")
		require.NoError(t, os.WriteFile(program, nil, 0o755))
		unit := unitText(program, file, false, netlinkmgr.Setup{})
		lines := strings.Split(unit, "\n")
		put := strings.NewReplacer("DIR", dir)
		require.Contains(t, lines, "ConditionPath"+put.Replace(c.condition))
		require.Contains(t, lines, put.Replace(`ExecStart="DIR/$HOME $$ 100%% x" link apply `+c.word))
		for _, line := range lines {
			require.NotRegexp(t, `(^|[^\\])(\\\\)*\\$`, line, "the line would go on")
		}
		if lacking != nil {
			continue
		}
		path := filepath.Join(dir, "rdmashim-links.service")
		require.NoError(t, os.WriteFile(path, []byte(unit), 0o644))
		out, err := exec.Command(analyze, "verify", path).CombinedOutput()
		require.NoError(t, err, string(out))
		require.NotContains(t, string(out), "rdmashim-links.service:")
		if systemd < 250 { // which has condition --unit
			continue
		}
		holds := func() error {
			cmd := exec.Command(analyze, "condition", "--unit", filepath.Base(path))
			cmd.Env = append(os.Environ(), "SYSTEMD_UNIT_PATH="+dir+":")
			return cmd.Run()
		}
		require.Error(t, holds(), c.name)
		require.NoError(t, os.WriteFile(file, nil, 0o644))
		require.NoError(t, holds(), c.name)
	}
	for _, name := range []string{"a\nb", "a\rb", "tab\t", "\x7f", "not UTF-8 \xff"} {
		require.Error(t, unitable("/bin/rdmashim", "/etc/"+name), "%q", name)
		require.Error(t, unitable("/bin/"+name, "/etc/links"), "%q", name)
	}
	for _, name := range []string{`a"b`, "a'b", `a\b`} {
		require.NoError(t, unitable("/bin/rdmashim", "/etc/"+name), "%q", name)
		require.Error(t, unitable("/bin/"+name, "/etc/links"), "%q", name)
	}
}

// FuzzSetupFile reads any file: a setup that could be, or one line that says
// what is wrong; what is written reads back as it was.
func FuzzSetupFile(f *testing.F) {
	f.Add([]byte(setupText))
	f.Add([]byte("link = [{name = 'a', netdev = 'b', mtu = 0x1000}]"))
	f.Add([]byte("[[link]]\nname = \"\"\"\na\"\"\"\nnetdev = 1979-05-27\n[link.x.y]\n"))
	f.Add([]byte("[system]\nnetns = \"exclusive\"\n[system]\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := parseSetup(text)
		if err != nil {
			require.NotEmpty(t, oneLine(err))
			return
		}
		var b strings.Builder
		require.NoError(t, writeSetup(&b, s))
		again, err := parseSetup([]byte(b.String()))
		require.NoError(t, err, b.String())
		require.Equal(t, s, again)
	})
}
