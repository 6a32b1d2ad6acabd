package quicudp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"

	"github.com/quic-go/quic-go"

	"github.com/rdmashim/rdmashim/uapi/qmux"
)

// errNoDatagrams is what package qmux answers, too.
var errNoDatagrams = fmt.Errorf("udp: the peer takes no datagrams: %w", syscall.EOPNOTSUPP)

// failure is an error of quic-go that is found as package qmux's, too. Its text
// is quic-go's.
type failure struct{ ours, theirs error }

func (f *failure) Error() string   { return "quic: " + f.theirs.Error() }
func (f *failure) Unwrap() []error { return []error{f.ours, f.theirs} }

// translate finds package qmux's error for one of quic-go's. nil, io.EOF and
// those of neither stay.
func translate(err error) error {
	var (
		application *quic.ApplicationError
		transport   *quic.TransportError
		idle        *quic.IdleTimeoutError
		handshake   *quic.HandshakeTimeoutError
		cancelled   *quic.StreamError
		long        *quic.DatagramTooLargeError
		ours        error
	)
	switch {
	case err == nil || err == io.EOF:
		return err
	case errors.As(err, &application):
		ours = &qmux.ApplicationError{
			Remote: application.Remote, ErrorCode: qmux.ApplicationErrorCode(application.ErrorCode), ErrorMessage: application.ErrorMessage,
		}
	case errors.As(err, &transport):
		ours = &qmux.TransportError{
			Remote: transport.Remote, FrameType: transport.FrameType, ErrorCode: qmux.TransportErrorCode(transport.ErrorCode), ErrorMessage: transport.ErrorMessage,
		}
	case errors.As(err, &idle), errors.As(err, &handshake):
		ours = errors.Join(&qmux.IdleTimeoutError{}, syscall.ETIMEDOUT)
	case errors.As(err, &cancelled):
		ours = &qmux.StreamError{
			StreamID: qmux.StreamID(cancelled.StreamID), ErrorCode: qmux.StreamErrorCode(cancelled.ErrorCode), Remote: cancelled.Remote,
		}
	case errors.As(err, &long):
		ours = &qmux.DatagramTooLargeError{MaxDatagramPayloadSize: long.MaxDatagramPayloadSize}
	default:
		return err
	}
	return &failure{ours, err}
}

func translated(n int, err error) (int, error) { return n, translate(err) }

// mirror is a context that ends with one of quic-go's, with its cause
// translated.
func mirror(theirs context.Context) context.Context {
	ours, cancel := context.WithCancelCause(context.WithoutCancel(theirs))
	context.AfterFunc(theirs, func() { cancel(translate(context.Cause(theirs))) })
	return ours
}
