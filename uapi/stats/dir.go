//go:build linux || darwin

package stats

import (
	"errors"
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
