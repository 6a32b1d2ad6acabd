package uapi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/rdmacm"
)

// The reasons for which a connection was not made or has ended. errors.Is finds
// them in the errors of Dial, Request.Accept and Cause, and in each the errno
// in parentheses.
var (
	// ErrRefused: no device or no program listens there, or the program there
	// refused; then it is a *RejectError (ECONNREFUSED).
	ErrRefused error = &connError{"connection refused", syscall.ECONNREFUSED}
	// ErrUnreachable: the peer did not answer while the connection was being
	// made (ETIMEDOUT).
	ErrUnreachable error = &connError{"the peer does not answer", syscall.ETIMEDOUT}
	// ErrGaveUp: the peer that asked for the connection waits for the answer no
	// more (ECONNABORTED).
	ErrGaveUp error = &connError{"the peer gave up before it was accepted", syscall.ECONNABORTED}
	// ErrPeerDisconnected: the peer ended the connection, or its process ended
	// (ECONNRESET).
	ErrPeerDisconnected error = &connError{"the peer disconnected", syscall.ECONNRESET}
	// ErrPeerSilent: the peer no longer answers; a keepalive found it out
	// (ETIMEDOUT).
	ErrPeerSilent error = &connError{"the peer no longer answers", syscall.ETIMEDOUT}
	// ErrDisconnected: this side ended the connection (ENOTCONN).
	ErrDisconnected error = &connError{"disconnected on this side", syscall.ENOTCONN}
	// ErrQPFailed: the queue pair went to the error state (EIO). If a request
	// of its own failed, Cause wraps that completion's error, too: errors.As
	// finds the *WCError.
	ErrQPFailed error = &connError{"the queue pair failed", syscall.EIO}
	// ErrDeviceGone: the device was taken away (ENODEV).
	ErrDeviceGone error = &connError{"the device is gone", syscall.ENODEV}
)

type connError struct {
	text  string
	errno syscall.Errno
}

func (e *connError) Error() string { return e.text }
func (e *connError) Unwrap() error { return e.errno }

// RejectReason is why a request was rejected (IBA table 109).
type RejectReason int

// The reasons that a program may give; Linux sends no other.
const (
	RejectedByProgram         = RejectReason(abi.UCMRejConsumerDefined)
	RejectedUnsupportedOption = RejectReason(abi.UCMRejVendorOptionNotSupported)
)

// String is the kernel's name: "CONSUMER_DEFINED".
func (r RejectReason) String() string { return abi.UCMRejReason(r).String() }

// RejectError is the peer's refusal. It Is ErrRefused.
type RejectError struct {
	Reason RejectReason
	// PrivateData is the peer's private data, padded with zeroes to 148 bytes.
	PrivateData []byte
}

func (e *RejectError) Error() string {
	switch {
	case abi.UCMRejReason(e.Reason) == abi.UCMRejInvalidServiceID:
		return "connection refused: nobody listens there"
	case e.Reason == RejectReason(abi.UCMRejPortCMRedirect):
		return "connection refused: what listens there is at another UDP port of that host, where only soft devices ask"
	case e.Reason == RejectedByProgram:
		return "connection refused by the peer's program"
	}
	return "connection rejected: " + e.Reason.String()
}

func (e *RejectError) Unwrap() error { return ErrRefused }

// setupError names why a connection was not made. ctx is the caller's context,
// inner the bounded one made from it.
func setupError(ctx, inner context.Context, err error) error {
	var rejected *rdmacm.RejectedError
	var event *rdmacm.EventError
	var gone *rdmacm.DisconnectedError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &rejected):
		return &RejectError{Reason: RejectReason(rejected.Reason), PrivateData: rejected.Private}
	case errors.As(err, &gone):
		return ErrPeerDisconnected
	case errors.As(err, &event) && errors.Is(event, syscall.ECONNREFUSED):
		return fmt.Errorf("%w: %w", ErrRefused, err)
	case errors.As(err, &event) && event.Event == abi.UCMEventUnreachable:
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	case errors.As(err, &event) && event.Event == abi.UCMEventDeviceRemoval:
		return fmt.Errorf("%w: %w", ErrDeviceGone, err)
	case errors.Is(err, syscall.ECONNABORTED):
		return fmt.Errorf("%w: %w", ErrGaveUp, err)
	case context.Cause(inner) == errSqueezed:
		return errSqueezed
	case ctx.Err() == nil && inner.Err() != nil && errors.Is(err, inner.Err()):
		return fmt.Errorf("%w for %v", ErrUnreachable, DefaultConnectTimeout)
	}
	return err
}

// endError names why a connection stands no more.
func endError(cause error) error {
	var gone *rdmacm.DisconnectedError
	var event *rdmacm.EventError
	switch {
	case errors.As(cause, &gone) && gone.Local:
		return ErrDisconnected
	case errors.As(cause, &gone):
		return ErrPeerDisconnected
	case errors.As(cause, &event) && event.Event == abi.UCMEventDeviceRemoval:
		return ErrDeviceGone
	case errors.Is(cause, net.ErrClosed):
		return errDeviceClosed
	}
	return cause
}
