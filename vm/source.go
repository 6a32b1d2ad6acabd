package vm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
)

const modulePath = "github.com/rdmashim/rdmashim"

// guestArch is the architecture of guests.
const guestArch = "amd64"

// goTool is a go command that runs in the project's module and builds for the
// guest.
type goTool struct {
	dir string   // the module's sources
	env []string // in addition to the process's
}

// findSource finds the project's sources: the module in which the process
// runs, one that it depends on, the directory or the version that the running
// program was built from.
func findSource(ctx context.Context, dir string) (*goTool, error) {
	g, err := userGo(dir)
	if err != nil {
		return nil, err
	}
	// A user's settings for other builds must not change the image.
	g.env = append(g.env, "GOAMD64=v1", "GOFLAGS=", "GOWORK=off", "GOEXPERIMENT=")
	if dir != "" {
		return g, nil
	}
	out, err := g.output(ctx, "list", "-m", "-f", "{{.Dir}}", modulePath)
	if err == nil {
		if g.dir = strings.TrimSpace(string(out)); g.dir != "" {
			return g, nil
		}
	}
	if dir := builtFrom(); dir != "" {
		g.dir = dir
		return g, nil
	}
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Path != modulePath || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return nil, errors.New("the project's sources, from which the image is built, were not found: run in a module that requires " + modulePath + ", or use --image FILE")
	}
	g.dir = os.TempDir()
	out, err = g.output(ctx, "mod", "download", "-json", modulePath+"@"+info.Main.Version)
	if err != nil {
		return nil, fmt.Errorf("find the sources of %s %s: %w", modulePath, info.Main.Version, err)
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(out, &module); err != nil || module.Dir == "" {
		return nil, fmt.Errorf("find the sources of %s %s: go tells no directory", modulePath, info.Main.Version)
	}
	g.dir = module.Dir
	return g, nil
}

// builtFrom is the directory of the sources that the running program was built
// from, when it still is on this machine.
func builtFrom() string {
	_, file, _, _ := runtime.Caller(0)
	dir := filepath.Dir(filepath.Dir(file))
	text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if !filepath.IsAbs(file) || err != nil || !strings.HasPrefix(string(text), "module "+modulePath+"\n") {
		return ""
	}
	return dir
}

// userGo is the go command in a directory (empty: the current one), with the
// user's settings, but building static programs for the guest.
func userGo(dir string) (*goTool, error) {
	if _, err := exec.LookPath("go"); err != nil {
		return nil, &MissingError{What: "no go command found, which builds what runs in the guest", Install: "install Go 1.26 or newer (an image written elsewhere by 'rdmashim vm build' needs none: --image FILE)"}
	}
	return &goTool{dir: dir, env: []string{"CGO_ENABLED=0", "GOOS=linux", "GOARCH=" + guestArch}}, nil
}

func (g *goTool) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = g.dir
	cmd.Env = append(os.Environ(), g.env...)
	return cmd
}

func (g *goTool) output(ctx context.Context, args ...string) ([]byte, error) {
	return outputOf(g.command(ctx, args...))
}

// build builds a static program of ours and returns its bytes. They depend on
// the sources and the compiler only, not on the folder.
func (g *goTool) build(ctx context.Context, pkg string) ([]byte, error) {
	tmp, err := os.MkdirTemp("", "rdmashim-build-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	file := filepath.Join(tmp, "program")
	if _, err := g.output(ctx, "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -buildid=", "-o", file, pkg); err != nil {
		return nil, fmt.Errorf("build %s for the guest in %s: %w", pkg, g.dir, err)
	}
	return os.ReadFile(file)
}
