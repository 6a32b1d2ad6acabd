package grpctest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// program is a program on a page of docs, and its output.
var program = regexp.MustCompile("(?s)```go health.go\n(.*?)```.*?```text\n(.*?)```")

// TestDocumentedPrograms runs the gRPC programs of docs, which need this
// module.
func TestDocumentedPrograms(t *testing.T) {
	for _, name := range []string{"streams.md", "rpc.md"} {
		page, err := os.ReadFile("../../docs/" + name)
		require.NoError(t, err)
		found := program.FindSubmatch(page)
		require.NotNil(t, found, "docs/%s has no health.go with what it prints", name)
		file := filepath.Join(t.TempDir(), "health.go")
		require.NoError(t, os.WriteFile(file, found[1], 0o644))
		run := exec.CommandContext(t.Context(), "go", "run", file)
		run.Env, run.Stderr = append(os.Environ(), "RDMASHIM_DEVICE="), os.Stderr
		out, err := run.Output()
		require.NoError(t, err)
		require.Equal(t, string(found[2]), string(out))
	}
}
