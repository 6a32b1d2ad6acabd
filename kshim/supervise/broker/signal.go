//go:build linux && (amd64 || arm64)

package broker

import (
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// kept are the signals that are not sent on: those that nothing can catch,
// those that a fault or a timer of the process's own raises, SIGCHLD, Go's
// SIGURG, and those of C libraries, which Go leaves alone.
var kept = []syscall.Signal{
	unix.SIGKILL, unix.SIGSTOP, unix.SIGSEGV, unix.SIGBUS, unix.SIGFPE, unix.SIGILL, unix.SIGTRAP, unix.SIGSYS,
	unix.SIGPROF, unix.SIGPIPE, unix.SIGCHLD, unix.SIGURG, 32, 33, 34,
}

// forwarded returns the signals that are.
func forwarded() (list []os.Signal) {
	for s := syscall.Signal(1); s <= 64; s++ {
		if !slices.Contains(kept, s) {
			list = append(list, s)
		}
	}
	return list
}

// catch returns a channel of the signals that are sent on. One that is ignored,
// as by nohup, stays so for the program as well.
func catch() chan os.Signal {
	c := make(chan os.Signal, 64)
	signal.Notify(c, slices.DeleteFunc(forwarded(), signal.Ignored)...)
	return c
}

// defaultAction makes a signal do what Linux does by itself. Package signal
// leaves some to Go's run-time, which ends with a status of its own.
func defaultAction(s syscall.Signal) {
	var action [4]uint64 // struct sigaction: SIG_DFL, no flags, no mask
	_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(s), uintptr(unsafe.Pointer(&action)), 0, 8, 0, 0)
}

// witness is a member of the process group that catches the signals, and so
// knows which of the command's were the group's.
type witness struct {
	caught chan os.Signal
	seen   map[os.Signal]bool
}

func newWitness() *witness { return &witness{catch(), map[os.Signal]bool{}} }

// grace is how long a signal may take from Linux through Go's run-time. One
// that is sent to the command alone comes so much later.
const grace = 20 * time.Millisecond

// take reports whether a signal that the command has got came here as well,
// once for each.
func (w *witness) take(s syscall.Signal) bool {
	for pending(s) {
		runtime.Gosched()
	}
	late := time.After(grace)
	for !w.seen[s] {
		select {
		case c := <-w.caught:
			w.seen[c] = true
		case <-late:
			return false
		}
	}
	delete(w.seen, s)
	return true
}

var pendingSignals = regexp.MustCompile(`ShdPnd:\t([0-9a-f]{16})`)

// pending reports whether Linux has a signal for this process that no thread
// has taken yet.
func pending(s syscall.Signal) bool {
	status, err := os.ReadFile("/proc/self/status")
	m := pendingSignals.FindSubmatch(status)
	if err != nil || m == nil {
		return false
	}
	set, err := strconv.ParseUint(string(m[1]), 16, 64)
	return err == nil && set&(1<<(s-1)) != 0
}
