package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/amount"
	"github.com/rdmashim/rdmashim/tools/rdmashim/perf"
	"github.com/rdmashim/rdmashim/vm/vmtest"
)

// guestPart is a part of TestOnRxe: lines of a script, which finds the files of
// a directory of the test in /in, and what is held of the files that it leaves
// in /out.
type guestPart struct {
	script string
	check  func(t *testing.T, out string)
}

// TestOnRxe runs what needs a device of the kernel in one guest, as a user runs
// a command there: perf, then the pages' commands, which take the device away
// and make it anew.
func TestOnRxe(t *testing.T) {
	image := vmtest.Config(t).Image
	in, out := t.TempDir(), filepath.Join(t.TempDir(), "out")
	perf, docs := perfOnRxe(), docsInGuest(t, in)
	require.NoError(t, os.WriteFile(filepath.Join(in, "script"), []byte("cat; echo to stderr >&2; rdmashim link show\n"+perf.script+docs.script+"exit 9\n"), 0o644))
	cmd := tool(t, "vm", "run", "--boot-timeout", "5m", "--log", filepath.Join(t.TempDir(), "log"), "--out", out, "--image", image, "--add", in+":/in", "--", "sh", "/in/script")
	cmd.Stdin = strings.NewReader("from standard input\n")
	o := finish(t, cmd)
	require.Equal(t, 9, o.Code, "stdout: %s stderr: %s", o.Stdout, o.Stderr)
	require.Regexp(t, `\Afrom standard input\n.*rxe0/1`, o.Stdout, "the tool in the guest sees its link")
	require.NotContains(t, o.Stdout, "rdmashim:", "standard output is the command's alone")
	require.Contains(t, o.Stderr, "to stderr\n")
	require.Contains(t, o.Stderr, "off after")
	t.Run("perf", func(t *testing.T) { perf.check(t, out) })
	t.Run("docs", func(t *testing.T) { docs.check(t, out) })
}

// perfOnRxe is tests of perf, with their data checked, and one that finds
// spoilt data.
func perfOnRxe() (part guestPart) {
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
	runs = amount.Some(runs, 5) // each operation and each way once
	runs = append(runs, run{words: "write bw -s 1000 -m 1024 -x 1 --spoil", status: 1})
	for i := range runs {
		r := &runs[i]
		r.file = strings.ReplaceAll(r.words, " ", "_")
		part.script += fmt.Sprintf("rdmashim perf %s -d rxe0 -n 20 --check -j >/out/%[2]s.json 2>/out/%[2]s.err\necho $? >/out/%[2]s.status\n", r.words, r.file)
	}
	part.check = func(t *testing.T, out string) {
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
	return part
}
