package suite

import (
	"context"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/leak"
	"github.com/rdmashim/rdmashim/tools/internal/cli"
)

func TestMain(m *testing.M) { leak.Main(m) }

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

// TestComparisonRowReasons: a missing value has its reason and no verdict;
// present ones are shown.
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

// TestSuiteJSON: the keys, and null for absent values.
func TestSuiteJSON(t *testing.T) {
	var b strings.Builder
	require.NoError(t, printJSON(&b, []Row{{Work: "w", Reference: "r", Reason: "gone"}, {Work: "x"}}))
	require.Equal(t, `[
{"work":"w","ours":null,"reference":"r","reference_value":null,"ratio":null,"target":null,"met":null,"rounds":0,"spread":null,"reason":"gone"},
{"work":"x","ours":null,"reference":"","reference_value":null,"ratio":null,"target":null,"met":null,"rounds":0,"spread":null}
]
`, b.String())
}

// TestSuiteMeasure: every series runs once a round, those that share a
// measurement share it, and a measurement that fails ends neither the round nor
// others.
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
	var rows []Row
	for _, c := range table {
		rows = append(rows, c.row())
	}
	require.True(t, *rows[0].Met)
	require.Equal(t, "failed: broke", rows[1].Reason)
	require.Equal(t, 2, rows[2].Rounds)
	require.Equal(t, "nowhere", rows[3].Reason)
	require.ErrorContains(t, verdict(table, rows, nil), "measurements failed: bad: broke")
	var status *cli.ExitStatus
	require.ErrorAs(t, verdict(table[2:], []Row{{Met: new(bool)}, {}}, nil), &status)
	require.Equal(t, 3, status.Code)
	require.ErrorContains(t, status, "1 of 1 targets", "a row without a verdict is not counted")
	require.NoError(t, verdict(table[:1], rows[:1], nil))
}

