package main

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPerfSuite: the rows' JSON, of a reference that is built in and of one that
// is not there. Whether targets are met is not what is tested.
func TestPerfSuite(t *testing.T) {
	cmd := tool(t, "perf", "suite", "--rounds", "2", "-D", "0.002", "--json", "--run", "^WRITE 1 MiB|^READ|waiting|^allocations|^fairness")
	cmd.Env = append(cmd.Env, "PATH=/nonexistent")
	o := finish(t, cmd)
	require.Contains(t, []int{0, 3}, o.code, o.stderr)
	require.LessOrEqual(t, strings.Count(o.stderr, "\n"), 1, o.stderr)
	var rows []map[string]any
	require.NoError(t, json.Unmarshal([]byte(o.stdout), &rows), o.stdout)
	require.Len(t, rows, 10)
	require.Equal(t, len(rows)+2, strings.Count(o.stdout, "\n"), "a row a line")
	unmet := 0
	for _, r := range rows {
		for _, key := range []string{"work", "ours", "reference", "reference_value", "ratio", "target", "met", "rounds", "spread"} {
			require.Contains(t, r, key)
		}
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
	require.Equal(t, map[bool]int{false: 0, true: 3}[unmet > 0], o.code)
	require.Equal(t, unmet > 0, strings.Contains(o.stderr, "targets not met"))
}

func TestPerfSuiteTables(t *testing.T) {
	for flag, want := range map[string]string{"--markdown": "| work | ours |", "-D0.002": "work "} {
		o := runTool(t, "perf", "suite", "--rounds", "1", "-D", "0.002", "--run", "^READ", flag)
		require.Contains(t, []int{0, 3}, o.code, o.stderr)
		require.True(t, strings.HasPrefix(o.stdout, want), o.stdout)
		require.Equal(t, 1+strings.Count(want, "|")/3+1, strings.Count(o.stdout, "\n"))
	}
}

func TestPerfSuiteUsage(t *testing.T) {
	for args, want := range map[string]string{
		"--rounds 0":        "--rounds",
		"-D 0":              "-D",
		"--run (":           "--run",
		"--run nothing":     "matches no row",
		"--json --markdown": "exclude",
		"x":                 "takes no arguments",
	} {
		o := runTool(t, append([]string{"perf", "suite"}, strings.Fields(args)...)...)
		require.Equal(t, 2, o.code, args)
		require.Contains(t, o.stderr, want)
	}
}

// TestPerfPlot: the picture is well-formed, and has a point for each that could
// be measured.
func TestPerfPlot(t *testing.T) {
	path := filepath.Join(t.TempDir(), "plot.svg")
	o := runTool(t, "perf", "suite", "--rounds", "1", "-D", "0.001", "--run", "^READ", "--plot", path)
	require.Contains(t, []int{0, 3}, o.code, o.stderr)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	points := map[string]int{}
	for d := xml.NewDecoder(strings.NewReader(string(text))); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		if e, ok := token.(xml.StartElement); ok {
			points[e.Name.Local]++
		}
	}
	require.Equal(t, 6, points["polyline"])
	require.GreaterOrEqual(t, points["circle"], 4*12, "sizes of four curves that every system has")
	for _, want := range []string{"Bandwidth over size", "Half round trip over size", "Goodput over loss", "raw UDP", "8M"} {
		require.Contains(t, string(text), want)
	}
}

func TestComparisonRow(t *testing.T) {
	of := func(v ...float64) *series { return &series{measure: measured, values: v} }
	for _, c := range []struct {
		name      string
		c         comparison
		ratio     float64
		spread    float64
		met, none bool
	}{
		{"at least, met", comparison{ours: of(2, 4, 6), reference: of(1, 2, 2), target: 2}, 2, 0.5, true, false},
		{"at least, not met", comparison{ours: of(1), reference: of(2), target: 0.6}, 0.5, 0, false, false},
		{"at most, met", comparison{ours: of(1), reference: of(2), target: 0.5, atMost: true}, 0.5, 0, true, false},
		{"at most, not met", comparison{ours: of(3), reference: of(2), target: 1.25, atMost: true}, 1.5, 0, false, false},
		{"no target", comparison{ours: of(3), reference: of(2), target: math.NaN()}, 1.5, 0, false, true},
		{"a bound", comparison{ours: of(0, 0), reference: &series{}, target: 0, atMost: true}, 0, 0, true, false},
	} {
		r := c.c.row()
		require.InDelta(t, c.ratio, *r.Ratio, 1e-9, c.name)
		require.InDelta(t, c.spread, *r.Spread, 1e-9, c.name)
		if c.none {
			require.Nil(t, r.Met)
			require.Nil(t, r.Target)
			continue
		}
		require.Equal(t, c.met, *r.Met, c.name)
	}
}

func TestFairness(t *testing.T) {
	require.Equal(t, 1.0, fairness([]float64{2, 2, 2, 2}))
	require.Equal(t, 0.25, fairness([]float64{0, 8, 0, 0}))
	require.Zero(t, fairness([]float64{0, 0}))
}

// TestReadReferences reads what the programs printed, of ucx_perftest 1.13.1,
// fi_pingpong 1.17.0 and iperf3 3.12.
func TestReadReferences(t *testing.T) {
	printed := func(name string) string {
		text, err := os.ReadFile(filepath.Join("testdata", "perf", name))
		require.NoError(t, err)
		return string(text)
	}
	for _, c := range []struct {
		name            string
		middle, overall float64
	}{
		{"ucx_put_bw.txt", 0.282, 1190.040}, {"ucx_put_bw_64.txt", 0.540, 2.056}, {"ucx_put_lat.txt", 9.395, 31.330},
	} {
		middle, overall, err := readUCX(printed(c.name))
		require.NoError(t, err, c.name)
		require.Equal(t, c.middle, middle, c.name)
		require.Equal(t, c.overall, overall, c.name)
	}
	// One that ran for more than a second tells of each second, too.
	_, overall, err := readUCX(`+--------------+--------------+----------+---------+---------+----------+----------+-----------+-----------+
[thread 0]               166      0.062  5991.772  5991.772      166.90     166.90         167         167
Final:                   200      0.062 51737.203 13768.495       19.33      72.63          19          73
`)
	require.NoError(t, err)
	require.Equal(t, 13768.495, overall)
	v, err := readPingPong(printed("fi_pingpong.txt"), 1<<20)
	require.NoError(t, err)
	require.InDelta(t, 0.05357, v, 0.0001, "as it says itself")
	v, err = readIperf3([]byte(printed("iperf3.json")))
	require.NoError(t, err)
	require.InDelta(t, 2.032, v, 0.001)
	for _, bad := range []string{"", "Final:", "Final: 1 2 3 x", "Final: 1 2 3 0", "{}", "1m 1 1 1 1 1 x 1"} {
		_, _, err := readUCX(bad)
		require.Error(t, err)
		_, err = readPingPong(bad, 1)
		require.Error(t, err)
		_, err = readIperf3([]byte(bad))
		require.Error(t, err)
	}
}

func measured(context.Context) (float64, error) { return 0, nil }
