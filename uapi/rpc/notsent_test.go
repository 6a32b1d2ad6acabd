package rpc

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/msgring"
	"github.com/rdmashim/rdmashim/uapi/rpc/session"
)

// TestNotSent: a call that was never sent says that it was not executed, with
// what kept it, on one line.
func TestNotSent(t *testing.T) {
	refused := errors.Join(errors.New("10.0.0.1 "+uapi.ErrRefused.Error()), errors.New("10.0.0.2 "+uapi.ErrRefused.Error()))
	for name, c := range map[string]struct {
		silent  bool // the server does not answer; else it refuses
		limit   time.Duration
		closed  bool
		options []grpc.CallOption
		code    codes.Code
		says    string
	}{
		"refused":             {limit: time.Hour, code: codes.Unavailable, says: "connection refused; 10.0.0.2"},
		"silent":              {silent: true, limit: time.Second, code: codes.Unavailable, says: "no connection until the deadline"},
		"waits, refused":      {limit: time.Second, options: []grpc.CallOption{grpc.WaitForReady(true)}, code: codes.DeadlineExceeded, says: "connection refused"},
		"the deadline passed": {limit: -time.Second, code: codes.DeadlineExceeded},
		"closed":              {limit: time.Hour, closed: true, code: codes.Canceled, says: "closed"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, err := Dial(t.Context(), "x", ClientConfig{Session: session.ClientConfig{
					Connect: func(ctx context.Context, _ msgring.Config) (*msgring.Conn, error) {
						if c.silent {
							<-ctx.Done()
							return nil, ctx.Err()
						}
						return nil, refused
					},
				}})
				require.NoError(t, err)
				if c.closed {
					require.NoError(t, client.Close())
				}
				stub := testgrpc.NewTestServiceClient(client)
				ctx, cancel := context.WithTimeout(t.Context(), c.limit)
				defer cancel()
				_, err = stub.UnaryCall(ctx, simple(""), c.options...)
				ctx, cancel = context.WithTimeout(t.Context(), c.limit)
				defer cancel()
				_, opening := stub.FullDuplexCall(ctx, c.options...)
				for _, err := range []error{err, opening} {
					require.Equal(t, c.code, status.Code(err), err)
					require.ErrorContains(t, err, c.says)
					require.ErrorContains(t, err, "not executed")
					for _, wrong := range []string{"\n", "may have been", "again later", "no route to host"} {
						require.NotContains(t, err.Error(), wrong)
					}
					require.NoError(t, FateOf(err))
				}
				if !c.closed {
					require.NoError(t, client.Close())
				}
			})
		})
	}
}

// TestDialWithoutPort: an address without a port is an error of Dial, not of
// each call.
func TestDialWithoutPort(t *testing.T) {
	for _, addr := range []string{"127.0.0.1", "localhost", "127.0.0.1:", ""} {
		_, err := session.Dial(nil, addr, session.ClientConfig{})
		require.ErrorIs(t, err, syscall.EINVAL)
		require.True(t, strings.Contains(err.Error(), "HOST:PORT"), err)
	}
}
