package qmux

import (
	"context"
	"errors"
	"io"
	"net"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/uapi/qmux"
)

// The methods that programs call on quic-go and on this package alike. The two
// differ in the package's name.
type (
	connection[stream, sendStream, receiveStream, code, state, stats any] interface {
		OpenStream() (stream, error)
		OpenStreamSync(context.Context) (stream, error)
		OpenUniStream() (sendStream, error)
		OpenUniStreamSync(context.Context) (sendStream, error)
		AcceptStream(context.Context) (stream, error)
		AcceptUniStream(context.Context) (receiveStream, error)
		SendDatagram([]byte) error
		ReceiveDatagram(context.Context) ([]byte, error)
		CloseWithError(code, string) error
		Context() context.Context
		ConnectionState() state
		ConnectionStats() stats
		LocalAddr() net.Addr
		RemoteAddr() net.Addr
	}

	sendHalf[id, code any] interface {
		StreamID() id
		io.WriteCloser
		CancelWrite(code)
		SetWriteDeadline(time.Time) error
		SetReliableBoundary()
		SetPriority(urgency int8, incremental bool)
		Context() context.Context
	}

	receiveHalf[id, code any] interface {
		StreamID() id
		io.Reader
		CancelRead(code)
		SetReadDeadline(time.Time) error
	}

	bothHalves[id, code any] interface {
		sendHalf[id, code]
		receiveHalf[id, code]
		SetDeadline(time.Time) error
	}

	comparable interface {
		error
		Is(error) bool
	}
)

// Both packages' types fit one set of interfaces.
var (
	_ connection[*quic.Stream, *quic.SendStream, *quic.ReceiveStream, quic.ApplicationErrorCode, quic.ConnectionState, quic.ConnectionStats] = (*quic.Conn)(nil)
	_ connection[*qmux.Stream, *qmux.SendStream, *qmux.ReceiveStream, qmux.ApplicationErrorCode, qmux.ConnectionState, qmux.ConnectionStats] = (*qmux.Conn)(nil)

	_ bothHalves[quic.StreamID, quic.StreamErrorCode]  = (*quic.Stream)(nil)
	_ bothHalves[qmux.StreamID, qmux.StreamErrorCode]  = (*qmux.Stream)(nil)
	_ sendHalf[quic.StreamID, quic.StreamErrorCode]    = (*quic.SendStream)(nil)
	_ sendHalf[qmux.StreamID, qmux.StreamErrorCode]    = (*qmux.SendStream)(nil)
	_ receiveHalf[quic.StreamID, quic.StreamErrorCode] = (*quic.ReceiveStream)(nil)
	_ receiveHalf[qmux.StreamID, qmux.StreamErrorCode] = (*qmux.ReceiveStream)(nil)

	_ = []comparable{
		&quic.ApplicationError{}, &quic.TransportError{}, &quic.StreamError{}, &quic.DatagramTooLargeError{},
		&qmux.ApplicationError{}, &qmux.TransportError{}, &qmux.StreamError{}, &qmux.DatagramTooLargeError{},
	}
	_ = []net.Error{&quic.IdleTimeoutError{}, &qmux.IdleTimeoutError{}}
	_ = []error{quic.StreamLimitReachedError{}, qmux.StreamLimitReachedError{}}
)

// Codes have the same numbers.
var (
	_ [quic.NoError]struct{}                   = [qmux.NoError]struct{}{}
	_ [quic.InternalError]struct{}             = [qmux.InternalError]struct{}{}
	_ [quic.ConnectionRefused]struct{}         = [qmux.ConnectionRefused]struct{}{}
	_ [quic.FlowControlError]struct{}          = [qmux.FlowControlError]struct{}{}
	_ [quic.StreamLimitError]struct{}          = [qmux.StreamLimitError]struct{}{}
	_ [quic.StreamStateError]struct{}          = [qmux.StreamStateError]struct{}{}
	_ [quic.FinalSizeError]struct{}            = [qmux.FinalSizeError]struct{}{}
	_ [quic.FrameEncodingError]struct{}        = [qmux.FrameEncodingError]struct{}{}
	_ [quic.TransportParameterError]struct{}   = [qmux.TransportParameterError]struct{}{}
	_ [quic.ProtocolViolation]struct{}         = [qmux.ProtocolViolation]struct{}{}
	_ [quic.ApplicationErrorErrorCode]struct{} = [qmux.ApplicationErrorErrorCode]struct{}{}
)

