package verbs

import (
	"syscall"

	"github.com/rdmashim/rdmashim/kshim"
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

// Errors that the client itself reports.
var (
	errSendFull  = kshim.Reason("send queue is full: poll its completion queue; unsignaled requests free their slots with the next signaled one", syscall.ENOMEM)
	errRecvFull  = kshim.Reason("receive queue is full: poll its completion queue", syscall.ENOMEM)
	errSendState = kshim.Reason("queue pair is not connected: bring it to RTS first", syscall.EINVAL)
	errRecvState = kshim.Reason("queue pair is in RESET: bring it to INIT first", syscall.EINVAL)
	errSGE       = kshim.Reason("more scatter/gather elements than the queue pair was made for", syscall.EINVAL)
	errInline    = kshim.Reason("more inline data than the queue pair was made for", syscall.EINVAL)
	errLength    = kshim.Reason("message is longer than the port's maximum", syscall.EINVAL)
	errEmpty     = kshim.Reason("memory region is empty", syscall.EINVAL)
	errArgument  = kshim.Reason("number out of range", syscall.EINVAL)
	errForeign   = kshim.Reason("object belongs to another context", syscall.EINVAL)
	errDestroyed = kshim.Reason("object was destroyed", syscall.EBADF)
	errOverrun   = kshim.Reason("completion queue overran and completions were lost: make it as large as all work that can be outstanding", syscall.EOVERFLOW)
	errCorrupt   = kshim.Reason("completion names a work request that is not outstanding", syscall.EIO)
	errNoDevice  = kshim.Reason("no such RDMA device", syscall.ENODEV)
	errDriver    = kshim.Reason("driver is not supported (rdma_rxe is)", syscall.EPROTONOSUPPORT)
	errClosed    = kshim.ClosedError("context is closed")
	errFatal     = kshim.Reason("device reported a fatal error", syscall.EIO)
)