// TestSuiteAlternates: in every other round the order is reversed.
func TestSuiteAlternates(t *testing.T) {
	var order []string
	of := func(name string) *series {
		return &series{name: name, measure: func(context.Context) (float64, error) { order = append(order, name); return 1, nil }}
	}
	s := &suite{rounds: 3, stderr: io.Discard}
	require.NoError(t, s.measure(t.Context(), []comparison{{ours: of("ours"), reference: of("reference")}}))
	require.Equal(t, []string{"ours", "reference", "reference", "ours", "ours", "reference"}, order)
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

// TestReadPrograms reads what the programs printed: ucx_perftest 1.13.1,
// fi_pingpong 1.17.0, iperf3 3.12, and perftest 4.5 on rxe.
func TestReadPrograms(t *testing.T) {
	for _, c := range []struct {
		file string
		p    program
		size int
		want []float64
	}{
		{"ucx_put_bw.txt", ucx, 1 << 20, []float64{0.282, 1190.040}},
		{"ucx_put_bw_64.txt", ucx, 64, []float64{0.540, 2.056}},
		{"ucx_put_lat.txt", ucx, 64, []float64{9.395, 31.330}},
		{"fi_pingpong.txt", libfabric, 1 << 20, []float64{19572.93}},
		{"iperf3.json", iperf3, 0, []float64{16256069279.012287}},
		{"perftest_bw.txt", perftest, 65536, []float64{0.001089}},
		{"perftest_rate.txt", perftest, 64, []float64{0.059809}},
		{"perftest_lat.txt", perftest, 64, []float64{9.46}},
	} {
		text, err := os.ReadFile(filepath.Join("testdata", c.file))
		require.NoError(t, err)
		got, err := c.p.read(text, c.size)
		require.NoError(t, err, c.file)
		require.Equal(t, c.want, got, c.file)
		_, err = c.p.read(text[:len(text)/3], c.size)
		require.Error(t, err, c.file)
	}
	// A run of more than a second tells of each second, too.
	got, err := ucx.read([]byte(`+--------------+--------------+----------+---------+---------+----------+----------+-----------+-----------+
[thread 0]               166      0.062  5991.772  5991.772      166.90     166.90         167         167
Final:                   200      0.062 51737.203 13768.495       19.33      72.63          19          73
`), 1<<20)
	require.NoError(t, err)
	require.Equal(t, 13768.495, got[1])
	for _, bad := range []string{"", "Final:", "Final: 1 2 3 x", "Final: 1 2 3 0", "{}", "1m 1 1 1 1 1 x 1"} {
		for _, p := range []program{ucx, libfabric, iperf3, perftest} {
			_, err := p.read([]byte(bad), 1)
			require.Error(t, err, bad)
		}
	}
	_, err = perftest.read([]byte(" 12345  100  1.0\n"), 12345)
	require.Error(t, err)
}

// TestWeight: only soft devices can be weighed.
func TestWeight(t *testing.T) {
	for device, absent := range map[string]string{
		"soft": "", "soft?mtu=1024": "", "soft:127.0.0.3": "", "soft:[::1]?mtu=1024": "",
		"rxe0?doorbell=raw": "queue pairs of rxe0 are not in this process",
	} {
		require.Equal(t, absent, (&suite{device: device}).weight().absent, device)
	}
}

// TestBenchmarks: lines of go test become rows; a file without any is an error.
func TestBenchmarks(t *testing.T) {
	file := filepath.Join(t.TempDir(), "log")
	require.NoError(t, os.WriteFile(file, []byte(`goos: linux
BenchmarkWrite/1MiB-2 5 10 ns/op 7 cpu-ratio 100 ours-MB/s 0.5 ratio 200 ref-MB/s 0.7 target
BenchmarkWrite/64B 7 1.5 ratio 3 ours-MB/s 2 ref-MB/s 0 target
BenchmarkOther-2 5 10 ns/op
reference: theirs
BenchmarkCall-2 3 1.3 limit 12 ours-µs 2 p99-ours-µs 1.2 ratio 10 ref-µs
`), 0o666))
	rows, err := readBenchmarks(file)
	require.NoError(t, err)
	var b strings.Builder
	require.NoError(t, printJSON(&b, rows))
	require.Equal(t, `[
{"work":"Write/1MiB in one process (MB/s)","ours":100,"reference":"raw UDP in one process","reference_value":200,"ratio":0.5,"target":0.7,"met":false,"rounds":5,"spread":null},
{"work":"Write/64B in one process (MB/s)","ours":3,"reference":"raw UDP in one process","reference_value":2,"ratio":1.5,"target":null,"met":null,"rounds":7,"spread":null},
{"work":"Call (µs)","ours":12,"reference":"theirs","reference_value":10,"ratio":1.2,"target":1.3,"met":true,"rounds":3,"spread":null}
]
`, b.String())
	require.Equal(t, "≤ 1.3", rows[2].cells()[5])
	require.Equal(t, "0.50", rows[0].cells()[4])
	for _, bad := range []string{"", "BenchmarkX 1 x ratio"} {
		require.NoError(t, os.WriteFile(file, []byte(bad), 0o666))
		_, err = readBenchmarks(file)
		require.ErrorContains(t, err, file)
	}
}

// TestGuestRowsAbsent: without a guest its rows are there, and say so.
func TestGuestRowsAbsent(t *testing.T) {
	s := &suite{stderr: io.Discard, noPrograms: "no perftest here"}
	table := s.guestTable()
	rows, err := s.runGuest(t.Context(), table)
	require.NoError(t, err)
	require.Len(t, rows, 9)
	bells := 0
	for i, r := range rows {
		require.Contains(t, r.Reason, "--vm")
		require.Nil(t, r.Ours)
		require.Nil(t, r.Met)
		require.Equal(t, strings.Contains(r.Work, "emulated"), r.Target == nil, r.Work)
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
