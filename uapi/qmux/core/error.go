package core

import (
	"fmt"
	"syscall"

	"github.com/rdmashim/rdmashim/uapi/qmux/wire"
)

// Kind says how a connection ended.
type Kind uint8

const (
	// Application: one side's program closed it, with a code of its own.
	Application Kind = iota + 1
	// Transport: one side found a mistake of the other, or refused it.
	Transport
	// Idle: nothing came for the idle time.
	Idle
	// Ended: the peer's byte stream ended without a CONNECTION_CLOSE.
	Ended
	// Lost: the byte stream broke.
	Lost
)

// Cause is why a connection ended. It is the error of every call from then on.
type Cause struct {
	Kind   Kind
	Remote bool           // the peer closed it
	Code   uint64         // the application's, or a [wire.Code]
	Frame  wire.FrameType // Transport: the frame that was wrong, 0 if unknown
	Reason string         // at most 1 KiB
}

// Error implements the error interface.
func (c *Cause) Error() string {
	side := "this side"
	if c.Remote {
		side = "the peer"
	}
	reason := ""
	if c.Reason != "" {
		reason = ": " + c.Reason
	}
	switch c.Kind {
	case Application:
		return fmt.Sprintf("qmux: %s closed the connection with code %d%s", side, c.Code, reason)
	case Transport:
		if c.Frame != 0 {
			reason = fmt.Sprintf(" for %v%s", c.Frame, reason)
		}
		return fmt.Sprintf("qmux: %s closed the connection with %v%s", side, wire.Code(c.Code), reason)
	case Idle:
		return "qmux: the connection was idle for too long"
	case Ended:
		return "qmux: the peer ended the connection without a word"
	}
	return "qmux: the connection broke"
}

// Timeout reports whether the connection was idle for too long.
func (c *Cause) Timeout() bool { return c.Kind == Idle }

// Is reports whether target is the errno nearest to the cause.
func (c *Cause) Is(target error) bool {
	switch {
	case c.Kind == Idle:
		return target == syscall.ETIMEDOUT
	case c.Kind == Transport && wire.Code(c.Code) == wire.ConnectionRefused:
		return target == syscall.ECONNREFUSED
	case c.Kind == Transport:
		return target == syscall.EPROTO
	case c.Kind == Application && !c.Remote:
		return target == syscall.ECONNABORTED
	}
	return target == syscall.ECONNRESET
}

// StreamError says that half of a stream was ended before its end: by this
// side's Reset or Stop, or by the peer's.
type StreamError struct {
	Stream wire.StreamID
	Code   uint64 // the application's
	Remote bool   // the peer ended it
}

// Error implements the error interface.
func (e *StreamError) Error() string {
	side := "this side"
	if e.Remote {
		side = "the peer"
	}
	return fmt.Sprintf("qmux: %s cancelled stream %d with code %d", side, e.Stream, e.Code)
}

// Is reports whether target is ECONNRESET for the peer's cancelling, ECANCELED
// for this side's.
func (e *StreamError) Is(target error) bool {
	if e.Remote {
		return target == syscall.ECONNRESET
	}
	return target == syscall.ECANCELED
}

// callError is a mistake of the program.
type callError struct {
	text  string
	errno syscall.Errno
}

func (e *callError) Error() string { return "qmux: " + e.text }
func (e *callError) Unwrap() error { return e.errno }

// The mistakes that a program may make. Each wraps an errno.
var (
	// ErrNoStream: the stream was never opened, or both its halves are over.
	ErrNoStream error = &callError{"no such stream, or it is finished", syscall.EBADF}
	// ErrDirection: the stream carries no data in that direction.
	ErrDirection error = &callError{"the stream is unidirectional, the other way", syscall.EINVAL}
	// ErrBusy: bytes of an earlier Write are not sent yet.
	ErrBusy error = &callError{"an earlier write on the stream is not finished", syscall.EBUSY}
	// ErrFinished: the stream's end was written already.
	ErrFinished error = &callError{"write behind the end of the stream", syscall.EPIPE}
	// ErrNotReady: the peer's parameters did not arrive yet.
	ErrNotReady error = &callError{"the peer's parameters are not here yet", syscall.EAGAIN}
	// ErrNoDatagrams: the peer takes no datagrams.
	ErrNoDatagrams error = &callError{"the peer takes no datagrams", syscall.EOPNOTSUPP}
	// ErrTooLong: the datagram is longer than MaxDatagram says.
	ErrTooLong error = &callError{"datagram longer than the peer takes", syscall.EMSGSIZE}
	// ErrFull: 128 datagrams wait to be sent.
	ErrFull error = &callError{"too many datagrams wait to be sent", syscall.EAGAIN}
)

func errConfig(field, valid string) error {
	return &callError{"config: " + field + " must be " + valid, syscall.EINVAL}
}

// The mistakes of the peer that this package finds, beside those of package
// wire.
var (
	errTwice          = wire.NewError(wire.ProtocolViolation, "parameters twice")
	errFirst          = wire.NewError(wire.ProtocolViolation, "first frame without parameters")
	errLongParameters = wire.NewError(wire.TransportParameterError, "parameters longer than 4096 bytes")
	errStreamLimit    = wire.NewError(wire.StreamLimitError, "more streams than granted")
	errUnopened       = wire.NewError(wire.StreamStateError, "stream that was never opened")
	errWrongHalf      = wire.NewError(wire.StreamStateError, "stream has no such half")
	errResetCode      = wire.NewError(wire.StreamStateError, "error code of a reset changed")
	errGap            = wire.NewError(wire.ProtocolViolation, "stream data out of order")
	errStreamCredit   = wire.NewError(wire.FlowControlError, "more data than granted for the stream")
	errCredit         = wire.NewError(wire.FlowControlError, "more data than granted for the connection")
	errFinalSize      = wire.NewError(wire.FinalSizeError, "final size changed or exceeded")
	errUnnegotiated   = wire.NewError(wire.FrameEncodingError, "RESET_STREAM_AT was not negotiated")
	errDatagram       = wire.NewError(wire.ProtocolViolation, "datagram longer than granted")
	errPingOrder      = wire.NewError(wire.ProtocolViolation, "ping with a sequence that does not rise")
	errPongUnsent     = wire.NewError(wire.ProtocolViolation, "answer to a ping that was never sent")
	errWaste          = wire.NewError(wire.ProtocolViolation, "too many frames that change nothing")
)
