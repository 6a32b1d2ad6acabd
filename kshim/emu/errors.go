package emu

import (
	"fmt"
	"strings"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim"
)

// Error is a refused call: which, on what, why, and the number that the kernel
// would answer. errors.Is(err, syscall.EINVAL) sees the number.
type Error struct {
	Op    string // "CREATE_QP", "mmap", "open"
	Path  string // "/dev/infiniband/uverbs0"
	Msg   string // "pd handle 0x7 does not exist"
	Errno syscall.Errno
}

func (e *Error) Error() string {
	if e.Op == "" {
		return fmt.Sprintf("%s: %v", e.Msg, e.Errno)
	}
	return fmt.Sprintf("%s %s: %s: %v", e.Op, shown(e.Path), e.Msg, e.Errno)
}

// shown is a file's name as errors have it. A device file is shown without its
// directory, for there is no such file on the machine.
func shown(path string) string { return strings.TrimPrefix(path, "/dev/infiniband/") }

func (e *Error) Unwrap() error { return e.Errno }

// Reason is the error without the call and the file, for callers that name
// their act in words of their own.
func (e *Error) Reason() error { return &Error{Msg: e.Msg, Errno: e.Errno} }

// driverError is a driver's error, which passes with its own text.
type driverError struct {
	op, path string
	err      error
}

func (e *driverError) Error() string { return e.op + " " + shown(e.path) + ": " + e.err.Error() }
func (e *driverError) Unwrap() error { return e.err }
func (e *driverError) Reason() error { return e.err }

// fail makes an Error whose Op and Path the entry of the call fills in.
func fail(errno syscall.Errno, format string, args ...any) error {
	return &Error{Msg: fmt.Sprintf(format, args...), Errno: errno}
}

// explain fills in the fields that the layers below did not know.
func explain(err error, op, path string) error {
	if e, ok := err.(*Error); ok {
		named := *e // an event queue answers the same to many
		if named.Op == "" {
			named.Op = op
		}
		if named.Path == "" {
			named.Path = path
		}
		return &named
	}
	if err == errClosed { //nolint:errorlint // our own value
		return err
	}
	return &driverError{op, path, err}
}

// errClosed answers calls on a closed file.
const errClosed = kshim.ClosedError("use of closed file")
