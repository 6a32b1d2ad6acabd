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
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestPerfSuite: the rows' JSON, of a reference that is built in and of one that
// is not there. Whether targets are met is not what is tested.
func TestPerfSuite(t *testing.T) {
	cmd := perfTool(t, "suite", "--rounds", "2", "-D", "0.002", "--json", "--run", "^WRITE 1 MiB goodput .GB|^READ|waiting|^allocations|^fairness|slow receiver")
	cmd.Env = append(cmd.Env, "PATH=/nonexistent")
	o := finish(t, cmd)
	require.Contains(t, []int{0, 3}, o.code, o.stderr)
	require.LessOrEqual(t, strings.Count(o.stderr, "\n"), 1, o.stderr)
	var rows []map[string]any
	require.NoError(t, json.Unmarshal([]byte(o.stdout), &rows), o.stdout)
	require.Len(t, rows, 11)
	require.Equal(t, len(rows)+2, strings.Count(o.stdout, "\n"), "a row a line")
	unmet := 0
	for _, r := range rows {
		names := []string{"work", "ours", "reference", "reference_value", "ratio", "target", "met", "rounds", "spread"}
		if r["reason"] != nil {
			names = append(names, "reason")
		}
		require.ElementsMatch(t, names, keys(r))
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
		o := runPerfTool(t, "suite", "--rounds", "1", "-D", "0.002", "--run", "^READ", flag)
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
		o := runPerfTool(t, append([]string{"suite"}, strings.Fields(args)...)...)
		require.Equal(t, 2, o.code, args)
		require.Contains(t, o.stderr, want)
	}
}

// TestPerfPlot: the picture is well-formed, and has a point for each that could
// be measured.
func TestPerfPlot(t *testing.T) {
	t.Setenv(asTool, "1")
	path := filepath.Join(t.TempDir(), "plot.svg")
	s := &suite{rounds: 1, turn: time.Millisecond, plot: path, stderr: io.Discard}
	require.NoError(t, s.draw(t.Context(), []int{64, 1 << 20}, []float64{0.1, 5}))
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
	require.Equal(t, 9, points["polyline"])
	require.GreaterOrEqual(t, points["circle"], 3*2+2*2+2, "points of the curves that every system has")
	for _, want := range []string{"Bandwidth over size", "Half round trip over size", "Goodput over loss", "raw UDP", "without loss", ">1M<", ">5 %<", "MB/s", "µs"} {
		require.Contains(t, string(text), want)
	}
	// The picture of the pages is one of these, whatever its figures.
	shown := string(readFile(t, filepath.Join(repository, "docs", "speed.svg")))
	figure := regexp.MustCompile(`^[0-9.]+[KMG]?( %)?$`)
	words := regexp.MustCompile(`<text[^>]*>([^<]*)</text>`).FindAllStringSubmatch(string(text), -1)
	require.NotEmpty(t, words)
	for _, w := range words {
		if !figure.MatchString(w[1]) {
			require.Contains(t, shown, ">"+w[1]+"</text>")
		}
	}
}

func TestComparisonRow(t *testing.T) {
	of := func(v ...float64) *series { return &series{measure: measured, values: v} }
	nan := math.NaN()
	for _, c := range []struct {
		name   string
		c      comparison
		figure float64
		spread float64
		rounds int
		met    bool
	}{
		{"at least, met", comparison{ours: of(2, 4, 6), reference: of(1, 2, 2), target: 2}, 2, 0.25, 3, true},
		{"at least, not met", comparison{ours: of(1), reference: of(2), target: 0.6}, 0.5, 0, 1, false},
		{"at most, met", comparison{ours: of(1), reference: of(2), target: 0.5, atMost: true}, 0.5, 0, 1, true},
		{"at most, not met", comparison{ours: of(3), reference: of(2), target: 1.25, atMost: true}, 1.5, 0, 1, false},
		{"the median of ratios, not the ratio of medians", comparison{ours: of(1, 10, 4), reference: of(1, 1, 8), target: 2}, 1, 4.75, 3, false},
		{"an even number of rounds", comparison{ours: of(1, 2), reference: of(1, 1), target: 1.5}, 1.5, 1. / 3, 2, true},
		{"a round without its reference", comparison{ours: of(1, 2, 3), reference: of(1, nan, 1), target: 2}, 2, 0.5, 2, true},
		{"a reference that went", comparison{ours: of(1, 2, 3), reference: of(1, 1), target: 2}, 1.5, 1. / 3, 2, false},
		{"a bound", comparison{ours: of(0, 0), reference: bound, target: 0, atMost: true}, 0, 0, 2, true},
		{"a bound, not met", comparison{ours: of(1, 3), reference: bound, target: 1, atMost: true}, 2, 0.5, 2, false},
	} {
		r := c.c.row()
		require.Empty(t, r.Reason, c.name)
		require.InDelta(t, c.spread, *r.Spread, 1e-9, c.name)
		require.Equal(t, c.rounds, r.Rounds, c.name)
		require.Equal(t, c.met, *r.Met, c.name)
		if c.c.reference == bound {
			require.Nil(t, r.Ratio, c.name)
			require.Nil(t, r.ReferenceValue, c.name)
			require.InDelta(t, c.figure, *r.Ours, 1e-9, c.name)
			continue
		}
		require.InDelta(t, c.figure, *r.Ratio, 1e-9, c.name)
		require.NotNil(t, r.ReferenceValue, c.name)
	}
	r := (&comparison{work: "w", unit: "GB/s", ours: of(3), reference: of(2), target: none}).row()
	require.Equal(t, "w (GB/s)", r.Work)
	require.InDelta(t, 1.5, *r.Ratio, 1e-9)
	require.Nil(t, r.Met)
	require.Nil(t, r.Target)
}

