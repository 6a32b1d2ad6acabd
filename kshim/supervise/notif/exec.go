//go:build linux && (amd64 || arm64)

package notif

import (
	"errors"
	"fmt"
	"io/fs"
	"runtime"

	"golang.org/x/sys/unix"
)

// Exec puts the calling thread under the filter of a window, sends the listener
// over a UNIX socket, to Accept, closes both, and becomes the program. It
// returns only an error: an *fs.PathError for the program's file, else one that
// Accept returns as well. The process does well to end then: its thread may be
// under the filter. The number of the socket lies outside the window.
//
// Privileges are given up (PR_SET_NO_NEW_PRIVS) where Linux demands it, without
// CAP_SYS_ADMIN; set-user-ID programs under the filter then run without theirs.
func Exec(w Window, socket int, path string, argv, env []string) error {
	runtime.LockOSThread()
	fd, err := install(Filter(w))
	if err != nil {
		_ = Refuse(socket, err)
		return named(err)
	}
	l := NewListener(fd, w)
	err = errors.Join(l.Send(socket), l.Close(), unix.Close(socket))
	if err != nil {
		return err
	}
	return &fs.PathError{Op: "exec", Path: path, Err: unix.Exec(path, argv, env)}
}

// install puts the thread under the filter and returns the listener, with as
// much as this kernel has.
func install(filter []unix.SockFilter) (fd int, err error) {
	const listener = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER
	for _, flags := range []uintptr{listener | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, listener} {
		if fd, err = setFilter(filter, flags); errors.Is(err, unix.EACCES) {
			if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
				return -1, err
			}
			fd, err = setFilter(filter, flags)
		}
		if !errors.Is(err, unix.EINVAL) { // an unknown flag
			break
		}
	}
	return fd, err
}

// named gives the errors of seccomp their names.
func named(err error) error {
	switch {
	case errors.Is(err, unix.EBUSY):
		return ErrBusy
	case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EINVAL), errors.Is(err, unix.EPERM), errors.Is(err, unix.ENOTSUP):
		return fmt.Errorf("%w (%w)", ErrUnsupported, err)
	}
	return fmt.Errorf("seccomp: %w", err)
}
