package uapi_test

import (
	"context"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/uapitest"
)

func TestConnectOverRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := uapitest.Pair(t, "")
		here, there := net.Pipe()
		defer here.Close()
		defer there.Close()
		qp := mustQP(t, a, uapi.QPConfig{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := a.ConnectOver(ctx, here, 0, nil, nil)
		require.ErrorIs(t, err, syscall.EBADF)
		_, err = a.ConnectOver(ctx, here, qp, []uapi.MR{77}, nil)
		require.ErrorIs(t, err, syscall.EBADF)
		_, err = a.ConnectOver(ctx, here, qp, nil, nil)
		require.ErrorIs(t, err, context.DeadlineExceeded, "nobody answers")

		// The peer introduces itself but never connects.
		e := must.Get(b.LocalEndpoint(mustQP(t, b, uapi.QPConfig{})))(t)
		ctx, cancel = context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		go uapi.Exchange(ctx, there, uapi.Introduction{Endpoint: e})
		_, err = a.ConnectOver(ctx, here, qp, nil, nil)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}
