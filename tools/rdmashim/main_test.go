package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/leak"
	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/tools/internal/cli/clitest"
	"github.com/rdmashim/rdmashim/tools/rdmashim/demo"
)

const asTool = clitest.AsTool

func TestMain(m *testing.M) {
	if os.Getenv(asTool) != "" {
		main()
		return
	}
	leak.Main(m)
}

func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return runAs(ctx, "rdmashim", args, stdin, stdout, stderr)
}

type outcome = clitest.Outcome

func tool(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	return clitest.Tool(t, args...)
}

func runTool(t *testing.T, args ...string) outcome {
	t.Helper()
	return clitest.RunTool(t, args...)
}

func finish(t *testing.T, cmd *exec.Cmd) outcome {
	t.Helper()
	return clitest.Finish(t, cmd)
}

// runDemo runs the demo with --json and decodes its report.
func runDemo(t *testing.T, args ...string) demo.Report {
	t.Helper()
	return decodeReport(t, runTool(t, append([]string{"demo", "--json"}, args...)...))
}

func decodeReport(t *testing.T, o outcome) (r demo.Report) {
	t.Helper()
	require.Zero(t, o.Code, "stderr: %s", o.Stderr)
	require.NoError(t, json.Unmarshal([]byte(o.Stdout), &r), "stdout: %s", o.Stdout)
	return r
}

// writeFile makes a file of n bytes that do not repeat.
func writeFile(t *testing.T, n int) string {
	t.Helper()
	data := make([]byte, n)
	x := uint64(n) + 0x9e3779b97f4a7c15
	for i := range data {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		data[i] = byte(x)
	}
	path := filepath.Join(t.TempDir(), "source")
	require.NoError(t, os.WriteFile(path, data, 0o644))
	return path
}

func TestUsage(t *testing.T) {
	for _, c := range []struct {
		name   string
		args   string
		code   int
		stdout string // stdout must contain it
		stderr string // stderr must contain it
	}{
		{"no arguments help", "", 0, "Available Commands", ""},
		{"help", "--help", 0, "rdmashim demo", ""},
		{"help of demo", "demo --help", 0, "--loss", ""},
		{"one percent or all", "demo --loss 1", 2, "", "write 1% or 100%"},
		{"a capture that cannot be opened", "demo --device soft?pcap=/nonexistent/x", 1, "", "open /nonexistent/x: no such file"},
		{"one percent or all of a device", "demo --device soft?dup=1", 1, "", "write 1% or 100%"},
		{"help of server", "server --help", 0, "--max-bytes", ""},
		{"help of client", "client --help", 0, "HOST", ""},
		{"help of devices", "help devices", 0, "--json", ""},
		{"version", "version", 0, "rdmashim " + cli.Version, ""},
		{"unknown command", "frobnicate", 2, "", `unknown command "frobnicate"`},
		{"unknown flag", "demo --frobnicate", 2, "", "--frobnicate"},
		{"too many arguments", "demo a b", 2, "", "at most 1"},
		{"version takes none", "version x", 2, "", "takes no arguments"},
		{"client without host", "client", 2, "", "rdmashim server"},
		{"share above one", "demo --loss 200%", 2, "", "outside 0% … 100%"},
		{"share that is no number", "demo --dup often", 2, "", "not a share; write 1% or 0.01"},
		{"senseless mtu", "demo --mtu 1500", 2, "", "4096"},
		{"sim has one process", "demo --device sim", 2, "", "two"},
		{"no such file", "demo /nonexistent/file", 1, "", "no such file"},
		{"a directory", "demo .", 1, "", "not a regular file"},
		{"no number", "server --max-bytes x", 2, "", `invalid argument "x" for "--max-bytes" flag: want a number of bytes like 65536, 64K, 1M or 256Mi (try`},
		{"no fraction", "perf write bw -D x", 2, "", `flag: must be a number (try`},
		{"number too large", "demo --seed 99999999999999999999", 2, "", `flag: must be a non-negative integer (try`},
		{"negative memory", "server --max-bytes -1", 2, "", "not negative"},
		{"unknown device option", "demo --device soft?lose=1%", 1, "", "unknown option"},
		{"no such kernel device", "devices --device nosuch0", 1, "", "nosuch0"},
		{"nobody listens", "client 127.0.0.1:1", 1, "", "rdmashim server"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := runTool(t, strings.Fields(c.args)...)
			require.Equal(t, c.code, o.Code, "stdout %q stderr %q", o.Stdout, o.Stderr)
			require.Contains(t, o.Stdout, c.stdout)
			require.Contains(t, o.Stderr, c.stderr)
			if c.code != 0 {
				require.Empty(t, o.Stdout, "only data goes to stdout")
			}
			if c.code != 0 {
				require.Equal(t, 1, strings.Count(o.Stderr, "\n"), "one line: %q", o.Stderr)
			}
		})
	}
}

// TestNoSuchFlag: every command refuses what it does not know in one line,
// which says where to read on, and has done nothing by then.
func TestNoSuchFlag(t *testing.T) {
	for _, c := range everyCommand() {
		args := append(strings.Fields(c.CommandPath())[1:], "--nosuchflag")
		var stdout, stderr bytes.Buffer
		require.Equal(t, 2, run(t.Context(), args, strings.NewReader(""), &stdout, &stderr), "%v", args)
		require.Empty(t, stdout.String(), "%v", args)
		require.Regexp(t, `\Ardmashim: [^\n]*nosuchflag[^\n]* \(try 'rdmashim[^\n]* --help'\)\n\z`, stderr.String(), "%v", args)
	}
}

func TestVersionJSON(t *testing.T) {
	o := runTool(t, "version", "--json")
	var v versionInfo
	require.NoError(t, json.Unmarshal([]byte(o.Stdout), &v))
	require.Equal(t, cli.Version, v.Version)
	require.NotEmpty(t, v.Go)
}

// TestRunInProcess: run takes its streams and shares no state between calls.
func TestRunInProcess(t *testing.T) {
	for range 2 {
		var stdout, stderr bytes.Buffer
		require.Equal(t, 0, run(context.Background(), []string{"version"}, nil, &stdout, &stderr))
		require.Equal(t, 2, run(context.Background(), []string{"version", "-x"}, nil, &stdout, &stderr))
		require.Equal(t, 1, strings.Count(stdout.String(), "\n"))
	}
}
