package cbuild

import (
	"bytes"
	"cmp"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// Module is the module's path.
const Module = "github.com/rdmashim/rdmashim"

// noPreemption has the runtime of a library send no SIGURG, by which it
// preempts goroutines that run for 10 ms. The signal may come when the thread
// is back in the C program, and ends there what no SA_RESTART resumes, such as
// recv of a socket with SO_RCVTIMEO (signal(7)). Goroutines are preempted at
// calls then.
const noPreemption = "-X=runtime.godebugDefault=asyncpreemptoff=1"

// Library builds a C library of a Go package of this module, with this C
// compiler. The package is named from the module's root, "./uapi/preload/lib";
// mode is c-shared or c-archive; link are options for the C compiler as the
// linker's, and none holds a blank. The names of the packages that are compiled
// go to progress, a line each.
func Library(progress io.Writer, cc, mode, pkg, out string, link ...string) error {
	sources, err := sourceDir()
	if err != nil {
		return err
	}
	flags := "-s -w " + noPreemption
	if len(link) > 0 {
		flags += " '-extldflags=" + strings.Join(link, " ") + "'"
	}
	cmd := exec.Command("go", "build", "-C", sources, "-v", "-buildmode="+mode, "-tags", "netgo,osusergo", "-trimpath", "-buildvcs=false", "-ldflags="+flags, "-o", out, pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=1", "CC="+cc, "GOFLAGS=")
	return Run(cmd, progress)
}

// Compiler finds a C compiler.
func Compiler() (string, error) {
	for _, cc := range []string{os.Getenv("CC"), "cc", "gcc", "clang"} {
		if cc == "" {
			continue
		}
		if path, err := exec.LookPath(cc); err == nil {
			return path, nil
		}
	}
	return "", errors.New("no C compiler, which C programs need once: apt-get install gcc libc6-dev (dnf: gcc glibc-devel)")
}

// sourceDir finds the sources that this program was built from.
func sourceDir() (string, error) {
	if _, err := exec.LookPath("go"); err != nil {
		return "", errors.New("no go command, which C programs need once: install Go and put it on PATH")
	}
	if _, file, _, ok := runtime.Caller(0); ok {
		root := filepath.Join(filepath.Dir(file), "..", "..")
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			return root, nil
		}
	}
	version := "latest"
	if self, err := os.Executable(); err == nil {
		if info, err := buildinfo.ReadFile(self); err == nil && strings.HasPrefix(info.Main.Version, "v") {
			version = info.Main.Version
		}
	}
	out, err := exec.Command("go", "mod", "download", "-json", Module+"@"+version).Output()
	var module struct{ Dir string }
	if err == nil {
		err = json.Unmarshal(out, &module)
	}
	if err != nil || module.Dir == "" {
		return "", fmt.Errorf("the sources of %s@%s are not to be had; build rdmashim in a clone without -trimpath", Module, version)
	}
	return module.Dir, nil
}

// Run runs a command and makes an error of the last line that it prints. What
// it prints goes to w, too, as far as w takes it.
func Run(cmd *exec.Cmd, w io.Writer) error {
	var out bytes.Buffer
	cmd.Stdout = writerFunc(func(b []byte) {
		out.Write(b)
		_, _ = w.Write(b)
	})
	cmd.Stderr = cmd.Stdout
	err := cmd.Run()
	if err == nil {
		return nil
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	return fmt.Errorf("%s: %w: %s", filepath.Base(cmd.Path), err, cmp.Or(lines[len(lines)-1], "it says nothing"))
}

// writerFunc is a Writer that takes all.
type writerFunc func(b []byte)

func (f writerFunc) Write(b []byte) (int, error) {
	f(b)
	return len(b), nil
}
