//go:build linux && (amd64 || arm64)

package notif

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// Check tries what this machine allows, by a filter that holds nothing, on a
// thread that ends. The error says why a program cannot be supervised at all:
// ErrBusy, ErrUnsupported, or EPERM where Yama forbids to reach its memory.
func Check() (Support, error) {
	var s Support
	failed := make(chan error)
	go onThread(func() { failed <- s.try() })
	err := <-failed
	s.Yama = "0"
	if scope, readErr := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope"); readErr == nil {
		s.Yama = strings.TrimSpace(string(scope))
	}
	if err == nil && (s.Yama == "3" || s.Yama == "2" && !traces()) {
		err = fmt.Errorf("kernel.yama.ptrace_scope is %s, and keeps the memory of programs from their parent; set it to 1 or 0: %w", s.Yama, unix.EPERM)
	}
	return s, err
}

// onThread calls f on a thread that ends with it. The main thread cannot, and
// keeps still until another has done so.
func onThread(f func()) {
	runtime.LockOSThread()
	if unix.Gettid() != unix.Getpid() {
		f()
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		f()
	}()
	<-done
	runtime.UnlockOSThread()
}

// try puts its thread under a filter and asks the listener. A call that is not
// held has no id 0: a known request answers ENOENT, an unknown one EINVAL.
func (s *Support) try() error {
	filter := []unix.SockFilter{allow}
	fd, err := install(filter)
	if err != nil {
		return named(err)
	}
	l := NewListener(fd, Window{})
	defer l.Close()
	// A second listener is refused after the flags have been looked at.
	_, flagged := setFilter(filter, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER|unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV)
	s.WaitKillable = errors.Is(flagged, unix.EBUSY)
	s.SyncWakeUp = l.SyncWakeUp() == nil
	if _, err = ioctlWait(l.fd, unix.SECCOMP_IOCTL_NOTIF_ADDFD, &addition{}); !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("%w (ADDFD: %w)", ErrUnsupported, err)
	}
	return nil
}

// traces reports whether the process has CAP_SYS_PTRACE.
func traces() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	err := unix.Capget(&header, &data[0])
	return err == nil && data[0].Effective&(1<<unix.CAP_SYS_PTRACE) != 0
}
