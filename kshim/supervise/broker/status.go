//go:build linux && (amd64 || arm64)

package broker

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// Status is how a program ended, as wait(2) tells it.
type Status syscall.WaitStatus

// Signal returns the signal that killed the program, or 0.
func (s Status) Signal() syscall.Signal {
	if w := syscall.WaitStatus(s); w.Signaled() {
		return w.Signal()
	}
	return 0
}

// Code returns the exit status that a shell shows: 128 and the signal's number
// for a program that a signal killed.
func (s Status) Code() int {
	if sig := s.Signal(); sig != 0 {
		return 128 + int(sig)
	}
	return syscall.WaitStatus(s).ExitStatus()
}

// Exit ends this process as the program ended: by the same signal, without a
// core of its own, or with the same exit status.
func (s Status) Exit() {
	if sig := s.Signal(); sig != 0 {
		_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
		runtime.LockOSThread()
		defaultAction(sig)
		var only unix.Sigset_t
		only.Val[0] = 1 << (sig - 1)
		_ = unix.PthreadSigmask(unix.SIG_UNBLOCK, &only, nil)
		_ = unix.Tgkill(unix.Getpid(), unix.Gettid(), sig)
	}
	os.Exit(s.Code())
}

// sayExec says why a program's file was not executed and returns the status for
// that. Other errors are the keeper's to say.
func sayExec(args []string, err error) int {
	var exec *fs.PathError
	if !errors.As(err, &exec) {
		return 126
	}
	fmt.Fprintf(os.Stderr, "%s: %v\n", args[0], exec.Err)
	if errors.Is(err, fs.ErrNotExist) {
		return 127
	}
	return 126
}
