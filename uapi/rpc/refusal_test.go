package rpc

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/msgring"
	"github.com/rdmashim/rdmashim/uapi/rpc/session"
	"github.com/rdmashim/rdmashim/uapi/uapitest"
)

// TestRefused holds a row of docs/rpc.md's table: a call to a server that
// refuses the connection ends with the reason that the private data gives; a
// call that waits goes on waiting.
func TestRefused(t *testing.T) {
	for _, c := range []struct {
		name    string
		refuses func(context.Context, *uapi.Request) error
		says    string
	}{
		{name: "a server of another service", says: "the client asks for service"},
		{name: "a stream of bytes", says: "the client speaks calls (rpc), the server byte streams (rdmanet, QMux)", refuses: func(ctx context.Context, r *uapi.Request) error {
			_, err := msgring.Accept(ctx, r, msgring.Config{})
			return err
		}},
		{name: "a later version", says: "this end 2", refuses: func(_ context.Context, r *uapi.Request) error {
			reason := msgring.Refusal{Version: 2, Reason: 2, Text: "the peer speaks version 1, this end 2"}
			return r.Reject(uapi.RejectedByProgram, reason.Append(nil))
		}},
		{name: "a program that gives no reason", says: "refused by the peer's program", refuses: func(_ context.Context, r *uapi.Request) error {
			return r.Reject(uapi.RejectedByProgram, []byte("no"))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				device, l := uapitest.Listen(t, "")
				s := NewServer(ServerConfig{Session: session.ServerConfig{Service: "greeter/1"}})
				g := &gate{}
				testgrpc.RegisterTestServiceServer(s, g)
				served := make(chan struct{})
				ctx, end := context.WithCancel(t.Context())
				go func() {
					defer close(served)
					if c.refuses == nil {
						_ = s.Serve(l)
						return
					}
					for {
						request, err := l.Accept(ctx)
						if err != nil {
							return
						}
						_ = c.refuses(ctx, request)
					}
				}()
				client, err := Dial(t.Context(), l.Addr().String(), ClientConfig{
					Device: device, Session: session.ClientConfig{Service: "greeter/2"},
				})
				require.NoError(t, err)
				stub := testgrpc.NewTestServiceClient(client)
				limit, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				_, err = stub.UnaryCall(limit, simple(""))
				require.Equal(t, codes.Unavailable, status.Code(err), err)
				require.ErrorContains(t, err, c.says)
				require.NoError(t, FateOf(err))
				_, err = stub.UnaryCall(limit, simple(""), grpc.WaitForReady(true))
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.Equal(t, codes.Unavailable, status.Code(err), err)
				require.Zero(t, g.executed.Load())
				require.NoError(t, client.Close())
				end()
				s.Stop()
				<-served
			})
		})
	}
}

// TestForeignClient: a server of calls refuses a client of another protocol or
// version, and tells it why.
func TestForeignClient(t *testing.T) {
	for says, reason := range map[string]string{
		"GET / HTTP/1.1": "no hello",
		"RDMS\x02":       "the peer speaks version 2, this end 1",
	} {
		within(t, "", ServerConfig{}, func(t *testing.T, w *world) {
			_, err := w.device.Dial(t.Context(), w.listener.Addr().String(), uapi.DialConfig{Private: []byte(says)})
			var rejected *uapi.RejectError
			require.ErrorAs(t, err, &rejected)
			require.Contains(t, string(rejected.PrivateData), reason)
			require.Zero(t, w.server.Sessions().Stats().Sessions)
		})
	}
}
