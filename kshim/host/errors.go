//go:build linux && (amd64 || arm64 || loong64 || mips64le || ppc64le || riscv64)

package host

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim"
)

// callError is a refused call: which, on what, the kernel's number, and known
// advice. errors.Is(err, syscall.EINVAL) sees the number.
type callError struct {
	Op    string // "write", "ioctl", "open"
	Path  string // "/dev/infiniband/uverbs0"
	Msg   string // why, or what to do; may be empty
	Errno syscall.Errno
}

func (e *callError) Error() string {
	if e.Msg == "" {
		return fmt.Sprintf("%s %s: %v", e.Op, e.Path, e.Errno)
	}
	return fmt.Sprintf("%s %s: %v (%s)", e.Op, e.Path, e.Errno, e.Msg)
}

func (e *callError) Unwrap() error { return e.Errno }

// Reason is the error without the call and the file, for callers that name
// their act in words of their own.
func (e *callError) Reason() error {
	if e.Msg == "" {
		return e.Errno
	}
	return fmt.Errorf("%w (%s)", e.Errno, e.Msg)
}

// openError explains what keeps a device file from being opened.
func openError(name string, errno syscall.Errno) error {
	e := &callError{Op: "open", Path: name, Errno: errno}
	if !strings.HasPrefix(name, devDir) {
		return e
	}
	switch errno {
	case syscall.EACCES, syscall.EPERM:
		e.Msg = "its owner or a udev rule must let this user read and write it"
	case syscall.ENOENT:
		e.Msg = "there is no such device file; a container needs it passed in (--device " + strings.TrimSuffix(devDir, "/") + ")"
	case syscall.ENXIO, syscall.ENODEV:
		e.Msg = path.Base(name) + " has gone, or its module is being unloaded"
	}
	return e
}

// errClosed answers calls on a closed file.
const errClosed = kshim.ClosedError("use of closed file")

// pathError makes an error of package os ours.
func pathError(op, path string, err error) error {
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return fmt.Errorf("%s %s: %w", op, path, err)
	}
	return &callError{Op: op, Path: path, Errno: errno}
}
