package wire

import (
	"fmt"
	"syscall"
)

// Code is the error code of a CONNECTION_CLOSE of the transport (RFC 9000
// section 20.1).
type Code uint64

// The codes that QMux uses. It has none of its own.
const (
	NoError                 Code = 0x0
	InternalError           Code = 0x1
	ConnectionRefused       Code = 0x2
	FlowControlError        Code = 0x3
	StreamLimitError        Code = 0x4
	StreamStateError        Code = 0x5
	FinalSizeError          Code = 0x6
	FrameEncodingError      Code = 0x7
	TransportParameterError Code = 0x8
	ProtocolViolation       Code = 0xa
	ApplicationErrorCode    Code = 0xc
)

var codeNames = map[Code]string{
	NoError:                 "NO_ERROR",
	InternalError:           "INTERNAL_ERROR",
	ConnectionRefused:       "CONNECTION_REFUSED",
	FlowControlError:        "FLOW_CONTROL_ERROR",
	StreamLimitError:        "STREAM_LIMIT_ERROR",
	StreamStateError:        "STREAM_STATE_ERROR",
	FinalSizeError:          "FINAL_SIZE_ERROR",
	FrameEncodingError:      "FRAME_ENCODING_ERROR",
	TransportParameterError: "TRANSPORT_PARAMETER_ERROR",
	ProtocolViolation:       "PROTOCOL_VIOLATION",
	ApplicationErrorCode:    "APPLICATION_ERROR",
}

// String returns the code's name in RFC 9000, or its number.
func (c Code) String() string {
	if name, ok := codeNames[c]; ok {
		return name
	}
	return fmt.Sprintf("error 0x%x", uint64(c))
}

// Error says why bytes of the peer cannot be used. It is comparable, and
// errors.Is(err, syscall.EPROTO) holds for each.
type Error uint8

const (
	// ErrRecordEmpty: a Size is 0, and a record holds a frame at least.
	ErrRecordEmpty Error = iota + 1
	// ErrRecordSize: a record's Size exceeds what the receiver advertised.
	ErrRecordSize
	// ErrTruncated: the record ends before its last frame does.
	ErrTruncated
	// ErrTypeForm: a frame's type is not in its shortest form.
	ErrTypeForm
	// ErrUnknown: no specification that is spoken here knows the frame's type.
	ErrUnknown
	// ErrForbidden: QUIC has this frame, and QMux forbids it.
	ErrForbidden
	// ErrOffset: the data of a STREAM ends behind byte 2^62-1.
	ErrOffset
	// ErrStreamCount: a number of streams exceeds 2^60.
	ErrStreamCount
	// ErrReliableSize: a RESET_STREAM_AT promises more than the final size.
	ErrReliableSize
	// ErrParamTruncated: the parameters end within one.
	ErrParamTruncated
	// ErrParamTwice: a parameter occurs twice.
	ErrParamTwice
	// ErrParamForbidden: QUIC has this parameter, and QMux forbids it.
	ErrParamForbidden
	// ErrParamLength: a parameter's value has not the length that it says.
	ErrParamLength
	// ErrParamValue: a parameter's value is out of its range.
	ErrParamValue
	// ErrParamCount: there are more than [MaxParameters] parameters.
	ErrParamCount

	numErrors = int(iota) + 1
)

var errorFacts = [numErrors]struct {
	text string
	code Code
}{
	ErrRecordEmpty:    {"record without a frame", FrameEncodingError},
	ErrRecordSize:     {"record larger than max_record_size", FrameEncodingError},
	ErrTruncated:      {"frame ends behind its record", FrameEncodingError},
	ErrTypeForm:       {"frame type not in its shortest form", ProtocolViolation},
	ErrUnknown:        {"unknown frame type", FrameEncodingError},
	ErrForbidden:      {"frame type that QMux forbids", FrameEncodingError},
	ErrOffset:         {"stream data behind offset 2^62-1", FrameEncodingError},
	ErrStreamCount:    {"more than 2^60 streams", FrameEncodingError},
	ErrReliableSize:   {"reliable size larger than final size", FrameEncodingError},
	ErrParamTruncated: {"transport parameters end within one", TransportParameterError},
	ErrParamTwice:     {"transport parameter occurs twice", TransportParameterError},
	ErrParamForbidden: {"transport parameter that QMux forbids", TransportParameterError},
	ErrParamLength:    {"transport parameter of wrong length", TransportParameterError},
	ErrParamValue:     {"transport parameter out of its range", TransportParameterError},
	ErrParamCount:     {"too many transport parameters", TransportParameterError},
}

// Code is the error code that the connection is closed with.
func (e Error) Code() Code {
	if int(e) < numErrors && e != 0 {
		return errorFacts[e].code
	}
	return InternalError
}

// Error implements the error interface.
func (e Error) Error() string {
	if int(e) < numErrors && e != 0 {
		return "qmux: " + errorFacts[e].text
	}
	return "qmux: unknown error"
}

// Is reports whether target is syscall.EPROTO.
func (e Error) Is(target error) bool { return target == syscall.EPROTO }
