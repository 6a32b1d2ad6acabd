package grpctest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
)

// connectServer serves two methods of the interoperability suite by
// connect-go, over unencrypted HTTP/2.
func (h *host) connectServer(t *testing.T) {
	mux := http.NewServeMux()
	mux.Handle(testgrpc.TestService_UnaryCall_FullMethodName, connect.NewUnaryHandler(testgrpc.TestService_UnaryCall_FullMethodName,
		func(_ context.Context, r *connect.Request[testgrpc.SimpleRequest]) (*connect.Response[testgrpc.SimpleResponse], error) {
			return connect.NewResponse(&testgrpc.SimpleResponse{Payload: r.Msg.GetPayload()}), nil
		}))
	mux.Handle(testgrpc.TestService_FullDuplexCall_FullMethodName, connect.NewBidiStreamHandler(testgrpc.TestService_FullDuplexCall_FullMethodName,
		func(_ context.Context, s *connect.BidiStream[testgrpc.StreamingOutputCallRequest, testgrpc.StreamingOutputCallResponse]) error {
			for {
				r, err := s.Receive()
				if errors.Is(err, io.EOF) {
					return nil
				}
				if err != nil {
					return err
				}
				if err := s.Send(&testgrpc.StreamingOutputCallResponse{Payload: r.GetPayload()}); err != nil {
					return err
				}
			}
		}))
	s := http.Server{Handler: mux, Protocols: new(http.Protocols)}
	s.Protocols.SetUnencryptedHTTP2(true)
	served := make(chan error, 1)
	go func() { served <- s.Serve(h) }()
	t.Cleanup(func() {
		require.NoError(t, s.Close())
		require.ErrorIs(t, <-served, http.ErrServerClosed)
	})
}

// TestConnect: connect-go's client with each of its protocols, and grpc-go's.
func TestConnect(t *testing.T) {
	virtual(t, func(t *testing.T) {
		h := newHost(t, simPair)
		h.connectServer(t)
		transport := &http.Transport{DialContext: h.DialContext, Protocols: new(http.Protocols)}
		transport.Protocols.SetUnencryptedHTTP2(true)
		t.Cleanup(transport.CloseIdleConnections)
		client := &http.Client{Transport: transport}
		for _, options := range [][]connect.ClientOption{nil, {connect.WithGRPC()}, {connect.WithGRPCWeb()}} {
			unary := connect.NewClient[testgrpc.SimpleRequest, testgrpc.SimpleResponse](
				client, "http://"+h.addr+testgrpc.TestService_UnaryCall_FullMethodName, options...)
			r, err := unary.CallUnary(limited(t), connect.NewRequest(asked(300_000)))
			require.NoError(t, err)
			require.Equal(t, asked(300_000).Payload.Body, r.Msg.GetPayload().GetBody())

			stream := connect.NewClient[testgrpc.StreamingOutputCallRequest, testgrpc.StreamingOutputCallResponse](
				client, "http://"+h.addr+testgrpc.TestService_FullDuplexCall_FullMethodName, options...).CallBidiStream(limited(t))
			for size := range 10 {
				payload := asked(1 + 10_000*size).Payload
				require.NoError(t, stream.Send(&testgrpc.StreamingOutputCallRequest{Payload: payload}))
				r, err := stream.Receive()
				require.NoError(t, err)
				require.Equal(t, payload.Body, r.GetPayload().GetBody())
			}
			require.NoError(t, stream.CloseRequest())
			_, err = stream.Receive()
			require.ErrorIs(t, err, io.EOF)
			require.NoError(t, stream.CloseResponse())
		}
		require.NoError(t, call(t, h.dial(t), 300_000))
	})
}
