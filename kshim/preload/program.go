package preload

import (
	"bufio"
	"debug/elf"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"github.com/rdmashim/rdmashim/kshim/cbuild"
)

// Program is a program's file, found as a shell finds it.
type Program struct{ Path string }

// Look finds a program and says why the stub cannot reach it, if that is so.
func Look(name string) (Program, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return Program{}, err
	}
	return Program{path}, reachable(path, 2)
}

// reachable says why the stub cannot reach a program. A script is as its
// interpreter; depth bounds how many are looked at.
func reachable(path string, depth int) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.Mode()&(os.ModeSetuid|os.ModeSetgid) != 0 {
		return fmt.Errorf("%s is set-user-ID or set-group-ID: the loader ignores LD_PRELOAD for it; run a copy without the bit", path)
	}
	if privileged(path) {
		return fmt.Errorf("%s has file capabilities: the loader ignores LD_PRELOAD for it; run a copy, which has none", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil // it may be executable only; it is tried
	}
	defer file.Close()
	line, _ := bufio.NewReader(io.LimitReader(file, 256)).ReadString('\n')
	if script, ok := strings.CutPrefix(line, "#!"); ok && depth > 0 {
		if words := strings.Fields(script); len(words) > 0 {
			return reachable(words[0], depth-1)
		}
	}
	f, err := elf.NewFile(file)
	if err != nil {
		return nil // the kernel says what it is
	}
	return reachableELF(path, f)
}

var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

func reachableELF(path string, f *elf.File) error {
	interpreter := ""
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			b, _ := io.ReadAll(io.LimitReader(p.Open(), 256))
			interpreter = strings.TrimRight(string(b), "\x00")
		}
	}
	switch {
	case f.Section(".note.go.buildid") != nil || f.Section(".go.buildinfo") != nil:
		return fmt.Errorf("%s is a Go program, which calls the kernel past libc: Go programs import %s/uapi", path, cbuild.Module)
	case interpreter == "":
		return fmt.Errorf("%s is statically linked, so that nothing can be preloaded: link it dynamically", path)
	case strings.Contains(interpreter, "musl"):
		return fmt.Errorf("%s is linked with musl, and the libraries here with glibc: build it on a system with glibc", path)
	case f.Machine != machines[runtime.GOARCH]:
		return fmt.Errorf("%s is a program of another architecture, %v: build it for %s", path, f.Machine, runtime.GOARCH)
	}
	return nil
}
