//go:build linux && (amd64 || arm64)

package notif

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

var (
	// ErrBusy: the process is under a filter with a listener already, that of
	// another supervisor, of a container's manager, or of WSL2 with mirrored
	// networking. Linux allows one.
	ErrBusy = fmt.Errorf("seccomp: a listener is there already, and Linux allows one; a program within needs no second: %w", syscall.EBUSY)

	// ErrUnsupported: the kernel has no user notification (before Linux 5.9,
	// gVisor), or a filter forbids it.
	ErrUnsupported = fmt.Errorf("seccomp: no user notification here, it needs Linux 5.9: %w", syscall.ENOTSUP)
)

// Exec puts the calling thread under the filter, sends the listener over the
// UNIX socket for Accept, closes both, and becomes the program. It returns only
// an error, of which Accept has been told unless it is that of the program's
// file. The process does well to end then: its thread may be under the filter.
// The number of the socket lies outside the filter's window.
//
// Privileges are given up (PR_SET_NO_NEW_PRIVS) where Linux demands it, without
// CAP_SYS_ADMIN; set-user-ID programs under the filter then run without theirs.
func Exec(filter []unix.SockFilter, socket int, path string, argv, env []string) error {
	runtime.LockOSThread()
	fd, err := install(filter)
	if err != nil {
		var errno syscall.Errno
		_ = errors.As(err, &errno)
		_ = Send(socket, binary.NativeEndian.AppendUint32(nil, uint32(errno)))
		return named(err)
	}
	err = Send(socket, make([]byte, 4), fd)
	_ = unix.Close(fd)
	_ = unix.Close(socket)
	if err != nil {
		return err
	}
	return unix.Exec(path, argv, env)
}

// Accept returns the listener of the program that a child becomes by Exec, or
// the error that kept it. It returns io.EOF when the child has ended.
func Accept(socket int) (*Listener, error) {
	var status [4]byte
	n, fds, err := Receive(socket, status[:])
	switch errno := syscall.Errno(binary.NativeEndian.Uint32(status[:])); {
	case err != nil:
		return nil, err
	case n == len(status) && errno != 0:
		return nil, named(errno)
	case len(fds) != 1:
		closeAll(fds)
		return nil, fmt.Errorf("notif: %d descriptors instead of a listener: %w", len(fds), syscall.EPROTO)
	}
	return NewListener(fds[0]), nil
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
	case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EINVAL), errors.Is(err, unix.EPERM):
		return fmt.Errorf("%w (%w)", ErrUnsupported, err)
	}
	return fmt.Errorf("seccomp: %w", err)
}

// mostDescriptors bounds those that one message brings.
const mostDescriptors = 4

// Send writes a message, of at least one byte, with descriptors to a UNIX
// socket that keeps messages apart, or is a stream on which each waits for an
// answer.
func Send(socket int, data []byte, fds ...int) error {
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	for {
		err := unix.Sendmsg(socket, data, rights, nil, unix.MSG_NOSIGNAL)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// Receive reads a message and its descriptors, at most four and closed by exec.
// It returns io.EOF at the end, and EMSGSIZE for more descriptors.
func Receive(socket int, data []byte) (n int, fds []int, err error) {
	rights := make([]byte, unix.CmsgSpace(4*mostDescriptors))
	var got, flags int
	for {
		n, got, flags, _, err = unix.Recvmsg(socket, data, rights, unix.MSG_CMSG_CLOEXEC)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		return 0, nil, err
	}
	messages, err := unix.ParseSocketControlMessage(rights[:got])
	for _, m := range messages {
		if more, err := unix.ParseUnixRights(&m); err == nil {
			fds = append(fds, more...)
		}
	}
	switch {
	case flags&unix.MSG_CTRUNC != 0:
		err = unix.EMSGSIZE
	case err == nil && n == 0 && len(fds) == 0:
		err = io.EOF
	}
	if err != nil {
		closeAll(fds)
		return 0, nil, err
	}
	return n, fds, nil
}

func closeAll(fds []int) {
	for _, fd := range fds {
		_ = unix.Close(fd)
	}
}
