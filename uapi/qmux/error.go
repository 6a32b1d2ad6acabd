package qmux

import (
	"errors"
	"fmt"
	"net"

	"github.com/rdmashim/rdmashim/uapi/qmux/core"
	"github.com/rdmashim/rdmashim/uapi/qmux/wire"
)

// StreamID names a stream.
type StreamID = wire.StreamID

// The codes of errors: the program's, and [wire.Code].
type (
	ApplicationErrorCode uint64
	StreamErrorCode      uint64
	TransportErrorCode   = wire.Code
)

// The codes of a TransportError, with RFC 9000's meanings.
const (
	NoError                   = wire.NoError
	InternalError             = wire.InternalError
	ConnectionRefused         = wire.ConnectionRefused
	FlowControlError          = wire.FlowControlError
	StreamLimitError          = wire.StreamLimitError
	StreamStateError          = wire.StreamStateError
	FinalSizeError            = wire.FinalSizeError
	FrameEncodingError        = wire.FrameEncodingError
	TransportParameterError   = wire.TransportParameterError
	ProtocolViolation         = wire.ProtocolViolation
	ApplicationErrorErrorCode = wire.ApplicationErrorCode
)

// ApplicationError is the error of a connection that one side's program closed.
type ApplicationError struct {
	Remote       bool
	ErrorCode    ApplicationErrorCode
	ErrorMessage string
	cause        error
}

// TransportError is the error of a connection that one side closed for a
// mistake of the other.
type TransportError struct {
	Remote       bool
	FrameType    uint64 // 0 if unknown
	ErrorCode    TransportErrorCode
	ErrorMessage string
	cause        error
}

// IdleTimeoutError is the error of a connection on which nothing came for the
// idle time.
type IdleTimeoutError struct{ cause error }

// StreamError is the error of a half of a stream that was cancelled.
type StreamError struct {
	StreamID  StreamID
	ErrorCode StreamErrorCode
	Remote    bool
	cause     error
}

// DatagramTooLargeError is the error of a datagram that the peer does not take.
type DatagramTooLargeError struct {
	MaxDatagramPayloadSize int64
}

// StreamLimitReachedError is the error of OpenStream while the peer has granted
// no more streams.
type StreamLimitReachedError struct{}

func (e *ApplicationError) Error() string { return text(e.cause, "closed with code ", e.ErrorCode) }
func (e *TransportError) Error() string   { return text(e.cause, "closed with ", e.ErrorCode) }
func (e *IdleTimeoutError) Error() string { return text(e.cause, "idle for too long") }
func (e *StreamError) Error() string {
	return text(e.cause, "stream cancelled with code ", e.ErrorCode)
}
func (e *DatagramTooLargeError) Error() string {
	return fmt.Sprintf("qmux: datagram longer than %d bytes, which the peer takes", e.MaxDatagramPayloadSize)
}
func (StreamLimitReachedError) Error() string {
	return "qmux: the peer has granted no more streams; OpenStreamSync waits for one"
}

// text is the cause's, or words for an error that a program made to compare.
func text(cause error, words ...any) string {
	if cause != nil {
		return cause.Error()
	}
	return "qmux: " + fmt.Sprint(words...)
}

// Is reports whether target has the same code and side.
func (e *ApplicationError) Is(target error) bool {
	t, ok := target.(*ApplicationError)
	return ok && t.ErrorCode == e.ErrorCode && t.Remote == e.Remote
}

// Is reports whether target has the same code, frame and side.
func (e *TransportError) Is(target error) bool {
	t, ok := target.(*TransportError)
	return ok && t.ErrorCode == e.ErrorCode && t.FrameType == e.FrameType && t.Remote == e.Remote
}

// Is reports whether target is an IdleTimeoutError.
func (e *IdleTimeoutError) Is(target error) bool {
	_, ok := target.(*IdleTimeoutError)
	return ok
}

// Is reports whether target has the same stream, code and side.
func (e *StreamError) Is(target error) bool {
	t, ok := target.(*StreamError)
	return ok && t.StreamID == e.StreamID && t.ErrorCode == e.ErrorCode && t.Remote == e.Remote
}

// Is reports whether target has the same size.
func (e *DatagramTooLargeError) Is(target error) bool {
	t, ok := target.(*DatagramTooLargeError)
	return ok && *t == *e
}

// Unwrap leads to the errno: EMSGSIZE.
func (e *DatagramTooLargeError) Unwrap() error { return core.ErrTooLong }

// Unwrap leads to the errno: ECONNABORTED, ECONNRESET, EPROTO and so on.
func (e *ApplicationError) Unwrap() []error { return []error{e.cause, net.ErrClosed} }

// Unwrap leads to the errno and net.ErrClosed.
func (e *TransportError) Unwrap() []error { return []error{e.cause, net.ErrClosed} }

// Unwrap leads to the errno and net.ErrClosed.
func (e *IdleTimeoutError) Unwrap() []error { return []error{e.cause, net.ErrClosed} }

// Unwrap leads to the errno: ECONNRESET, or ECANCELED for this side's cancel.
func (e *StreamError) Unwrap() error { return e.cause }

// Timeout is true, as of a net.Error.
func (e *IdleTimeoutError) Timeout() bool { return true }

// Temporary is false, as of a net.Error.
func (e *IdleTimeoutError) Temporary() bool { return false }

// Timeout is false, as of a net.Error.
func (StreamLimitReachedError) Timeout() bool { return false }

// Temporary is true: streams that end make room.
func (StreamLimitReachedError) Temporary() bool { return true }

// translate turns an error of the core into this package's. broken is the error
// of the byte stream, if it has one.
func translate(err, broken error) error {
	var cause *core.Cause
	var stream *core.StreamError
	switch {
	case errors.As(err, &stream):
		return &StreamError{StreamID: stream.Stream, ErrorCode: StreamErrorCode(stream.Code), Remote: stream.Remote, cause: err}
	case !errors.As(err, &cause):
		return err
	}
	switch cause.Kind {
	case core.Application:
		return &ApplicationError{Remote: cause.Remote, ErrorCode: ApplicationErrorCode(cause.Code), ErrorMessage: cause.Reason, cause: err}
	case core.Transport:
		return &TransportError{
			Remote: cause.Remote, FrameType: uint64(cause.Frame), ErrorCode: wire.Code(cause.Code), ErrorMessage: cause.Reason, cause: err,
		}
	case core.Idle:
		return &IdleTimeoutError{cause: err}
	}
	if broken != nil {
		return fmt.Errorf("%w: %w", err, broken)
	}
	return err
}
