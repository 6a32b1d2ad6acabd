package quicudp

import (
	"context"

	"github.com/quic-go/quic-go"

	"github.com/rdmashim/rdmashim/uapi/qmux"
	"github.com/rdmashim/rdmashim/uapi/registration"
)

// These are quic-go's streams with package qmux's types and errors.
type (
	sendStream    struct{ *quic.SendStream }
	receiveStream struct{ *quic.ReceiveStream }
	stream        struct{ *quic.Stream }
)

func bidirectional(s *quic.Stream, err error) (registration.Stream, error) {
	if err != nil {
		return nil, translate(err)
	}
	return stream{s}, nil
}

func (s sendStream) StreamID() qmux.StreamID    { return qmux.StreamID(s.SendStream.StreamID()) }
func (s receiveStream) StreamID() qmux.StreamID { return qmux.StreamID(s.ReceiveStream.StreamID()) }
func (s stream) StreamID() qmux.StreamID        { return qmux.StreamID(s.Stream.StreamID()) }

func (s sendStream) Write(p []byte) (int, error) { return translated(s.SendStream.Write(p)) }
func (s stream) Write(p []byte) (int, error)     { return translated(s.Stream.Write(p)) }

func (s receiveStream) Read(p []byte) (int, error) { return translated(s.ReceiveStream.Read(p)) }
func (s stream) Read(p []byte) (int, error)        { return translated(s.Stream.Read(p)) }

func (s sendStream) Close() error { return translate(s.SendStream.Close()) }
func (s stream) Close() error     { return translate(s.Stream.Close()) }

func (s sendStream) CancelWrite(code qmux.StreamErrorCode) {
	s.SendStream.CancelWrite(quic.StreamErrorCode(code))
}

func (s stream) CancelWrite(code qmux.StreamErrorCode) {
	s.Stream.CancelWrite(quic.StreamErrorCode(code))
}

func (s receiveStream) CancelRead(code qmux.StreamErrorCode) {
	s.ReceiveStream.CancelRead(quic.StreamErrorCode(code))
}

func (s stream) CancelRead(code qmux.StreamErrorCode) {
	s.Stream.CancelRead(quic.StreamErrorCode(code))
}

func (s sendStream) Context() context.Context { return mirror(s.SendStream.Context()) }
func (s stream) Context() context.Context     { return mirror(s.Stream.Context()) }
