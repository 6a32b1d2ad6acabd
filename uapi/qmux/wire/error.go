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

// Error says why bytes of the peer cannot be used, and the code that closes the
// connection. errors.Is(err, syscall.EPROTO) holds for each.
type Error struct {
	Code Code
	text string
}

// NewError makes a mistake of the peer that package wire does not look for.
func NewError(code Code, text string) *Error { return &Error{code, text} }

// Error is what is wrong.
func (e *Error) Error() string { return "qmux: " + e.text }

// Is reports whether target is syscall.EPROTO.
func (e *Error) Is(target error) bool { return target == syscall.EPROTO }

// The errors of Parse functions. A record has a frame at least, and no more
// bytes than its receiver advertised. QUIC has frames and parameters that QMux
// forbids.
var (
	ErrRecordEmpty    = NewError(FrameEncodingError, "record without a frame")
	ErrRecordSize     = NewError(FrameEncodingError, "record larger than max_record_size")
	ErrTruncated      = NewError(FrameEncodingError, "frame ends behind its record")
	ErrTypeForm       = NewError(ProtocolViolation, "frame type not in its shortest form")
	ErrUnknown        = NewError(FrameEncodingError, "unknown frame type")
	ErrForbidden      = NewError(FrameEncodingError, "frame type that QMux forbids")
	ErrOffset         = NewError(FrameEncodingError, "stream data behind offset 2^62-1")
	ErrStreamCount    = NewError(FrameEncodingError, "more than 2^60 streams")
	ErrReliableSize   = NewError(FrameEncodingError, "reliable size larger than final size")
	ErrParamTruncated = NewError(TransportParameterError, "transport parameters end within one")
	ErrParamTwice     = NewError(TransportParameterError, "transport parameter occurs twice")
	ErrParamForbidden = NewError(TransportParameterError, "transport parameter that QMux forbids")
	ErrParamLength    = NewError(TransportParameterError, "transport parameter of wrong length")
	ErrParamValue     = NewError(TransportParameterError, "transport parameter out of its range")
	ErrParamCount     = NewError(TransportParameterError, "too many transport parameters")
)
