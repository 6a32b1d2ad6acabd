//go:build linux && (amd64 || arm64)

package broker

import (
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/kshim/supervise/notif"
)

// kept are the signals that are not sent on: those that nothing can catch,
// those that a fault or a timer of the process's own raises, SIGCHLD, Go's
// SIGURG, and those of C libraries, which Go leaves alone.
var kept = []syscall.Signal{
	unix.SIGKILL, unix.SIGSTOP, unix.SIGSEGV, unix.SIGBUS, unix.SIGFPE, unix.SIGILL, unix.SIGTRAP, unix.SIGSYS,
	unix.SIGPROF, unix.SIGPIPE, unix.SIGCHLD, unix.SIGURG, 32, 33, 34, probe,
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
	caught  chan os.Signal
	seen    map[os.Signal]bool
	blocked uint64 // the signals that Go's threads block as a rule, since the parent did
}

func newWitness() *witness {
	runtime.LockOSThread()
	own, _ := os.ReadFile("/proc/thread-self/status")
	runtime.UnlockOSThread()
	w := &witness{catch(), map[os.Signal]bool{}, notif.Signals(own, "SigBlk")}
	signal.Notify(w.caught, probe)
	return w
}

// probe is a signal that the keeper sends to itself. It comes behind all
// others, since Linux and Go's run-time take the lowest number first.
const probe syscall.Signal = 64

// take reports whether a signal that the command has got came here as well,
// once for each. Linux gave it to all processes of the group at once.
func (w *witness) take(s syscall.Signal) bool {
	w.flush(s)
	seen := w.seen[s]
	delete(w.seen, s)
	return seen
}

// flush notes the signals that have come until now. First s leaves Linux, then
// the handler, and at last, before the probe, Go's run-time.
func (w *witness) flush(s syscall.Signal) {
	for len(w.caught) > 0 {
		w.seen[<-w.caught] = true
	}
	for range 10_000 {
		if !w.underWay(s) {
			break
		}
		runtime.Gosched()
	}
	if unix.Kill(unix.Getpid(), probe) != nil {
		return
	}
	for c := range w.caught {
		if c == probe {
			return
		}
		w.seen[c] = true
	}
}

// underWay reports whether Linux has a signal for this process that no thread
// has taken yet, or a thread is in the handler, where it is blocked: of one
// that is blocked anyway the handler cannot be seen.
func (w *witness) underWay(s syscall.Signal) bool {
	threads, _ := filepath.Glob("/proc/self/task/*/status")
	for _, t := range threads {
		status, _ := os.ReadFile(t)
		set := notif.Signals(status, "SigPnd") | notif.Signals(status, "ShdPnd") | notif.Signals(status, "SigBlk")&^w.blocked
		if set&(1<<(s-1)) != 0 {
			return true
		}
	}
	return false
}
