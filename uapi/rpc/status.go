package rpc

import (
	"context"
	"errors"
	"strings"
	"syscall"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	pb "google.golang.org/protobuf/proto"

	spb "google.golang.org/genproto/googleapis/rpc/status"
)

// maxText and maxDetails bound what a status says, in bytes.
const (
	maxText    = 4 << 10
	maxDetails = 16 << 10
)

// packStatus splits a handler's error as a session carries it. An error without
// a status is UNKNOWN, one of a context CANCELLED or DEADLINE_EXCEEDED, as in
// grpc-go. Details travel whole, as a google.rpc.Status; beyond maxDetails
// they are left out, and the text says so.
func packStatus(err error) (code uint32, text string, details []byte) {
	if err == nil {
		return 0, "", nil
	}
	s, ok := status.FromError(err)
	if !ok {
		s = status.FromContextError(err)
	}
	text = s.Message()
	if p := s.Proto(); len(p.GetDetails()) > 0 {
		if details, err = pb.Marshal(p); err != nil || len(details) > maxDetails {
			details, text = nil, text+" (the details are too long and left out)"
		}
	}
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "")
	}
	return uint32(s.Code()), text, details
}

// unpackStatus makes the error again that packStatus split; nil for code 0.
func unpackStatus(code uint32, text string, details []byte) error {
	if code == 0 {
		return nil
	}
	if len(details) > 0 {
		p := &spb.Status{}
		if err := pb.Unmarshal(details, p); err == nil && uint32(p.Code) == code {
			return status.FromProto(p).Err()
		}
	}
	return status.Error(codes.Code(code), text)
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

// sessionStatus is the error of a session with a status of grpc's.
func sessionStatus(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := status.FromError(err); ok {
		return err
	}
	if s := contextStatus(err); s != nil {
		return s
	}
	if errors.Is(err, syscall.EMSGSIZE) {
		return status.Error(codes.ResourceExhausted, err.Error())
	}
	return status.Error(codes.Unavailable, err.Error())
}