// TestComparisonRowReasons: what is missing says why, and has no verdict; what is
// there is shown.
func TestComparisonRowReasons(t *testing.T) {
	of := func(v ...float64) *series { return &series{measure: measured, values: v} }
	absent, failed := &series{name: "it", absent: "is not installed"}, of(math.NaN())
	failed.failed = errors.New("broke")
	for want, c := range map[string]comparison{
		"is not installed": {ours: of(1), reference: absent, target: 1},
		"failed: broke":    {ours: failed, reference: of(1), target: 1},
	} {
		r := c.row()
		require.Equal(t, want, r.Reason)
		require.Nil(t, r.Ratio)
		require.Nil(t, r.Met)
		require.Nil(t, r.Spread)
		require.Zero(t, r.Rounds)
		require.Equal(t, c.ours == failed, r.Ours == nil)
		require.Equal(t, c.reference == absent, r.ReferenceValue == nil)
	}
}

// TestSuiteJSON: the keys, and null for what is not there.
func TestSuiteJSON(t *testing.T) {
	var b strings.Builder
	require.NoError(t, suiteJSON(&b, []suiteRow{{Work: "w", Reference: "r", Reason: "gone"}, {Work: "x"}}))
	require.Equal(t, `[
{"work":"w","ours":null,"reference":"r","reference_value":null,"ratio":null,"target":null,"met":null,"rounds":0,"spread":null,"reason":"gone"},
{"work":"x","ours":null,"reference":"","reference_value":null,"ratio":null,"target":null,"met":null,"rounds":0,"spread":null}
]
`, b.String())
}

// TestSuiteMeasure: every series runs once a round, those that share a
// measurement share it, and what fails ends neither the round nor others.
func TestSuiteMeasure(t *testing.T) {
	s := &suite{rounds: 3, stderr: io.Discard}
	shared, broken, away := 0, 0, 0
	run := memo(s, func(context.Context) (int, error) { shared++; return shared, nil })
	a := pick("a", run, func(n int) float64 { return float64(n) })
	b := pick("b", run, func(n int) float64 { return float64(10 * n) })
	bad := pick("bad", func(context.Context) (int, error) { broken++; return 0, errors.New("broke") }, func(int) float64 { return 0 })
	gone := pick("gone", func(context.Context) (int, error) {
		if away++; away == 2 {
			return 0, &notHere{"away"}
		}
		return 1, nil
	}, func(n int) float64 { return float64(n) })
	never := pick("never", func(context.Context) (int, error) { return 0, &notHere{"nowhere"} }, func(int) float64 { return 0 })
	table := []comparison{
		{"ab", "", a, b, 0.1, false}, {"a", "", a, bad, 1, false}, {"a", "", a, gone, 1, false}, {"a", "", a, never, 1, false},
	}
	require.NoError(t, s.measure(t.Context(), table))
	require.Equal(t, []float64{1, 2, 3}, a.values)
	require.Equal(t, []float64{10, 20, 30}, b.values)
	require.Equal(t, 3, shared)
	require.Equal(t, 1, broken)
	var rows []suiteRow
	for _, c := range table {
		rows = append(rows, c.row())
	}
	require.True(t, *rows[0].Met)
	require.Equal(t, "failed: broke", rows[1].Reason)
	require.Equal(t, 2, rows[2].Rounds)
	require.Equal(t, "nowhere", rows[3].Reason)
	require.ErrorContains(t, verdict(table, rows, nil), "measurements failed: bad: broke")
	var status *exitStatus
	require.ErrorAs(t, verdict(table[2:], []suiteRow{{Met: new(bool)}, {}}, nil), &status)
	require.Equal(t, 3, status.Code)
	require.ErrorContains(t, status, "1 of 1 targets", "a row without a verdict is not counted")
	require.NoError(t, verdict(table[:1], rows[:1], nil))
}

