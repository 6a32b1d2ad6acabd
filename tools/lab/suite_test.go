package main

import (
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/amount"
	"github.com/rdmashim/rdmashim/tools/internal/cli/clitest"
	"github.com/rdmashim/rdmashim/tools/lab/suite"
)

func TestMain(m *testing.M) { clitest.Main(m, commands) }

// suiteTool prepares a run of the suite.
func suiteTool(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := clitest.Tool(t, append([]string{"suite"}, args...)...)
	cmd.Env = append(cmd.Env, "RDMASHIM_DEVICE=soft?port=0")
	return cmd
}

// TestSuite: the rows' JSON, of a reference that is built in and of one that is
// not there. Whether targets are met is not what is tested.
func TestSuite(t *testing.T) {
	cmd := suiteTool(t, "--rounds", "2", "-D", "0.002", "--json", "--run", "^WRITE 1 MiB goodput .GB|^READ|^WRITE 64 B ping-pong, waiting|^allocations|^fairness|slow receiver")
	cmd.Env = append(cmd.Env, "PATH=/nonexistent")
	o := clitest.Finish(t, cmd)
	require.Contains(t, []int{0, 3}, o.Code, o.Stderr)
	require.LessOrEqual(t, strings.Count(o.Stderr, "\n"), 1, o.Stderr)
	rows := clitest.Decode[[]map[string]any](t, o)
	require.Len(t, rows, 12)
	require.Equal(t, len(rows)+2, strings.Count(o.Stdout, "\n"), "a row a line")
	unmet := 0
	for _, r := range rows {
		names := []string{"work", "ours", "reference", "reference_value", "ratio", "target", "met", "rounds", "spread"}
		if r["reason"] != nil {
			names = append(names, "reason")
		}
		require.ElementsMatch(t, names, slices.Collect(maps.Keys(r)))
		switch ref := r["reference"].(string); {
		case strings.Contains(ref, "UCX"), strings.Contains(ref, "libfabric"), strings.Contains(ref, "iperf3"):
			require.Nil(t, r["reference_value"])
			require.Nil(t, r["ratio"])
			require.Nil(t, r["met"])
			require.Contains(t, r["reason"], "not installed")
		case r["reason"] != nil:
			require.Contains(t, ref, "raw UDP", "only GSO may be missing: %v", r["reason"])
		default:
			require.NotNil(t, r["ours"])
			require.EqualValues(t, 2, r["rounds"])
			require.IsType(t, true, r["met"])
			if !r["met"].(bool) {
				unmet++
			}
		}
	}
	require.Equal(t, map[bool]int{false: 0, true: 3}[unmet > 0], o.Code)
	require.Equal(t, unmet > 0, strings.Contains(o.Stderr, "targets not met"))
}

// TestSuiteStreams: rows of streams, between processes whose devices are found
// by address.
func TestSuiteStreams(t *testing.T) {
	var rows []suite.Row
	// An address of which more connections wait, and that confirms none for a
	// second, is taken for a stranger (uapi/internal/admission): so is a client
	// that starves beside a dozen other processes.
	for try := 0; try == 0 || try < 3 && *rows[1].Ours > 0; try++ {
		rows = suiteRows(t, "^net.Conn, 64 B ping-pong, p99|at once, failed", 2, "RDMASHIM_DEVICE=soft")
	}
	require.Positive(t, *rows[0].Ratio)
	require.Zero(t, *rows[1].Ours, "connections failed")
}

// suiteRows runs the n rows of the suite that run names, once and shortly.
func suiteRows(t *testing.T, run string, n int, env ...string) []suite.Row {
	t.Helper()
	cmd := suiteTool(t, "--rounds", "1", "-D", "0.002", "--json", "--run", run)
	cmd.Env = append(cmd.Env, env...)
	o := clitest.Finish(t, cmd)
	require.Contains(t, []int{0, 3}, o.Code, o.Stderr)
	rows := clitest.Decode[[]suite.Row](t, o)
	require.Len(t, rows, n)
	for _, r := range rows {
		require.NotNil(t, r.Ours, r)
		require.True(t, r.ReferenceValue != nil || r.Reference == "a bound", r)
	}
	return rows
}

// TestSuiteTransports: the rows that docs/transports.md has.
func TestSuiteTransports(t *testing.T) {
	amount.Unraced(t)
	suiteRows(t, "^registration", 15)
}

// TestSuiteHost: rows of programs that wait, and of shared memory, beside
// sockets and copies.
func TestSuiteHost(t *testing.T) {
	suiteRows(t, "^SEND 64 B ping-pong, waiting, p50|^shm, WRITE 64 KiB", 3)
}

func TestSuiteTables(t *testing.T) {
	for flag, want := range map[string]string{
		"--markdown": `^\| work \| ours \|.*\n\|.*\n\| READ.*\n\nHost: \d+ processors.*\.\n$`,
		"-D0.002":    `^work .*\nREAD.*\nhost: \d+ processors.*\n$`,
	} {
		o := clitest.Finish(t, suiteTool(t, "--rounds", "1", "-D", "0.002", "--run", "^READ", flag))
		require.Contains(t, []int{0, 3}, o.Code, o.Stderr)
		require.Regexp(t, want, o.Stdout)
	}
}

func TestSuiteUsage(t *testing.T) {
	clitest.Refused(t, 2, "suite", map[string]string{
		"--rounds 0":        "--rounds",
		"-D 0":              "-D",
		"--run (":           "--run",
		"--run nothing":     "matches no row",
		"--json --markdown": "exclude",
		"x":                 "takes no arguments",
	})
}

// TestSuiteDevice: a device that is not there fails on one line, which is the
// rows' reason, too.
func TestSuiteDevice(t *testing.T) {
	o := clitest.Finish(t, suiteTool(t, "--json", "--rounds", "1", "-D", "0.002", "--run", "^READ|^fairness", "-d", "nosuch0"))
	require.Equal(t, 1, o.Code)
	require.Equal(t, 1, strings.Count(o.Stderr, "\n"), o.Stderr)
	rows := clitest.Decode[[]suite.Row](t, o)
	require.Len(t, rows, 2)
	for _, r := range rows {
		require.True(t, strings.HasPrefix(r.Reason, "failed: rdma Open"), r.Reason)
		require.Contains(t, r.Reason, "nosuch0")
	}
}
