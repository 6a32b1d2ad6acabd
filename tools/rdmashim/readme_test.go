package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/vm/vmtest"
)

const repository = "../.."

var fences = regexp.MustCompile("(?s)```(\\w+)\n(.*?)```")

// blocks returns the fenced blocks of README.md in one language.
func blocks(t *testing.T, language string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, "README.md"))
	require.NoError(t, err)
	var found []string
	for _, m := range fences.FindAllStringSubmatch(string(text), -1) {
		if m[1] == language {
			found = append(found, m[2])
		}
	}
	return found
}

// TestReadmeCommands runs the commands of README.md that end by themselves. The
// tests themselves, and what needs a second shell, are run by others.
func TestReadmeCommands(t *testing.T) {
	elsewhere := map[string]string{
		"./tools/test": "this very run",
		"git clone https://github.com/rdmashim/rdmashim && cd rdmashim": "TestPage of tests/programs",
	}
	ran := 0
	for _, b := range blocks(t, "sh") {
		for line := range strings.Lines(b) {
			line, _, _ = strings.Cut(line, "#")
			line = strings.TrimSpace(line)
			if _, known := elsewhere[line]; line == "" || known {
				continue
			}
			rest, ok := strings.CutPrefix(line, "go run ./tools/rdmashim")
			require.True(t, ok, "README.md names a command that no test runs: %s", line)
			ran++
			t.Run(strings.TrimSpace(rest), func(t *testing.T) {
				t.Parallel()
				if strings.HasPrefix(strings.TrimSpace(rest), "vm ") {
					vmtest.Config(t) // or a skip that says what is missing
				}
				cmd := tool(t, strings.Fields(rest)...)
				cmd.Dir = repository
				o := finish(t, cmd).Well(t)
				require.NotEmpty(t, o.Stdout)
			})
		}
	}
	require.GreaterOrEqual(t, ran, 2)
}

// TestReadmeProgram builds and runs the program of README.md.
func TestReadmeProgram(t *testing.T) {
	if testing.Short() {
		t.Skip("-short leaves out building the program, which is not raced; run it without -short")
	}
	goTool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("no go command on PATH to build the program with; install Go")
	}
	programs := blocks(t, "go")
	require.Len(t, programs, 1)
	path := filepath.Join(t.TempDir(), "main.go")
	require.NoError(t, os.WriteFile(path, []byte(programs[0]), 0o644))
	cmd := exec.CommandContext(t.Context(), goTool, "run", path)
	cmd.Dir = repository
	cmd.Env = append(os.Environ(), "GOFLAGS=-trimpath", "CGO_ENABLED=0", "RDMASHIM_DEVICE=") // as TestDocs
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "Hello RDMA!")
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return b
}
