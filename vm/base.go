package vm

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// GuestCommands are u-root's commands that an image holds; init is the first
// process, gosh the shell on terminals (package vm/guest/sh runs scripts). go.mod lists each as a tool, so that what they import
// is required.
var GuestCommands = strings.Fields(`
	init gosh
	cat chmod cmp cp date dd df dmesg du echo false find free grep head hexdump
	hostname id insmod ip kill ln ls lsmod mkdir mknod mktemp mount mv netcat ping
	pidof printenv ps pwd readlink rm rmmod seq shasum sleep sort stty sync tail
	tar tee time timeout touch tr true tty umount uname uniq uptime wc which xargs
`)

const (
	urootTool     = "github.com/u-root/u-root"
	urootCommands = urootTool + "/cmds/core/"
)

// base returns the part of the image that u-root builds: its commands in one
// program, the directories and device nodes. Building takes a minute, so what
// was built from the same inputs is kept.
func (g *goTool) base(ctx context.Context, useCache bool, logf func(string, ...any)) ([]byte, error) {
	key, err := g.baseKey(ctx)
	if err != nil {
		return nil, err
	}
	path, err := cacheDir("base", key+".cpio")
	if err != nil {
		return nil, err
	}
	if useCache {
		unlock, err := lockFile(ctx, path+".lock")
		if err != nil {
			return nil, err
		}
		defer unlock()
		if data, err := readSummed(path); err == nil {
			return data, nil
		}
	}
	logf("image: building u-root's commands, which is done once and takes a minute")
	data, err := g.buildBase(ctx)
	if err != nil {
		return nil, err
	}
	if useCache {
		if err := writeSummed(path, data); err != nil {
			return nil, err
		}
		prune(filepath.Dir(path), 3)
	}
	return data, nil
}

// baseKey names the inputs: compiler, commands, and the modules they come from.
func (g *goTool) baseKey(ctx context.Context) (string, error) {
	version, err := g.output(ctx, "env", "GOVERSION")
	if err != nil {
		return "", err
	}
	modules, err := g.output(ctx, append([]string{"list", "-deps", "-f", "{{with .Module}}{{.}} {{.Sum}}{{end}}"}, basePackages()...)...)
	if err != nil {
		return "", fmt.Errorf("the project's sources in %s are incomplete: %w", g.dir, err)
	}
	lines := strings.Split(string(modules), "\n")
	slices.Sort(lines)
	inputs := fmt.Sprintf("1 %s %s %q %q", version, guestArch, GuestCommands, slices.Compact(lines))
	return sum([]byte(inputs))[:24], nil
}

// basePackages are the builder and the commands that it builds.
func basePackages() []string {
	packages := []string{urootTool}
	for _, c := range GuestCommands {
		packages = append(packages, urootCommands+c)
	}
	return packages
}

func (g *goTool) buildBase(ctx context.Context) ([]byte, error) {
	tmp, err := os.MkdirTemp("", "rdmashim-base-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	file := filepath.Join(tmp, "base.cpio")
	packages := basePackages()
	args := []string{"tool", packages[0], "-o", file, "-format", "cpio", "-skip-ldd", "-initcmd", "init", "-defaultsh", "gosh"}
	if _, err := g.output(ctx, append(args, packages[1:]...)...); err != nil {
		return nil, fmt.Errorf("build u-root's commands: %w", err)
	}
	return os.ReadFile(file)
}

// writeSummed writes a file with its SHA-256 before it; readSummed reads one
// back and fails when it was changed.
func writeSummed(path string, data []byte) error {
	return writeFileAtomic(path, append([]byte(sum(data)+"\n"), data...))
}

func readSummed(path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if len(data) < 65 || sum(data[65:])+"\n" != string(data[:65]) {
		return nil, fmt.Errorf("%s was changed", path)
	}
	return data[65:], nil
}
