package rpc

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
)

// TestFates: a program finds a fate by errors.Is, by FateOf, and by FateOf in
// what is left of the error when an interceptor has made another of it.
func TestFates(t *testing.T) {
	for fate, code := range map[error]codes.Code{FateUnknown: codes.Unavailable, FateExecuted: codes.DataLoss} {
		s := NewServer(ServerConfig{})
		c, err := newClientConn(&double{server: s, fails: func(string) error { return fateStatus(fate) }}, "x", ClientConfig{})
		require.NoError(t, err)
		_, err = testgrpc.NewTestServiceClient(c).EmptyCall(limited(t), &testgrpc.Empty{})
		require.ErrorIs(t, err, fate)
		require.Equal(t, code, status.Code(err))
		require.Contains(t, err.Error(), fate.Error())
		require.Equal(t, 1, strings.Count(err.Error()+"\n", "\n"))
		for _, e := range []error{err, fmt.Errorf("call: %w", err), status.Convert(err).Err()} {
			require.Equal(t, fate, FateOf(e))
		}
		require.NoError(t, c.Close())
	}
	for _, e := range []error{nil, errors.New("x"), errBroken, status.Error(codes.DataLoss, "x"), detailed(t)} {
		require.NoError(t, FateOf(e))
	}
}

func detailed(t *testing.T) error {
	s, err := status.New(codes.Unavailable, "x").WithDetails(durationpb.New(1))
	require.NoError(t, err)
	return s.Err()
}

// TestStatusBounds: a status that is too long is cut, and says so of details.
func TestStatusBounds(t *testing.T) {
	code, text, details := packStatus(status.Error(codes.NotFound, strings.Repeat("ä", maxText)))
	require.Equal(t, uint32(codes.NotFound), code)
	require.Len(t, text, maxText)
	require.Empty(t, details)
	s, err := status.New(codes.NotFound, "x").WithDetails(&testgrpc.Payload{Body: make([]byte, maxDetails)})
	require.NoError(t, err)
	_, text, details = packStatus(s.Err())
	require.Contains(t, text, "left out")
	require.Empty(t, details)
	require.Equal(t, codes.NotFound, status.Code(unpackStatus(uint32(codes.NotFound), "x", []byte("no protobuf"))))
	require.NoError(t, unpackStatus(0, "", nil))
}
