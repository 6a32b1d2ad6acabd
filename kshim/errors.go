package kshim

import (
	"net"
	"syscall"
)

// ClosedError is the error of a call on a file or an object that was closed,
// and says which. It Is EBADF and net.ErrClosed.
type ClosedError string

func (e ClosedError) Error() string { return string(e) }
func (ClosedError) Unwrap() []error { return []error{syscall.EBADF, net.ErrClosed} }

// reason is a sentence with an errno.
type reason struct {
	text  string
	errno syscall.Errno
}

func (r *reason) Error() string { return r.text }
func (r *reason) Unwrap() error { return r.errno }

// Reason returns an error that reads text and Is errno: what a client of a
// kernel itself refuses, in words of its own.
func Reason(text string, errno syscall.Errno) error { return &reason{text, errno} }
