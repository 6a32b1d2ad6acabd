package rpc

import (
	"errors"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// The fates of a call that has no answer. A call is executed at most once;
// where the client cannot have its answer, the error's status has a detail that
// says what is known. FateOf finds it, and errors.Is the fate itself.
var (
	// FateUnknown: the call was sent, the connection broke, and the server no
	// longer knows the session: it was started anew, or had not heard of the
	// client for the session's lifetime. The call was executed once or not at
	// all. Its status is UNAVAILABLE, which interceptors that retry repeat: a
	// call that is not idempotent must be left out of theirs, or asked for.
	//lint:ignore ST1012 a fate, which FateOf gives, and no error of a call
	FateUnknown = errors.New("the call was executed once or not at all")
	// FateExecuted: the call was executed, and its answer dropped for want of
	// room. Its status is DATA_LOSS. Making it again executes it again.
	//lint:ignore ST1012 as above
	FateExecuted = errors.New("the call was executed and its answer is lost")
)

// domain is the ErrorInfo's of this package's details.
const domain = "rpc.rdmashim"

var fates = []struct {
	fate   error
	code   codes.Code
	reason string
	text   string
}{
	{FateUnknown, codes.Unavailable, "FATE_UNKNOWN", "rpc: the server no longer knows the session: the call was executed once or not at all; ask the server which before making it again"},
	{FateExecuted, codes.DataLoss, "FATE_EXECUTED", "rpc: the call was executed and its answer is lost; making it again executes it again"},
}

// FateOf returns FateUnknown or FateExecuted if err or its status says so, and
// nil else: then err is the server's own answer, or the call was not executed.
func FateOf(err error) error {
	for _, f := range fates {
		if errors.Is(err, f.fate) {
			return f.fate
		}
	}
	s, ok := status.FromError(err)
	if !ok {
		return nil
	}
	for _, d := range s.Details() {
		info, ok := d.(*errdetails.ErrorInfo)
		for _, f := range fates {
			if ok && info.Domain == domain && info.Reason == f.reason {
				return f.fate
			}
		}
	}
	return nil
}

// fateStatus is the error of a call with that fate.
func fateStatus(fate error) error {
	for _, f := range fates {
		if f.fate == fate {
			s, err := status.New(f.code, f.text).WithDetails(&errdetails.ErrorInfo{Domain: domain, Reason: f.reason})
			if err != nil {
				return status.Error(f.code, f.text)
			}
			return &causedError{s, fate}
		}
	}
	return nil
}
