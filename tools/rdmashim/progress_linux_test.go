package main

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPerfProgress: on a terminal perf shows how far it is, in what it counts,
// and takes it away in the end. A suite shows one progress, its own.
func TestPerfProgress(t *testing.T) {
	shown := func(args string) (progress, stdout string) {
		end, tty := terminal(t, 120, 20)
		cmd := perfTool(t, strings.Fields(args)...)
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, tty
		require.NoError(t, cmd.Start())
		require.NoError(t, tty.Close())
		text, _ := io.ReadAll(end) // EIO when the last writer has closed
		_ = cmd.Wait()             // targets need not be met
		return string(text), out.String()
	}
	text, stdout := shown("write bw -n 5 -a")
	require.Contains(t, text, "write_bw of 2 bytes   0%")
	require.Contains(t, text, "write_bw of 4096 bytes  47%", "eleven sizes of 23 were before")
	require.Contains(t, text, "write_bw of 8388608 bytes")
	require.NotContains(t, text, "B/s")
	lines := strings.Split(text, "\r")
	require.Empty(t, strings.TrimSpace(lines[len(lines)-1]), "cleared")
	require.Contains(t, stdout, " 8388608 ")
	require.NotContains(t, stdout, "\r")

	text, stdout = shown("suite --json --rounds 2 -D 0.002 --run ^READ")
	for _, step := range []string{"(0/4)", "(1/4)", "(3/4)"} {
		require.Contains(t, text, step, "two series of two rounds")
	}
	text, _, _ = strings.Cut(text, "rdmashim: ") // the message about targets
	require.NotContains(t, text, "B/s")
	require.NotContains(t, text, "read_bw")
	require.True(t, strings.HasPrefix(stdout, "["))
}
