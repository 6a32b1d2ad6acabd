package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

// TestRun: each kind of error has its exit status and its line.
func TestRun(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		code int
		line string
	}{
		{"done", nil, 0, ""},
		{"failure", errors.New("it failed\r\nin two lines\n"), 1, "tool: it failed; in two lines\n"},
		{"a peer's text", errors.New("it said: \x1b[2J\u0085\u202edone\xff»"), 1, "tool: it said: \\x1b[2J\\u0085\\u202edone\\xff»\n"},
		{"usage", Usagef("no %s", "sense"), 2, "tool: no sense (try 'tool do --help')\n"},
		{"usage within", fmt.Errorf("do: %w", Usagef("x")), 2, "tool: do: x (try 'tool do --help')\n"},
		{"status", &ExitStatus{Code: 7}, 7, ""},
		{"status with a line", fmt.Errorf("do: %w", &ExitStatus{Code: 3, Err: errors.New("why")}), 3, "tool: why\n"},
	} {
		root := NewRoot("tool", &cobra.Command{Use: "do", RunE: func(*cobra.Command, []string) error { return c.err }})
		var stdout, stderr bytes.Buffer
		require.Equal(t, c.code, Run(t.Context(), root, []string{"do"}, nil, &stdout, &stderr), c.name)
		require.Equal(t, c.line, stderr.String(), c.name)
		require.Empty(t, stdout.String(), c.name)
	}
}

// TestHelpUnwritten: a help text that cannot be written is a failure.
func TestHelpUnwritten(t *testing.T) {
	r, w := io.Pipe()
	require.NoError(t, r.CloseWithError(syscall.ENOSPC))
	for _, line := range []string{"", "help", "help do", "do --help"} {
		root := NewRoot("tool", &cobra.Command{Use: "do", RunE: Help})
		var stderr bytes.Buffer
		require.Equal(t, 1, Run(t.Context(), root, strings.Fields(line), nil, w, &stderr), line)
		require.Equal(t, "tool: no space left on device\n", stderr.String(), line)
	}
}

// TestUnknownCommand: a group names the commands that are spelled alike.
func TestUnknownCommand(t *testing.T) {
	leaf := &cobra.Command{Use: "measure", Args: NoArgs, RunE: Help}
	group := &cobra.Command{Use: "perf", Args: NoArgs, RunE: Help}
	group.AddCommand(leaf)
	for line, want := range map[string]string{
		"prf":              `unknown command "prf"; near to it: perf`,
		"frobnicate":       `unknown command "frobnicate"`,
		"perf measrue":     `unknown command "measrue"; near to it: measure`,
		"help prf":         `unknown command "prf"; near to it: perf`,
		"help perf now":    `unknown command "now"`,
		"perf measure now": `perf measure takes no arguments, got "now"`,
	} {
		root := NewRoot("tool", group)
		var stderr bytes.Buffer
		require.Equal(t, 2, Run(t.Context(), root, strings.Fields(line), nil, new(bytes.Buffer), &stderr))
		require.Regexp(t, `\Atool: `+want+` \(try '`, stderr.String())
	}
}

// TestBytesVar: the ways to write a number of bytes, and what is none.
func TestBytesVar(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "65536": 65536, "-1": -1, "64K": 64 << 10, "1M": 1 << 20, "256Mi": 256 << 20, "2GiB": 2 << 30, "3g": 3 << 30, "8191PiB": -9,
		"": -9, "K": -9, "1.5M": -9, "1 M": -9, "64KB": -9, "9223372036854775807": math.MaxInt64, "9223372036854775807K": -9, "-9223372036854775808": -9,
	} {
		var n int64
		f := pflag.NewFlagSet("", pflag.ContinueOnError)
		BytesVar(f, &n, "size", "s", -9, "")
		require.Equal(t, want == -9, f.Parse([]string{"--size=" + text}) != nil, text)
		require.Equal(t, want, n, text)
	}
	for text, want := range map[string]int{"512": 512, "512Mi": 512, "2G": 2048, "1025K": 7, "1048577": 1048577, "9223372036854775807": 7} {
		var n int
		f := pflag.NewFlagSet("", pflag.ContinueOnError)
		MiBVar(f, &n, "memory", 7, "")
		require.Equal(t, want == 7, f.Parse([]string{"--memory=" + text}) != nil, text)
		require.Equal(t, want, n, text)
	}
}

func TestSize(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1536 << 10: "1.5 MiB", 5 << 50: "5120.0 TiB"} {
		require.Equal(t, want, Size(n))
	}
}
