package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBenchRows: a row of tools/bench has the keys of the suite's rows.
func TestBenchRows(t *testing.T) {
	if testing.Short() {
		t.Skip("builds benchmarks, which -short leaves out")
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

// stubGo takes the place of the go command: its benchmark's ratio is $RATIO, and
// the tool that it builds ends with $SUITE.
const stubGo = `#!/bin/sh
case $1 in
test)
	printf 'BenchmarkWrite/1MiB-2 5 10 ns/op 7 cpu-ratio 100 ours-MB/s %s ratio 200 ref-MB/s 0.7 target\n' "$RATIO" ;;
build)
	printf '#!/bin/sh\nprintf "[\\n{\\"work\\":\\"%%s\\"}\\n]\\n" "$*"\nexit %s\n' "$SUITE" >"$3"
	chmod +x "$3" ;;
esac
`

// TestBenchCheck: tools/bench runs the suite after the benchmarks, and with --check
// its status says whether a target of either is missed.
func TestBenchCheck(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go"), []byte(stubGo), 0o777))
	for _, c := range []struct {
		args, ratio, suite string
		status             int
	}{
		{"--check", "0.8", "0", 0},
		{"--check", "0.6", "0", 3},
		{"--check", "0.8", "3", 3},
		{"--check", "0.8", "1", 1},
		{"", "0.6", "3", 0},
		{"--check --suite-rounds 0", "0.8", "3", 0},
		{"--check --run Write/1MiB", "0.8", "3", 0},
		{"--check --run Write/1MiB", "0.6", "0", 3},
		{"--check --rounds 0", "0.8", "0", 2},
		{"--check --frobnicate", "0.8", "0", 2},
	} {
		cmd := exec.CommandContext(t.Context(), filepath.Join(repository, "tools", "bench"), append(strings.Fields(c.args), "--json")...)
		cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "RATIO="+c.ratio, "SUITE="+c.suite)
		var stdout bytes.Buffer
		cmd.Stdout = &stdout
		err := cmd.Run()
		require.Equal(t, c.status, cmd.ProcessState.ExitCode(), "%+v: %v", c, err)
		if c.args == "--check" {
			rows := strings.Split(strings.TrimSpace(stdout.String()), "\n")
			require.Len(t, rows, 2)
			require.Contains(t, rows[0], `"ratio":`+c.ratio)
			require.Equal(t, `{"work":"perf suite --vm --rounds 5 --json"}`, rows[1])
		}
	}
}
