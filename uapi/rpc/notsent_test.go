package rpc

import (
	"context"
	"errors"
	"net"
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

// TestNotSent: a call that was never sent is UNAVAILABLE and says that it was
// not executed, with what kept it, on one line; errors.Is finds the cause, by
// which retries end.
func TestNotSent(t *testing.T) {
	refused := errors.Join(errors.New("10.0.0.1 "+uapi.ErrRefused.Error()), errors.New("10.0.0.2 "+uapi.ErrRefused.Error()))
	for name, c := range map[string]struct {
		silent  bool // the server does not answer; else it refuses
		limit   time.Duration
		closed  bool
		options []grpc.CallOption
		says    string
		is      error
	}{
		"refused":             {limit: time.Hour, says: "connection refused; 10.0.0.2", is: refused},
		"silent":              {silent: true, limit: time.Second, says: "no connection until the deadline", is: context.DeadlineExceeded},
		"waits, refused":      {limit: time.Second, options: []grpc.CallOption{grpc.WaitForReady(true)}, says: "connection refused", is: context.DeadlineExceeded},
		"the deadline passed": {limit: -time.Second, is: context.DeadlineExceeded},
		"closed":              {limit: time.Hour, closed: true, says: "closed", is: net.ErrClosed},
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
					require.Equal(t, codes.Unavailable, status.Code(err), err)
					require.ErrorIs(t, err, c.is)
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

// TestNotSentOfAnEndedContext: a call whose caller had left before is not sent,
// and neither is one that was waiting when its ClientConn was closed.
func TestNotSentOfAnEndedContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, err := Dial(t.Context(), "x", ClientConfig{Session: session.ClientConfig{
			Connect: func(ctx context.Context, _ msgring.Config) (*msgring.Conn, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			},
		}})
		require.NoError(t, err)
		stub := testgrpc.NewTestServiceClient(client)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = stub.EmptyCall(ctx, &testgrpc.Empty{})
		require.Equal(t, codes.Unavailable, status.Code(err))
		require.ErrorIs(t, err, context.Canceled)
		ended := make(chan error)
		go func() {
			_, err := stub.EmptyCall(t.Context(), &testgrpc.Empty{}, grpc.WaitForReady(true))
			ended <- err
		}()
		synctest.Wait()
		require.NoError(t, client.Close())
		err = <-ended
		require.Equal(t, codes.Unavailable, status.Code(err))
		require.ErrorIs(t, err, net.ErrClosed)
	})
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
