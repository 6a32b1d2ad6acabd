package vm

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// uroot.mod and uroot.sum are the go.mod and go.sum of a module of its own,
// whose tool lines name u-root and the commands that an image holds: init is
// the first process, gosh the shell that it wants (package vm/guest/sh runs
// scripts).
//
// It is a module of its own so that a program that imports uapi does not see
// what u-root requires. It is data, not a directory with a go.mod, because the
// zip of a module holds no nested module, and rdmashim builds images from the
// module cache as well. To change it: copy both to a directory as go.mod and
// go.sum, go get -tool …, go mod tidy, and copy them back.
var (
	//go:embed uroot.mod
	urootMod []byte
	//go:embed uroot.sum
	urootSum []byte
)

const urootTool = "github.com/u-root/u-root"

// base returns the part of the image that u-root builds: its commands in one
// program, the directories and device nodes. Building takes a minute, so a part
// built from the same module and compiler is kept.
func (g *goTool) base(ctx context.Context, useCache bool, logf func(string, ...any)) ([]byte, error) {
	version, err := g.output(ctx, "env", "GOVERSION")
	if err != nil {
		return nil, err
	}
	key := sum(fmt.Appendf(nil, "2 %s %s %s %s", version, guestArch, urootMod, urootSum))[:24]
	path, err := CacheDir("base", key+".cpio")
	if err != nil {
		return nil, err
	}
	if useCache {
		unlock, err := lockFile(ctx, path+".lock")
		if err != nil {
			return nil, err
		}
		defer unlock()
		if data, err := os.ReadFile(path); err == nil {
			return data, nil
		}
	}
	logf("image: building u-root's commands, which is done once and takes a minute")
	data, err := g.buildBase(ctx)
	if err != nil {
		return nil, fmt.Errorf("build u-root's commands: %w", err)
	}
	if useCache {
		if err := writeFileAtomic(path, data); err != nil {
			return nil, err
		}
		prune(filepath.Dir(path), 3)
	}
	return data, nil
}

// buildBase builds in a directory that is u-root's module for that time.
func (g *goTool) buildBase(ctx context.Context) ([]byte, error) {
	dir, err := os.MkdirTemp("", "rdmashim-base-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	for name, text := range map[string][]byte{"go.mod": urootMod, "go.sum": urootSum} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return nil, err
		}
	}
	file := filepath.Join(dir, "base.cpio")
	args := []string{"tool", urootTool, "-o", file, "-format", "cpio", "-skip-ldd", "-initcmd", "init", "-defaultsh", "gosh"}
	for line := range strings.Lines(string(urootMod)) {
		if command := strings.TrimSpace(line); strings.HasPrefix(command, urootTool+"/cmds/") {
			args = append(args, command)
		}
	}
	inModule := goTool{dir: dir, env: g.env}
	if _, err := inModule.output(ctx, args...); err != nil {
		return nil, err
	}
	return os.ReadFile(file)
}
