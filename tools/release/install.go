package main

import (
	"archive/zip"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime/debug"
	"strings"
)

// An installer installs the tool from the module that a tag of a checkout
// makes.
type installer struct {
	checkout, tag string
	work          string // a folder for the proxy, the modules and the programs
}

// proxy writes the module as a proxy of modules serves it (the GOPROXY protocol
// of Go's reference of modules).
func (in installer) proxy(ctx context.Context) error {
	dir := filepath.Join(in.work, "proxy", module, "@v")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	gomod, err := git(ctx, in.checkout, "show", "refs/tags/"+in.tag+":go.mod")
	if err != nil {
		return err
	}
	for name, text := range map[string]string{"list": in.tag, in.tag + ".info": `{"Version":"` + in.tag + `"}`, in.tag + ".mod": gomod} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	f, err := os.Create(filepath.Join(dir, in.tag+".zip"))
	if err != nil {
		return err
	}
	defer f.Close()
	if err := in.zip(ctx, f); err != nil {
		return err
	}
	return f.Close()
}

// zip writes the files of the module: those of the commit that are in no module
// of their own (Go's reference of modules, "Module zip files").
func (in installer) zip(ctx context.Context, out io.Writer) error {
	names, err := git(ctx, in.checkout, "ls-tree", "-r", "--name-only", "refs/tags/"+in.tag)
	if err != nil {
		return err
	}
	args := []string{"-c", "core.autocrlf=false", "archive", "--format=zip", "--prefix=" + module + "@" + in.tag + "/", "refs/tags/" + in.tag, "--", "."}
	for name := range strings.Lines(names) {
		if dir, file := path.Split(strings.TrimSpace(name)); file == "go.mod" && dir != "" {
			args = append(args, ":(exclude)"+dir)
		}
	}
	files, err := git(ctx, in.checkout, args...)
	if err != nil {
		return err
	}
	r, err := zip.NewReader(strings.NewReader(files), int64(len(files)))
	if err != nil {
		return err
	}
	w := zip.NewWriter(out)
	for _, f := range r.File {
		if !f.Mode().IsRegular() {
			continue // the module's hash has no folders
		}
		if err := w.Copy(f); err != nil {
			return err
		}
	}
	return w.Close()
}

// install returns the path of the tool, built for a target. Nothing of the
// caller's settings enters it but the version of Go.
func (in installer) install(ctx context.Context, target string) (string, error) {
	caches, err := output(exec.CommandContext(ctx, "go", "env", "GOMODCACHE", "GOCACHE"))
	if err != nil {
		return "", err
	}
	modules, cache, _ := strings.Cut(strings.TrimSpace(caches), "\n")
	// The cache has what the checkout's build needs then, with go.sum as proof.
	download := exec.CommandContext(ctx, "go", "mod", "download")
	download.Dir = in.checkout
	if _, err := output(download); err != nil {
		return "", err
	}

	system, machine, _ := strings.Cut(target, "/")
	gopath := filepath.Join(in.work, machine)
	cmd := exec.CommandContext(ctx, "go", "install", "-trimpath", "-ldflags=-s -w -buildid=", module+"/tools/"+program+"@"+in.tag)
	cmd.Dir = in.work
	cmd.Env = append(os.Environ(), "GOENV=off", "GOTOOLCHAIN=local", "GOWORK=off", "GOFLAGS=-modcacherw",
		"GOOS="+system, "GOARCH="+machine, "GOAMD64=v1", "GOARM64=v8.0", "CGO_ENABLED=0", "GOEXPERIMENT=", "GODEBUG=", "GOFIPS140=off",
		"GOBIN=", "GOPATH="+gopath, "GOCACHE="+cache, "GOMODCACHE="+in.modules(),
		"GOPROXY=file://"+filepath.Join(in.work, "proxy")+",file://"+filepath.Join(modules, "cache", "download"),
		"GOSUMDB=off", "GONOPROXY=none", "GOVCS=*:off")
	if _, err := output(cmd); err != nil {
		return "", err
	}
	here := filepath.Join(gopath, "bin", program)
	if _, err := os.Stat(here); err == nil {
		return here, nil
	}
	return filepath.Join(gopath, "bin", system+"_"+machine, program), nil
}

// modules returns the folder of the modules' sources.
func (in installer) modules() string { return filepath.Join(in.work, "modules") }

// verify holds the modules of a program to the tag's go.sum, which 'go install'
// of a version does not read.
func (in installer) verify(ctx context.Context, info *debug.BuildInfo) error {
	sums, err := git(ctx, in.checkout, "show", "refs/tags/"+in.tag+":go.sum")
	if err != nil {
		return err
	}
	if info.Main.Version != in.tag {
		return fmt.Errorf("the program says version %s, not %s", info.Main.Version, in.tag)
	}
	for _, m := range info.Deps {
		if line := fmt.Sprintf("%s %s %s\n", m.Path, m.Version, m.Sum); !strings.Contains(sums, line) {
			return fmt.Errorf("go.sum of %s has no line %q", in.tag, line)
		}
	}
	return nil
}
