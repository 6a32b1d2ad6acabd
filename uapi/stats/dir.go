//go:build linux || darwin

package stats

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// suffix ends the names of sockets, which are PID-RANDOM.sock: no two are
// alike, even across PID namespaces. While a socket does not listen yet its
// name begins with a dot.
const suffix = ".sock"

// dirs are where sockets may be: below the user's run-time directory, if there
// is one, and below the one for temporary files. Programs of one user may have
// been started with and without the first.
func dirs() []string {
	var list []string
	if run := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(run) {
		list = append(list, filepath.Join(run, "rdmashim"))
	}
	return append(list, filepath.Join(os.TempDir(), "rdmashim-"+strconv.Itoa(os.Geteuid())))
}

// makeDir makes the directory, unless it is there, and checks it.
func makeDir(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return checkDir(dir)
}

// checkDir refuses a directory into which, or in the place of which, others may
// put something.
func checkDir(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	owner := -1
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		owner = int(s.Uid)
	}
	switch mode := info.Mode().Perm(); {
	case !info.IsDir():
		return &fs.PathError{Op: "stats", Path: dir, Err: syscall.ENOTDIR}
	case owner != os.Geteuid():
		return fmt.Errorf("%s belongs to user %d: %w", dir, owner, syscall.EPERM)
	case mode&0o077 != 0:
		return fmt.Errorf("%s has mode %04o, so that others reach it; chmod 0700 %s: %w", dir, mode, dir, syscall.EPERM)
	}
	return nil
}

// pidOf is the process in the name of a socket that listens; 0 for other names.
func pidOf(name string) int {
	pid, _, ok := strings.Cut(strings.TrimSuffix(name, suffix), "-")
	n, err := strconv.Atoi(pid)
	if !ok || err != nil || !strings.HasSuffix(name, suffix) || n <= 0 {
		return 0
	}
	return n
}

// maxTidy bounds how many names a server looks at when it starts.
const maxTidy = 64

// tidy removes the sockets of processes that are gone. A missing process does
// not prove that: it may be in another PID namespace. A missing listener does,
// since a name is used once.
func tidy(dir string) {
	f, err := os.Open(dir)
	if err != nil {
		return
	}
	defer f.Close()
	names, _ := f.Readdirnames(maxTidy)
	for _, name := range names {
		pid := pidOf(name)
		if pid == 0 || syscall.Kill(pid, 0) == nil {
			continue
		}
		path := filepath.Join(dir, name)
		if c, err := net.DialTimeout("unix", path, silence); err == nil {
			c.Close()
		} else if errors.Is(err, syscall.ECONNREFUSED) {
			os.Remove(path)
		}
	}
}
