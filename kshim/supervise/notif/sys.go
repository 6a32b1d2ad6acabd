//go:build linux && (amd64 || arm64)

package notif

import (
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ioctl does a request of a listener that waits for its mutex at most. A signal
// ends that wait before anything is done (seccomp.c: mutex_lock_interruptible).
func ioctl[T any](fd int, request uintptr, arg *T) error {
	for {
		err := failed(unix.RawSyscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(unsafe.Pointer(arg))))
		if err != unix.EINTR {
			return err
		}
	}
}

// ioctlWait does a request that may wait, and returns its result.
func ioctlWait[T any](fd int, request uintptr, arg *T) (int, error) {
	n, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(unsafe.Pointer(arg)))
	return int(n), failed(n, 0, errno)
}

// setFlags does SECCOMP_IOCTL_NOTIF_SET_FLAGS, whose argument is no pointer.
func setFlags(fd int, flags uintptr) error {
	return failed(unix.RawSyscall(unix.SYS_IOCTL, uintptr(fd), unix.SECCOMP_IOCTL_NOTIF_SET_FLAGS, flags))
}

// setFilter installs a filter for the calling thread and returns its listener.
func setFilter(filter []unix.SockFilter, flags uintptr) (int, error) {
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: unsafe.SliceData(filter)}
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&prog)))
	runtime.KeepAlive(filter)
	return int(fd), failed(fd, 0, errno)
}

func failed(_, _ uintptr, errno syscall.Errno) error {
	if errno != 0 {
		return errno
	}
	return nil
}

const tableSize = int(unsafe.Sizeof(table{}))

// tableOf is the table in mapped memory, of tableSize bytes.
func tableOf(mem []byte) *table { return (*table)(unsafe.Pointer(unsafe.SliceData(mem))) }