// TestFields: each exported field of a structure is quic-go's, of the same name
// and kind, but for those that are declared to be this package's own.
func TestFields(t *testing.T) {
	for _, c := range []struct {
		ours, theirs any
		own          []string
	}{
		{qmux.Config{}, quic.Config{}, []string{"MaxRecordSize", "Draft"}},
		{qmux.ConnectionState{}, quic.ConnectionState{}, nil},
		{qmux.ConnectionStats{}, quic.ConnectionStats{}, []string{
			"Counters", "RecordsSent", "RecordsReceived", "DataSent", "DataReceived",
			"DatagramsSent", "DatagramsReceived", "DatagramsDropped", "PingsSent", "PingsReceived",
			"FramesSent", "FramesReceived", "TimersArmed", "RTTSamples", "Deadlines",
		}},
		{qmux.ApplicationError{}, quic.ApplicationError{}, nil},
		{qmux.TransportError{}, quic.TransportError{}, nil},
		{qmux.StreamError{}, quic.StreamError{}, nil},
		{qmux.DatagramTooLargeError{}, quic.DatagramTooLargeError{}, nil},
	} {
		ours := reflect.TypeOf(c.ours)
		for _, f := range reflect.VisibleFields(ours) {
			if !f.IsExported() {
				continue
			}
			theirs, ok := reflect.TypeOf(c.theirs).FieldByName(f.Name)
			switch own := slices.Contains(c.own, f.Name); {
			case ok == own:
				t.Errorf("%v.%s: in quic-go %v, declared as own %v", ours, f.Name, ok, own)
			case f.Name == "StreamID": // quic-go's is signed
			case ok && theirs.Type.Kind() != f.Type.Kind():
				t.Errorf("%v.%s is a %v, quic-go's a %v", ours, f.Name, f.Type, theirs.Type)
			}
		}
	}
}

// TestIs: errors that a program makes are equal to those that it gets, in both
// packages.
func TestIs(t *testing.T) {
	for _, c := range []struct{ made, same, other error }{
		{&quic.ApplicationError{ErrorCode: 42, Remote: true}, &quic.ApplicationError{ErrorCode: 42, Remote: true, ErrorMessage: "bye"}, &quic.ApplicationError{ErrorCode: 42}},
		{&qmux.ApplicationError{ErrorCode: 42, Remote: true}, &qmux.ApplicationError{ErrorCode: 42, Remote: true, ErrorMessage: "bye"}, &qmux.ApplicationError{ErrorCode: 42}},
		{&quic.TransportError{ErrorCode: 7}, &quic.TransportError{ErrorCode: 7, ErrorMessage: "x"}, &quic.TransportError{ErrorCode: 8}},
		{&qmux.TransportError{ErrorCode: 7}, &qmux.TransportError{ErrorCode: 7, ErrorMessage: "x"}, &qmux.TransportError{ErrorCode: 8}},
		{&quic.StreamError{StreamID: 4}, &quic.StreamError{StreamID: 4}, &quic.StreamError{}},
		{&qmux.StreamError{StreamID: 4}, &qmux.StreamError{StreamID: 4}, &qmux.StreamError{}},
		{&quic.DatagramTooLargeError{MaxDatagramPayloadSize: 4}, &quic.DatagramTooLargeError{MaxDatagramPayloadSize: 4}, &quic.DatagramTooLargeError{}},
		{&qmux.DatagramTooLargeError{MaxDatagramPayloadSize: 4}, &qmux.DatagramTooLargeError{MaxDatagramPayloadSize: 4}, &qmux.DatagramTooLargeError{}},
		{&qmux.IdleTimeoutError{}, &qmux.IdleTimeoutError{}, io.EOF},
	} {
		require.ErrorIs(t, c.same, c.made)
		require.NotErrorIs(t, c.other, c.made)
		require.NotEmpty(t, c.made.Error())
		require.NotErrorIs(t, c.made, io.EOF)
	}
	for _, err := range []error{&qmux.ApplicationError{}, &qmux.TransportError{}, &qmux.IdleTimeoutError{}} {
		require.ErrorIs(t, err, net.ErrClosed)
	}
	require.False(t, errors.Is(&qmux.StreamError{}, net.ErrClosed))
}
