package rdmacm

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/abi"
)

// Error is a failed call. errors.Is finds the errno in Err.
type Error struct {
	Op     string // "connect"
	Object string // "10.0.0.2:7471", "id 3", or empty
	Err    error
}

func (e *Error) Error() string {
	if e.Object == "" {
		return "cm: " + e.Op + ": " + e.Err.Error()
	}
	return "cm: " + e.Op + " " + e.Object + ": " + e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

// outer names the call of which an inner one was a part, and drops the inner
// one's name.
func outer(op, object string, err error) error {
	var inner *Error
	if errors.As(err, &inner) {
		err = fmt.Errorf("%s: %w", inner.Op, inner.Err)
	}
	return &Error{op, object, err}
}

// bare is a kernel's error without the call and the file that it names.
func bare(err error) error {
	var e interface {
		error
		Reason() error
	}
	if errors.As(err, &e) {
		return e.Reason()
	}
	return err
}

// EventError is an event that tells of a failure: ADDR_ERROR, ROUTE_ERROR,
// CONNECT_ERROR, UNREACHABLE, DEVICE_REMOVAL. It Is the errno that the event
// carries: ETIMEDOUT for a host that does not answer, ENODEV for a device that
// has gone.
type EventError struct {
	Event  abi.UCMEvent
	Status int32 // as the kernel gave it: a negative errno, or 0
}

// eventText explains an event to a caller that waited for another.
var eventText = map[abi.UCMEvent]string{
	abi.UCMEventAddrError:     "address was not resolved: no RDMA device on the way there, or the host does not answer",
	abi.UCMEventRouteError:    "route was not resolved",
	abi.UCMEventConnectError:  "connection was not made",
	abi.UCMEventUnreachable:   "peer does not answer",
	abi.UCMEventDeviceRemoval: "RDMA device has gone",
}

func (e *EventError) Error() string {
	text, ok := eventText[e.Event]
	if !ok {
		text = "connection manager reports " + e.Event.String()
	}
	return fmt.Sprintf("%s (%v, %v)", text, e.Event, e.errno())
}

func (e *EventError) Unwrap() error { return e.errno() }

func (e *EventError) errno() syscall.Errno {
	switch {
	case e.Status < 0 && e.Status > -4096:
		return syscall.Errno(-e.Status)
	case e.Event == abi.UCMEventDeviceRemoval:
		return syscall.ENODEV
	case e.Event == abi.UCMEventUnreachable:
		return syscall.EHOSTUNREACH
	}
	return syscall.EIO
}

// RejectedError is the peer's refusal. It Is ECONNREFUSED.
type RejectedError struct {
	Reason abi.UCMRejReason // CONSUMER_DEFINED when the peer's program refused, INVALID_SERVICE_ID when no program listens there

	// Private is the refusal's private data, as the kernel gives it: the whole
	// room (abi.UCMRejectData bytes) with zeroes behind the peer's bytes.
	Private []byte
}

func (e *RejectedError) Error() string {
	switch e.Reason {
	case abi.UCMRejInvalidServiceID:
		return "connection refused: nobody listens there"
	case abi.UCMRejConsumerDefined:
		return "connection refused by the peer's program"
	}
	return "connection rejected: " + e.Reason.String()
}

func (e *RejectedError) Unwrap() error { return syscall.ECONNREFUSED }

// DisconnectedError is why a connection that stood does so no more. It Is
// ECONNRESET when the peer ended it or no longer answered, ENOTCONN when this
// side did.
type DisconnectedError struct {
	Local  bool
	Status int32 // a negative errno: -ETIMEDOUT when the peer did not answer the disconnect request
}

func (e *DisconnectedError) Error() string {
	if e.Local {
		return "connection was disconnected here"
	}
	return "peer disconnected"
}

func (e *DisconnectedError) Unwrap() error {
	if e.Local {
		return syscall.ENOTCONN
	}
	return syscall.ECONNRESET
}

// Errors that the client itself reports.
var (
	errDestroyed = kshim.Reason("id was destroyed", syscall.EBADF)
	errWait      = kshim.Reason("kernel's file cannot be waited for", syscall.ENOTSUP)
	errVersion   = kshim.Reason("kernel speaks another version of the interface", syscall.EPROTONOSUPPORT)
	errShort     = kshim.Reason("kernel took only a part of the command", syscall.EIO)
	errPrivate   = kshim.Reason("more private data than the message carries", syscall.EINVAL)
	errOverflow  = kshim.Reason("more events than an id can have: they are lost", syscall.EOVERFLOW)
	errReason    = kshim.Reason("the kernel sends no other reasons than CONSUMER_DEFINED and VENDOR_OPTION_NOT_SUPPORTED", syscall.EINVAL)
	errNoDevice  = kshim.Reason("no RDMA device has the id's address", syscall.ENODEV)
	errAnswered  = kshim.Reason("request was answered before", syscall.EINVAL)
	errGone      = kshim.Reason("request is no longer there: the peer gave up", syscall.ECONNABORTED)

	errClosed         = kshim.ClosedError("event channel is closed")
	errListenerClosed = kshim.ClosedError("listener is closed")
)
