package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tools/internal/cli/clitest"
)

// TestSuiteProgress: on a terminal the suite shows one progress, its own.
func TestSuiteProgress(t *testing.T) {
	text, stdout := clitest.Progress(t, suiteTool(t, "--json", "--rounds", "2", "-D", "0.002", "--run", "^READ"))
	for _, step := range []string{" 0% [", " 25% [", " 75% ["} {
		require.Contains(t, text, step, "two series of two rounds")
	}
	text, _, _ = strings.Cut(text, "rdmashim: ") // the message about targets
	require.NotContains(t, text, "B/s")
	require.NotContains(t, text, "read_bw")
	require.True(t, strings.HasPrefix(stdout, "["))
}
