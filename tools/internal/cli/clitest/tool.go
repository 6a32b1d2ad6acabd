package clitest

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/leak"
	"github.com/rdmashim/rdmashim/tools/internal/cli"
)

// AsTool is the environment variable that makes a test binary behave as the
// tool.
const AsTool = "RDMASHIM_TEST_AS_TOOL"

// Main is the TestMain of a package with commands: it runs the tests, or, in a
// process that Tool prepared, the command line with the commands that the
// package has.
func Main(m *testing.M, commands func() []*cobra.Command) {
	if os.Getenv(AsTool) == "" {
		leak.Main(m)
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), cli.Ends()...)
	code := cli.Run(ctx, cli.NewRoot("rdmashim", commands()...), os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// Tool prepares a run of the tool as its own process.
func Tool(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self, args...)
	cmd.Env = append(os.Environ(), AsTool+"=1", "RDMASHIM_DEVICE=", "GORACE=atexit_sleep_ms=0")
	return cmd
}

// Outcome is the result of a run of the tool.
type Outcome struct {
	Code           int
	Stdout, Stderr string
}

// Well is the outcome of a run that ends well.
func (o Outcome) Well(t testing.TB) Outcome {
	t.Helper()
	require.Zero(t, o.Code, "stdout: %s\nstderr: %s", o.Stdout, o.Stderr)
	return o
}

// Decode reads what a run prints with --json.
func Decode[T any](t testing.TB, o Outcome) (v T) {
	t.Helper()
	err := json.Unmarshal([]byte(o.Stdout), &v)
	require.NoError(t, err, "stdout: %s\nstderr: %s", o.Stdout, o.Stderr)
	return v
}

// RunTool runs the tool to its end.
func RunTool(t testing.TB, args ...string) Outcome {
	t.Helper()
	return Finish(t, Tool(t, args...))
}

// Finish runs a prepared tool to its end.
func Finish(t testing.TB, cmd *exec.Cmd) Outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if _, exited := err.(*exec.ExitError); err != nil && !exited {
		t.Fatalf("run %v: %v", cmd.Args, err)
	}
	return Outcome{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// Refused runs command lines behind the words of a command: each ends with a
// status, one line on standard error that has a text, and no output.
func Refused(t *testing.T, code int, command string, texts map[string]string) {
	t.Helper()
	for args, want := range texts {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			o := RunTool(t, strings.Fields(command+" "+args)...)
			require.Equal(t, code, o.Code, o.Stderr)
			require.Empty(t, o.Stdout)
			require.Contains(t, o.Stderr, want)
			require.Equal(t, 1, strings.Count(o.Stderr, "\n"), "one line: %q", o.Stderr)
		})
	}
}
