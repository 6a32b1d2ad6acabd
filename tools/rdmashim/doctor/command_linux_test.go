package doctor

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tools/internal/cli/clitest"
)

func decodeDoctor(t *testing.T, o clitest.Outcome) Report {
	t.Helper()
	r := clitest.Decode[Report](t, o)
	require.Equal(t, map[bool]int{true: 0, false: 1}[r.OK], o.Code)
	return r
}

func TestDoctor(t *testing.T) {
	o := clitest.RunTool(t, "doctor", "-j")
	r := decodeDoctor(t, o)
	require.True(t, r.OK, "%+v", r)
	require.True(t, strings.HasPrefix(r.Device, "soft:127.0.0."), r.Device)
	require.Equal(t, "device soft (the default; RDMASHIM_DEVICE or an argument names another)\n", o.Stderr, "what was chosen is said")
	require.Equal(t, Pass, find(t, &r, "loopback").Status)

	o = clitest.RunTool(t, "doctor", "sim").Well(t)
	require.Empty(t, o.Stderr)
	lines := strings.Split(strings.TrimSpace(o.Stdout), "\n")
	require.Len(t, lines, len(checkNames())+1)
	for i, name := range checkNames() {
		require.Equal(t, name, strings.Fields(lines[i])[1], "the order of the checks")
	}
	require.Contains(t, lines[len(lines)-1], " 0 failed")

	cmd := clitest.Tool(t, "doctor", "--json")
	cmd.Env = append(cmd.Env, "RDMASHIM_DEVICE=sim")
	o = clitest.Finish(t, cmd)
	require.True(t, decodeDoctor(t, o).OK)
	require.Equal(t, "device sim (named by RDMASHIM_DEVICE)\n", o.Stderr)
}

// TestDoctorFails: a report with a failure is the output, and the status says
// so.
func TestDoctorFails(t *testing.T) {
	o := clitest.RunTool(t, "doctor", "-j", "soft:203.0.113.77")
	r := decodeDoctor(t, o)
	require.False(t, r.OK)
	require.Empty(t, o.Stderr)
	require.Equal(t, Fail, find(t, &r, "loopback").Status)
	o = clitest.RunTool(t, "doctor", "soft:203.0.113.77")
	require.Equal(t, 1, o.Code)
	require.Contains(t, o.Stdout, "FAIL  loopback")
	o = clitest.RunTool(t, "doctor", "-j", "nosuchdevice7")
	require.False(t, decodeDoctor(t, o).OK)
}

func TestDoctorBadInput(t *testing.T) {
	for _, c := range []struct {
		code int
		says string
		args []string
	}{
		{1, `unknown option "x"`, []string{"soft?x=1"}},
		{1, "is not a device name", []string{"a/b"}},
		{1, "not an IP address", []string{"soft:localhost"}},
		{2, "at most 1 argument", []string{"soft", "soft"}},
		{2, "--peer", []string{"soft", "--peer", "example.org"}},
		{2, "--peer", []string{"soft", "--peer", "0.0.0.0"}},
		{2, "unknown flag", []string{"--nosuch"}},
	} {
		o := clitest.RunTool(t, append([]string{"doctor"}, c.args...)...)
		require.Equal(t, c.code, o.Code, "%v", c.args)
		require.Empty(t, o.Stdout)
		line, rest, _ := strings.Cut(o.Stderr, "\n")
		require.Contains(t, line, c.says)
		require.Equal(t, c.code == 2, strings.HasSuffix(line, "(try 'rdmashim doctor --help')"), line)
		require.Empty(t, rest, "one line")
	}
}

// TestDoctorWithoutRoot: an ordinary user is told which parts are not seen, and
// the device works.
func TestDoctorWithoutRoot(t *testing.T) {
	r := decodeDoctor(t, clitest.Finish(t, clitest.WithoutRoot(t, "doctor", "-j", "soft")))
	require.True(t, r.OK, "%+v", r)
	require.Equal(t, Pass, find(t, &r, "loopback").Status)
	require.Contains(t, []Status{Skip, Pass}, find(t, &r, "firewall").Status) // Pass where nf_tables is not there
	require.Equal(t, Pass, find(t, &r, "netdev").Status)
}
