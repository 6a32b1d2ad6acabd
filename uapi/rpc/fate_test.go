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

	"github.com/rdmashim/rdmashim/uapi/rpc/session"
)

// TestFates: a program finds a fate by errors.Is, by FateOf, and by FateOf in
// what is left of the error when an interceptor has made another of it.
func TestFates(t *testing.T) {
	for fate, code := range map[error]codes.Code{FateUnknown: codes.Unavailable, FateExecuted: codes.DataLoss} {
		err := fateStatus(fate)
		require.ErrorIs(t, err, fate)
		require.Equal(t, code, status.Code(err))
		require.Contains(t, err.Error(), fate.Error())
		require.Equal(t, 1, strings.Count(err.Error()+"\n", "\n"))
		for _, e := range []error{err, fmt.Errorf("call: %w", err), status.Convert(err).Err()} {
			require.Equal(t, fate, FateOf(e))
		}
	}
	for _, e := range []error{nil, errors.New("x"), status.Error(codes.Unavailable, "x"), status.Error(codes.DataLoss, "x"), detailed(t)} {
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
	packed := packStatus(status.Error(codes.NotFound, strings.Repeat("ä", maxText)))
	require.Equal(t, uint32(codes.NotFound), packed.Code)
	require.Len(t, packed.Text, maxText)
	require.Empty(t, packed.Details)
	s, err := status.New(codes.NotFound, "x").WithDetails(&testgrpc.Payload{Body: make([]byte, maxDetails)})
	require.NoError(t, err)
	packed = packStatus(s.Err())
	require.Contains(t, packed.Text, "left out")
	require.Empty(t, packed.Details)
	require.Equal(t, codes.NotFound, status.Code(unpackStatus(session.Status{Code: uint32(codes.NotFound), Text: "x", Details: []byte("no protobuf")})))
	require.NoError(t, unpackStatus(session.Status{}))
}
