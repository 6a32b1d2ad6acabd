package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBenchRows: a row of tools/bench has the keys of the suite's rows.
func TestBenchRows(t *testing.T) {
	if testing.Short() {
		t.Skip("-short leaves out building benchmarks; run it without -short")
	}
	cmd := exec.CommandContext(t.Context(), "../bench", "--json", "--rounds", "1", "--run", "Write/^4KiB")
	out, err := cmd.Output()
	require.NoError(t, err)
	var row map[string]any
	require.NoError(t, json.Unmarshal(out, &row), "%s", out)
	require.ElementsMatch(t, []string{"work", "ours", "reference", "reference_value", "ratio", "target", "met", "rounds", "spread"}, slices.Collect(maps.Keys(row)))
	require.Equal(t, "Write/4KiB in one process (MB/s)", row["work"])
	require.Positive(t, row["ratio"])
	require.Nil(t, row["met"], "it has no target")
}

// stubGo takes the place of the go command: the laboratory that it builds ends
// with $SUITE, and prints its arguments in a row.
const stubGo = `#!/bin/sh
case $1 in
test) echo 'BenchmarkWrite/1MiB-2 5 100 ours-MB/s 0.8 ratio 200 ref-MB/s 0.7 target' ;;
build)
	printf '#!/bin/sh\nprintf "[\n{\"work\":\"%%s\"}\n]\n" "$*"\nexit %s\n' "$SUITE" >"$3"
	chmod +x "$3" ;;
esac
`

// suiteOf begins the call of the suite, with the file of what benchmarks wrote.
const suiteOf = `suite --benchmarks \S+ `

// TestBenchCheck: tools/bench gives the suite what the benchmarks wrote, and
// with --check its status says whether a target is missed; words behind suite
// and the status of it pass unchanged.
func TestBenchCheck(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go"), []byte(stubGo), 0o777))
	for _, c := range []struct {
		args, suite string
		status      int
		printed     string // as regular expression
	}{
		{"--check", "0", 0, suiteOf + `--vm --rounds 5 --json`},
		{"--check", "3", 3, suiteOf + `--vm --rounds 5 --json`},
		{"--check", "1", 1, suiteOf + `--vm --rounds 5 --json`},
		{"", "3", 0, suiteOf + `--vm --rounds 5 --json`},
		{"--suite-rounds 2", "0", 0, suiteOf + `--vm --rounds 2 --json`},
		{"--check --suite-rounds 0", "3", 3, suiteOf + `--run \$\. --json`},
		{"--check --run Write/1MiB", "0", 0, suiteOf + `--run \$\. --json`},
		{"suite --check --rounds 2", "3", 3, "suite --check --rounds 2 --json"},
		{"--check --rounds 0", "0", 2, ""},
		{"--check --frobnicate", "0", 2, ""},
	} {
		cmd := exec.CommandContext(t.Context(), "../bench", append(strings.Fields(c.args), "--json")...)
		cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "SUITE="+c.suite)
		var stdout bytes.Buffer
		cmd.Stdout = &stdout
		err := cmd.Run()
		require.Equal(t, c.status, cmd.ProcessState.ExitCode(), "%+v: %v", c, err)
		if c.printed != "" {
			require.Regexp(t, `^(\[\n)?{"work":"`+c.printed+`"}\n(\]\n)?$`, stdout.String())
		}
	}
}
