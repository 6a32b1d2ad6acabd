package leak

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// patience is how long goroutines get to end by themselves on a busy machine.
var patience = 10 * time.Second

// Main runs the tests and exits with their status, or with 1 when they passed
// but left goroutines or descriptors behind.
func Main(m *testing.M) {
	before := descriptors()
	code := m.Run()
	if code == 0 {
		if left := leftovers(before); len(left) > 0 {
			fmt.Fprintf(os.Stderr, "FAIL: the tests left behind:\n%s\n", strings.Join(left, "\n"))
			code = 1
		}
	}
	os.Exit(code)
}

// leftovers waits until nothing is left or patience ends.
func leftovers(before map[string]string) []string {
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		left := goroutines()
		for fd, what := range descriptors() {
			if before[fd] != what {
				left = append(left, fmt.Sprintf("descriptor %s: %s", fd, what))
			}
		}
		if len(left) == 0 || time.Now().After(deadline) {
			return left
		}
		runtime.GC() // a file without references is closed by its cleanup
	}
}

// harmless goroutines belong to the runtime, to package testing or to a cache
// of the standard library.
var harmless = []string{
	"testing.(*M).",
	"testing.runFuzz",
	"os/signal.signal_recv",
	"os/signal.loop",
	"runtime.ensureSigM",
	"runtime.goexit0",
	"internal/fuzz.",
}

// goroutines lists the stacks of all others than the caller's.
func goroutines() []string {
	buf := make([]byte, 1<<20)
	buf = buf[:runtime.Stack(buf, true)]
	others := strings.Split(string(buf), "\n\n")[1:]
	return slices.DeleteFunc(others, func(stack string) bool {
		return slices.ContainsFunc(harmless, func(h string) bool { return strings.Contains(stack, h) })
	})
}

// descriptors lists the open descriptors that a test can be blamed for, where
// the system shows them (Linux). The netpoller's own are not among them.
func descriptors() map[string]string {
	open := map[string]string{}
	links, _ := filepath.Glob("/proc/self/fd/*")
	for _, l := range links {
		what, err := os.Readlink(l)
		if err != nil { // the directory's own, closed by now
			continue
		}
		if strings.HasPrefix(what, "anon_inode:[event") {
			continue
		}
		open[filepath.Base(l)] = what
	}
	return open
}
