package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tools/rdmashim/perf"
	"github.com/rdmashim/rdmashim/tools/rdmashim/perf/suite"
	"github.com/rdmashim/rdmashim/vm/vmtest"
)

// TestPerfSuiteGuest measures a few rows in a guest: perftest and this project
// on rxe0, and both kinds of RNIC over a veth. Figures are not what is tested.
func TestPerfSuiteGuest(t *testing.T) {
	vmtest.Config(t) // skips where no guest can be booted
	o := runTool(t, "perf", "suite", "--vm", "--rounds", "1", "--json", "--run", "goodput on kernel rxe|over a veth")
	require.Contains(t, []int{0, 3}, o.Code, o.Stderr)
	var rows []suite.Row
	require.NoError(t, json.Unmarshal([]byte(o.Stdout), &rows), o.Stdout)
	require.Len(t, rows, 3)
	for _, r := range rows {
		if strings.HasPrefix(r.Reason, "no perftest: ") && os.Getenv("CI") != "true" {
			t.Log(r.Work, ": ", r.Reason)
			continue
		}
		require.Empty(t, r.Reason, r.Work)
		require.Positive(t, *r.Ours, r.Work)
		require.Positive(t, *r.ReferenceValue, r.Work)
		require.Positive(t, *r.Ratio, r.Work)
		require.NotNil(t, r.Met, r.Work)
		require.Equal(t, 1, r.Rounds, r.Work)
	}
}

// TestPerfOnRxe: each test of perf on a device of the kernel, with its data
// checked.
func TestPerfOnRxe(t *testing.T) {
	c := vmtest.Config(t)
	dir := t.TempDir()
	type run struct {
		words, file string
		status      int
	}
	var runs []run
	for _, op := range []string{"write", "read", "send", "atomic"} {
		for _, how := range []string{"bw", "lat", "bw -q 2 -b", "lat -e"} {
			runs = append(runs, run{words: op + " " + how})
		}
	}
	runs = append(runs, run{words: "write bw -s 1000 -m 1024 -x 1 --spoil", status: 1})
	script := ""
	for i := range runs {
		r := &runs[i]
		r.file = strings.ReplaceAll(r.words, " ", "_")
		script += fmt.Sprintf("rdmashim perf %s -d rxe0 -n 20 --check -j >/out/%[2]s.json 2>/out/%[2]s.err\necho $? >/out/%[2]s.status\n", r.words, r.file)
	}
	path := filepath.Join(dir, "script")
	require.NoError(t, os.WriteFile(path, []byte(script), 0o644))
	out := filepath.Join(dir, "out")
	o := runTool(t, "vm", "run", "-q", "--boot-timeout", "5m", "--out", out, "--image", c.Image, "--add", path+":/script", "--", "sh", "/script")
	require.Zero(t, o.Code, "stdout: %s stderr: %s", o.Stdout, o.Stderr)
	for _, r := range runs {
		said := string(readFile(t, filepath.Join(out, r.file+".err")))
		require.Equal(t, fmt.Sprintln(r.status), string(readFile(t, filepath.Join(out, r.file+".status"))), "%s: %s", r.words, said)
		if r.status != 0 {
			require.Contains(t, said, "corrupted: byte 499 of a message of 1000 bytes")
			continue
		}
		require.Empty(t, said, r.words)
		var report perf.Report
		require.NoError(t, json.Unmarshal(readFile(t, filepath.Join(out, r.file+".json")), &report), r.words)
		require.Equal(t, "host:rxe0", report.ClientDevice.Device)
		require.Equal(t, "host:rxe0", report.ServerDevice.Device)
		require.Len(t, report.Results, 1)
		require.True(t, report.Results[0].Checked)
		require.Equal(t, 20*report.Config.QPs*map[bool]int{false: 1, true: 2}[report.Config.Bidirectional], report.Results[0].Iterations)
	}
}
