package built

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// The names of what a run builds: files, and the folder of Libraries, as
// preload.LibrariesIn takes it.
const (
	Image     = "image"
	Libraries = "preload"
	tool      = "rdmashim"
	module    = "github.com/rdmashim/rdmashim"
)

// Path returns where a thing is that this run has built, if it has.
func Path(name string) (path string, ok bool) {
	// os.Getenv would make the folder, another one each run, a part of what go
	// test keeps a result by.
	dir, ok := syscall.Getenv("RDMASHIM_BUILT")
	if !ok {
		return "", false
	}
	path = filepath.Join(dir, name)
	_, err := os.Stat(path)
	return path, err == nil
}

// Tool returns an rdmashim for this system, without the race detector.
func Tool(t testing.TB) (path string) {
	t.Helper()
	if path, ok := Path(tool); ok {
		return path
	}
	path = filepath.Join(t.TempDir(), tool+".exe")
	root, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", module).Output() // tests of other modules run here, too
	if err != nil {
		t.Fatalf("find the module: %v", err)
	}
	out, err := exec.CommandContext(t.Context(), "go", "-C", strings.TrimSpace(string(root)), "build", "-o", path, "./tools/rdmashim").CombinedOutput()
	if err != nil {
		t.Fatalf("build the tool: %v\n%s", err, out)
	}
	return path
}