// TestPerfSuiteDevice: a device that is not there fails on one line, which is the
// rows' reason, too; only soft devices can be weighed.
func TestPerfSuiteDevice(t *testing.T) {
	o := runPerfTool(t, "suite", "--json", "--rounds", "1", "-D", "0.002", "--run", "^READ|^fairness", "-d", "nosuch0")
	require.Equal(t, 1, o.code)
	require.Equal(t, 1, strings.Count(o.stderr, "\n"), o.stderr)
	var rows []suiteRow
	require.NoError(t, json.Unmarshal([]byte(o.stdout), &rows))
	require.Len(t, rows, 2)
	for _, r := range rows {
		require.True(t, strings.HasPrefix(r.Reason, "failed: rdma Open"), r.Reason)
		require.Contains(t, r.Reason, "nosuch0")
	}
	for device, absent := range map[string]string{
		"soft": "", "soft?mtu=1024": "", "soft:127.0.0.3": "", "soft:[::1]?mtu=1024": "",
		"rxe0?doorbell=raw": "queue pairs of rxe0 are not in this process",
	} {
		require.Equal(t, absent, (&suite{device: device}).weight().absent, device)
	}
}

// TestSuiteAlternates: in every other round what came last comes first.
func TestSuiteAlternates(t *testing.T) {
	var order []string
	of := func(name string) *series {
		return &series{name: name, measure: func(context.Context) (float64, error) { order = append(order, name); return 1, nil }}
	}
	s := &suite{rounds: 3, stderr: io.Discard}
	require.NoError(t, s.measure(t.Context(), []comparison{{ours: of("ours"), reference: of("reference")}}))
	require.Equal(t, []string{"ours", "reference", "reference", "ours", "ours", "reference"}, order)
}

// TestChart: where points lie, names that XML would take for its own, and an
// empty chart.
func TestChart(t *testing.T) {
	c := chart{"a < b", "x", "y", bytesTick, []*curve{{name: "first & only", x: []float64{1, 4, 16}, y: []float64{1, 10, 100}}}}
	text := string(svg([]chart{c, {title: "none"}}))
	for _, want := range []string{
		"a &lt; b", "first &amp; only", "nothing of this could be measured here",
		`points="70.0,270.0 345.0,161.0 620.0,52.0 "`, // corners and middle of the axes
		">16<", ">50<",
	} {
		require.Contains(t, text, want)
	}
}

func TestQuantile(t *testing.T) {
	v := []float64{5, 1, 4, 2, 3}
	require.Equal(t, []float64{1, 2, 3, 4, 5}, []float64{quantile(v, 0), quantile(v, 0.25), median(v), quantile(v, 0.75), quantile(v, 1)})
	require.Equal(t, []float64{5, 1, 4, 2, 3}, v, "as it was")
	require.Equal(t, 1.5, median([]float64{2, 1}))
	require.Zero(t, median(nil))
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

// TestReadPerftest reads what perftest 4.5 printed on rxe.
func TestReadPerftest(t *testing.T) {
	for _, c := range []struct {
		name, size string
		want       []float64 // the first figures
	}{
		{"perftest_bw.txt", "65536", []float64{65536, 500, 71.51, 68.09, 0.001089}},
		{"perftest_rate.txt", "64", []float64{64, 10000, 3.75, 3.65, 0.059809}},
		{"perftest_lat.txt", "64", []float64{64, 2000, 9.18, 220.45, 9.46}},
	} {
		text, err := os.ReadFile(filepath.Join("testdata", "perf", c.name))
		require.NoError(t, err)
		v, err := readPerftest(string(text), c.size)
		require.NoError(t, err)
		require.Equal(t, c.want, v[:5], c.name)
		_, err = readPerftest(string(text), "12345")
		require.ErrorContains(t, err, "no result")
		// Without the end of its last line but one nothing is made up.
		lines := strings.SplitAfter(string(text), "\n")
		_, err = readPerftest(strings.Join(lines[:len(lines)-3], "")+" "+c.size+"  100  1.0\n", c.size)
		require.Error(t, err)
	}
}

// TestGuestRowsAbsent: without a guest its rows are there, and say so.
func TestGuestRowsAbsent(t *testing.T) {
	s := &suite{stderr: io.Discard, noPrograms: "no perftest here"}
	table := s.guestTable()
	rows, err := s.runGuest(t.Context(), table)
	require.NoError(t, err)
	require.Len(t, rows, 7)
	bells := 0
	for i, r := range rows {
		require.Contains(t, r.Reason, "--vm")
		require.Nil(t, r.Ours)
		require.Nil(t, r.Met)
		require.NotNil(t, r.Target)
		require.Equal(t, table[i].atMost, r.atMost)
		if strings.Contains(r.Work, "kernel rxe") {
			require.Contains(t, r.Work, "doorbell=", "the call is named")
			require.Equal(t, "no perftest here", table[i].reason())
			bells++
		}
	}
	require.Equal(t, 6, bells)
}

func measured(context.Context) (float64, error) { return 0, nil }
