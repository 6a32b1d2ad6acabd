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
	"time"

	"github.com/rdmashim/rdmashim/kshim/privatefile"
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

// Tidy removes the sockets of processes that have ended, which a process that
// is killed leaves. It looks at 64 names at most, and need not be called: each
// server does nearly the same when it starts.
func Tidy() {
	for _, dir := range privatefile.Dirs() {
		if privatefile.CheckDir(dir) == nil {
			tidy(dir, true)
		}
	}
}

// tidy removes the sockets of processes that are gone. A missing process does
// not prove that: it may be in another PID namespace. A missing listener does,
// since a name is used once, but for one that has no name yet: then both count.
// Those of processes that are there are asked only if zombies are looked for.
func tidy(dir string, zombies bool) {
	f, err := os.Open(dir)
	if err != nil {
		return
	}
	defer f.Close()
	names, _ := f.Readdirnames(maxTidy)
	for _, name := range names {
		born := strings.TrimPrefix(name, ".")
		pid := pidOf(born)
		if pid == 0 || (!zombies || born != name) && syscall.Kill(pid, 0) == nil {
			continue
		}
		if path := filepath.Join(dir, name); isDead(path) {
			os.Remove(path)
		}
	}
}

// isDead reports whether no process listens at a socket. One that is ending may
// still do: it hangs up, and is asked again.
func isDead(path string) bool {
	for range 3 {
		c, err := net.DialTimeout("unix", path, silence)
		if err != nil {
			return errors.Is(err, syscall.ECONNREFUSED)
		}
		_ = c.SetReadDeadline(time.Now().Add(silence))
		_, err = c.Read(make([]byte, 1))
		c.Close()
		if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			return false
		}
	}
	return false
}
