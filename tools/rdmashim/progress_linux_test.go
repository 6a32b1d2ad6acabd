package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tools/internal/cli/clitest"
)

// TestPerfProgress: on a terminal perf shows how far it is, in what it counts,
// and takes it away in the end.
func TestPerfProgress(t *testing.T) {
	text, stdout := clitest.Progress(t, perfTool(t, "write", "bw", "-n", "5", "-a"))
	require.Contains(t, text, "write_bw of 2 bytes   0%")
	require.Contains(t, text, "write_bw of 4096 bytes  47%", "eleven sizes of 23 were before")
	require.Contains(t, text, "write_bw of 8388608 bytes")
	require.NotContains(t, text, "B/s")
	lines := strings.Split(text, "\r")
	require.Empty(t, strings.TrimSpace(lines[len(lines)-1]), "cleared")
	require.Contains(t, stdout, " 8388608 ")
	require.NotContains(t, stdout, "\r")
}
