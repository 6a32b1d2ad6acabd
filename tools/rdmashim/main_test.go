package main

import (
	"bytes"
	"context"
	"io"
	"os"
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

var tool, runTool, finish = clitest.Tool, clitest.RunTool, clitest.Finish

// runDemo runs the demo with --json and decodes its report.
func runDemo(t *testing.T, args ...string) demo.Report {
	t.Helper()
	return decodeReport(t, runTool(t, append([]string{"demo", "--json"}, args...)...))
}

func decodeReport(t *testing.T, o outcome) demo.Report {
	t.Helper()
	return clitest.Decode[demo.Report](t, o.Well(t))
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
	for args, want := range map[string]string{
		"":              "Available Commands",
		"--help":        "rdmashim demo",
		"demo --help":   "--loss",
		"server --help": "--max-bytes",
		"client --help": "HOST",
		"help devices":  "--json",
		"version":       "rdmashim " + cli.Version,
	} {
		o := runTool(t, strings.Fields(args)...).Well(t)
		require.Contains(t, o.Stdout, want)
	}
	clitest.Refused(t, 2, "", map[string]string{
		"demo --loss 1":                    "write 1% or 100%",
		"frobnicate":                       `unknown command "frobnicate"`,
		"demo --frobnicate":                "--frobnicate",
		"demo a b":                         "at most 1",
		"version x":                        "takes no arguments",
		"client":                           "rdmashim server",
		"demo --loss 200%":                 "outside 0% … 100%",
		"demo --dup often":                 "not a share; write 1% or 0.01",
		"demo --mtu 1500":                  "4096",
		"demo --device sim":                "two",
		"server --max-bytes x":             `invalid argument "x" for "--max-bytes" flag: want a number of bytes like 65536, 64K, 1M or 256Mi (try`,
		"perf write bw -D x":               `flag: must be a number (try`,
		"demo --seed 99999999999999999999": `flag: must be a non-negative integer (try`,
		"server --max-bytes -1":            "not negative",
		"run --kernel /x --loss 1% true":   "leave out --loss",
		"run --kernel /x -d soft true":     "leave out --device",
	})
	clitest.Refused(t, 1, "", map[string]string{
		"demo --device soft?pcap=/nonexistent/x": "open /nonexistent/x: no such file",
		"demo --device soft?dup=1":               "write 1% or 100%",
		"demo /nonexistent/file":                 "no such file",
		"demo .":                                 "not a regular file",
		"demo --device soft?lose=1%":             "unknown option",
		"devices --device nosuch0":               "nosuch0",
		"client 127.0.0.1:1":                     "rdmashim server",
	})
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
