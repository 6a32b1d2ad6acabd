package rpc

import (
	"context"
	"errors"
	"net"
	"strings"
	"syscall"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	pb "google.golang.org/protobuf/proto"

	spb "google.golang.org/genproto/googleapis/rpc/status"

	"github.com/rdmashim/rdmashim/uapi/rpc/session"
)

// maxText and maxDetails bound what a status says, in bytes. With maxMetadata
// they have 36 KiB, which a session's message holds besides its body.
const (
	maxText    = 4 << 10
	maxDetails = 16 << 10
)

// packStatus splits a handler's error as a session carries it. An error without
// a status is UNKNOWN, one of a context CANCELLED or DEADLINE_EXCEEDED, as in
// grpc-go. Details travel whole, as a google.rpc.Status; beyond maxDetails
// they are left out, and the text says so.
func packStatus(err error) (packed session.Status) {
	if err == nil {
		return packed
	}
	s, ok := status.FromError(err)
	if !ok {
		s = status.FromContextError(err)
	}
	packed.Code, packed.Text = uint32(s.Code()), s.Message()
	if p := s.Proto(); len(p.GetDetails()) > 0 {
		if packed.Details, err = pb.Marshal(p); err != nil || len(packed.Details) > maxDetails {
			packed.Details = nil
			packed.Text += " (the details are too long and left out)"
		}
	}
	if len(packed.Text) > maxText {
		packed.Text = strings.ToValidUTF8(packed.Text[:maxText], "")
	}
	return packed
}

// unpackStatus makes the error again that packStatus split; nil for code 0.
func unpackStatus(s session.Status) error {
	if s.Code == 0 {
		return nil
	}
	if len(s.Details) > 0 {
		p := &spb.Status{}
		if err := pb.Unmarshal(s.Details, p); err == nil && uint32(p.Code) == s.Code {
			return status.FromProto(p).Err()
		}
	}
	return status.Error(codes.Code(s.Code), s.Text)
}

// contextStatus is the status of a context's end.
func contextStatus(err error) error {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return status.Error(codes.DeadlineExceeded, "rpc: the call's deadline passed; it may have been executed")
	case errors.Is(err, context.Canceled):
		return status.Error(codes.Canceled, "rpc: the caller cancelled the call; it may have been executed")
	}
	return nil
}

// notSent is the error of a call that was not executed: UNAVAILABLE, on one
// line, whatever kept it from being sent.
func notSent(err error) error {
	return &causedError{status.New(codes.Unavailable, line(err)), err}
}

// causedError is a status in which errors.Is finds its cause.
type causedError struct {
	status *status.Status
	cause  error
}

func (e *causedError) Error() string              { return e.status.Err().Error() }
func (e *causedError) GRPCStatus() *status.Status { return e.status }
func (e *causedError) Unwrap() error              { return e.cause }

// line is an error's text on one line: that of a Dial has one for each address.
func line(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// sessionStatus is the error of a session with a status of grpc's. most is how
// many bytes of a message this end receives.
func sessionStatus(err error, most int) error {
	if err == nil {
		return nil
	}
	switch {
	case errors.Is(err, session.ErrFateUnknown):
		return fateStatus(FateUnknown)
	case errors.Is(err, session.ErrExecuted):
		return fateStatus(FateExecuted)
	case errors.Is(err, session.ErrTooLong):
		return status.Errorf(codes.ResourceExhausted, "rpc: a message of more than %d bytes is not received; grpc.MaxCallRecvMsgSize sets the most", most)
	case errors.Is(err, session.ErrUnavailable), errors.Is(err, session.ErrNotSent):
		return notSent(err)
	case errors.Is(err, session.ErrBroken):
		return status.Error(codes.Unavailable, line(err))
	case errors.Is(err, net.ErrClosed):
		return status.Error(codes.Canceled, "rpc: the ClientConn was closed; the call may have been executed")
	case errors.Is(err, syscall.EMSGSIZE):
		return status.Error(codes.ResourceExhausted, err.Error())
	case errors.Is(err, syscall.EINVAL):
		return status.Error(codes.Internal, err.Error())
	}
	if _, ok := status.FromError(err); ok {
		return err
	}
	if s := contextStatus(err); s != nil {
		return s
	}
	return status.Error(codes.Unavailable, err.Error())
}
