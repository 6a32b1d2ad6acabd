package main

import (
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const (
	program = "rdmashim"
	module  = "github.com/rdmashim/rdmashim"
)

var targets = []string{"linux/amd64", "linux/arm64"}

func main() {
	out := flag.String("o", "dist", "`folder` to write")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: go run ./tools/release [-o FOLDER] TAG")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	if err := release(context.Background(), ".", flag.Arg(0), *out, targets); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// release writes into out what a tag of a checkout releases.
func release(ctx context.Context, checkout, tag, out string, targets []string) error {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "rdmashim-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	in := installer{checkout: checkout, tag: tag, work: work}
	if err := in.proxy(ctx); err != nil {
		return err
	}

	var sums strings.Builder
	for _, target := range targets {
		binary, err := in.install(ctx, target)
		if err != nil {
			return err
		}
		info, err := buildinfo.ReadFile(binary)
		if err != nil {
			return err
		}
		if err := in.verify(ctx, info); err != nil {
			return err
		}
		archive, err := in.archive(binary, info)
		if err != nil {
			return err
		}
		name := strings.Join([]string{program, strings.TrimPrefix(tag, "v"), strings.ReplaceAll(target, "/", "_")}, "_")
		for _, f := range []entry{{name: name + ".tar.gz", data: archive}, {name: name + ".cdx.json", data: sbom(info)}} {
			if err := os.WriteFile(filepath.Join(out, f.name), f.data, 0o644); err != nil {
				return err
			}
			fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(f.data), f.name)
		}
	}
	return os.WriteFile(filepath.Join(out, "SHA256SUMS"), []byte(sums.String()), 0o644)
}

// git returns what a command of git prints.
func git(ctx context.Context, checkout string, args ...string) (string, error) {
	return output(exec.CommandContext(ctx, "git", append([]string{"-C", checkout}, args...)...))
}

func output(cmd *exec.Cmd) (string, error) {
	var errors strings.Builder
	cmd.Stderr = &errors
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", cmd, err, errors.String())
	}
	return string(out), nil
}
