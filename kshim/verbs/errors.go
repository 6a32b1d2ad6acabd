package verbs

import (
	"net"
	"syscall"
)

// Error is a failed call. errors.Is finds the errno in Err.
type Error struct {
	Op     string // "create QP"
	Object string // "QP 17", "CQ", or empty
	Err    error
}

func (e *Error) Error() string {
	if e.Object == "" {
		return "verbs: " + e.Op + ": " + e.Err.Error()
	}
	return "verbs: " + e.Op + " on " + e.Object + ": " + e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

// reason is a sentence with an errno.
type reason struct {
	text  string
	errno syscall.Errno
}

func (r *reason) Error() string { return r.text }
func (r *reason) Unwrap() error { return r.errno }

// Errors that the client itself reports.
var (
	errSendFull  = &reason{"send queue is full: poll its completion queue; unsignaled requests free their slots with the next signaled one", syscall.ENOMEM}
	errRecvFull  = &reason{"receive queue is full: poll its completion queue", syscall.ENOMEM}
	errSendState = &reason{"queue pair is not connected: bring it to RTS first", syscall.EINVAL}
	errRecvState = &reason{"queue pair is in RESET: bring it to INIT first", syscall.EINVAL}
	errSGE       = &reason{"more scatter/gather elements than the queue pair was made for", syscall.EINVAL}
	errInline    = &reason{"more inline data than the queue pair was made for", syscall.EINVAL}
	errLength    = &reason{"message is longer than the port's maximum", syscall.EINVAL}
	errEmpty     = &reason{"memory region is empty", syscall.EINVAL}
	errArgument  = &reason{"number out of range", syscall.EINVAL}
	errForeign   = &reason{"object belongs to another context", syscall.EINVAL}
	errDestroyed = &reason{"object was destroyed", syscall.EBADF}
	errOverrun   = &reason{"completion queue overran and completions were lost: make it as large as all work that can be outstanding", syscall.EOVERFLOW}
	errCorrupt   = &reason{"completion names a work request that is not outstanding", syscall.EIO}
	errNoDevice  = &reason{"no such RDMA device", syscall.ENODEV}
	errDriver    = &reason{"driver is not supported (rdma_rxe is)", syscall.EPROTONOSUPPORT}
	errFatal     = &reason{"device reported a fatal error", syscall.EIO}
)

// closedError is the error of every call on a closed context.
type closedError struct{}

func (closedError) Error() string { return "context is closed" }
func (closedError) Is(target error) bool {
	return target == net.ErrClosed || target == syscall.EBADF
}

var errClosed error = closedError{}
