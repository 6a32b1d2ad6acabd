package grpctest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
)

// guideModule is the module that the guide makes, up to the checkout's path.
const guideModule = `module example.org/first

go 1.26

require github.com/rdmashim/rdmashim v0.0.0

replace github.com/rdmashim/rdmashim => `

// program is a program on a page of docs, its commands and its output.
var program = regexp.MustCompile("(?s)```go health.go\n(.*?)```.*?```sh elsewhere\n(.*?)```.*?```text\n(.*?)```")

// TestDocumentedPrograms runs the gRPC programs of docs as their pages do.
// They are here for grpc-go, which a machine that runs these tests has.
func TestDocumentedPrograms(t *testing.T) {
	root := must.Get(filepath.Abs("../.."))(t)
	for _, name := range []string{"streams.md", "rpc.md"} {
		page := must.Get(os.ReadFile("../../docs/" + name))(t)
		found := program.FindSubmatch(page)
		require.NotNil(t, found, "docs/%s has no health.go with what it prints", name)
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "health.go"), found[1], 0o644))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte(guideModule+root), 0o644))
		run := exec.CommandContext(t.Context(), "sh", "-e", "-c", string(found[2]))
		run.Dir, run.Stderr = dir, os.Stderr
		run.Env = append(os.Environ(), "RDMASHIM_DEVICE=", "GOPROXY=off", "GOSUMDB=off", "GOWORK=off")
		out := must.Get(run.Output())(t)
		require.Equal(t, string(found[3]), string(out))
	}
}
