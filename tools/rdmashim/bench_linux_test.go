package main

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
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
