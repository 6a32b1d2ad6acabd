package qmux_test

import (
	"context"
	"io"
	"net"
	"time"

	"github.com/rdmashim/rdmashim/uapi/qmux"
)

// The methods that programs written for quic-go call, with quic-go's names and
// shapes.
var (
	_ interface {
		OpenStream() (*qmux.Stream, error)
		OpenStreamSync(context.Context) (*qmux.Stream, error)
		OpenUniStream() (*qmux.SendStream, error)
		OpenUniStreamSync(context.Context) (*qmux.SendStream, error)
		AcceptStream(context.Context) (*qmux.Stream, error)
		AcceptUniStream(context.Context) (*qmux.ReceiveStream, error)
		SendDatagram([]byte) error
		ReceiveDatagram(context.Context) ([]byte, error)
		CloseWithError(qmux.ApplicationErrorCode, string) error
		Context() context.Context
		ConnectionState() qmux.ConnectionState
		ConnectionStats() qmux.ConnectionStats
		LocalAddr() net.Addr
		RemoteAddr() net.Addr
	} = (*qmux.Conn)(nil)

	_ sendHalf    = (*qmux.SendStream)(nil)
	_ receiveHalf = (*qmux.ReceiveStream)(nil)
	_ interface {
		sendHalf
		receiveHalf
		SetDeadline(time.Time) error
	} = (*qmux.Stream)(nil)

	_ net.Error = (*qmux.IdleTimeoutError)(nil)
	_ net.Error = qmux.StreamLimitReachedError{}
)

type sendHalf interface {
	StreamID() qmux.StreamID
	io.WriteCloser
	CancelWrite(qmux.StreamErrorCode)
	SetWriteDeadline(time.Time) error
	SetReliableBoundary()
	Context() context.Context
}

type receiveHalf interface {
	StreamID() qmux.StreamID
	io.Reader
	CancelRead(qmux.StreamErrorCode)
	SetReadDeadline(time.Time) error
}
