package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBenchRows: a row of tools/bench has the keys of the suite's rows.
func TestBenchRows(t *testing.T) {
	if testing.Short() {
		t.Skip("-short leaves out building benchmarks; run it without -short")
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(repository, "tools", "bench"), "--json", "--rounds", "1", "--run", "Write/^4KiB")
	out, err := cmd.Output()
	require.NoError(t, err)
	var row map[string]any
	require.NoError(t, json.Unmarshal(out, &row), "%s", out)
	require.ElementsMatch(t, []string{"work", "ours", "reference", "reference_value", "ratio", "target", "met", "rounds", "spread"}, keys(row))
	require.Equal(t, "Write/4KiB in one process (MB/s)", row["work"])
	require.Positive(t, row["ratio"])
	require.Nil(t, row["met"], "it has no target")
}

// stubGo takes the place of the go command: the tool that it builds ends with
// $SUITE, and prints its arguments in a row.
const stubGo = `#!/bin/sh
case $1 in
test) echo 'BenchmarkWrite/1MiB-2 5 100 ours-MB/s 0.8 ratio 200 ref-MB/s 0.7 target' ;;
build)
	printf '#!/bin/sh\nprintf "[\n{\"work\":\"%%s\"}\n]\n" "$*"\nexit %s\n' "$SUITE" >"$3"
	chmod +x "$3" ;;
esac
`

// TestBenchCheck: tools/bench gives the suite what the benchmarks wrote, and
// with --check its status says whether a target is missed.
func TestBenchCheck(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go"), []byte(stubGo), 0o777))
	for _, c := range []struct {
		args, suite string
		status      int
		options     string
	}{
		{"--check", "0", 0, "--vm --rounds 5"},
		{"--check", "3", 3, "--vm --rounds 5"},
		{"--check", "1", 1, "--vm --rounds 5"},
		{"", "3", 0, "--vm --rounds 5"},
		{"--suite-rounds 2", "0", 0, "--vm --rounds 2"},
		{"--check --suite-rounds 0", "3", 3, "--run $."},
		{"--check --run Write/1MiB", "0", 0, "--run $."},
		{"--check --rounds 0", "0", 2, ""},
		{"--check --frobnicate", "0", 2, ""},
	} {
		cmd := exec.CommandContext(t.Context(), filepath.Join(repository, "tools", "bench"), append(strings.Fields(c.args), "--json")...)
		cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "SUITE="+c.suite)
		var stdout bytes.Buffer
		cmd.Stdout = &stdout
		err := cmd.Run()
		require.Equal(t, c.status, cmd.ProcessState.ExitCode(), "%+v: %v", c, err)
		if c.options != "" {
			require.Regexp(t, `^{"work":"perf suite --benchmarks \S+ `+regexp.QuoteMeta(c.options)+` --json"}\n$`, stdout.String())
		}
	}
}
