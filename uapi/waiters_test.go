package uapi_test

import (
	"context"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/uapitest"
)

// Waiting and polling return errors alike: an *OpError, with -1.
func TestWaitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := uapitest.Pair(t, "")
		x, y := uapitest.Connect(t, a, b)
		info := must.Get(x.QueryQP(x.QP))(t)
		wc := make([]uapi.WC, 1)
		ended := func(op string, n int, is, err error) {
			t.Helper()
			require.ErrorIs(t, err, is)
			var of *uapi.OpError
			require.ErrorAs(t, err, &of)
			require.Equal(t, op, of.Op)
			require.Equal(t, -1, n)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		n, err := x.WaitCQ(ctx, x.QP, wc)
		ended("WaitCQ", n, context.DeadlineExceeded, err)
		var late interface{ Timeout() bool }
		require.ErrorAs(t, err, &late)
		require.True(t, late.Timeout())
		n, err = x.WaitQueue(ctx, info.SendCQ, wc)
		ended("WaitQueue", n, context.DeadlineExceeded, err)

		// No completion is lost: a later one is there later.
		id := x.Must(x.PostRecv(x.QP, x.MR, 0, 8))
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		n, err = x.WaitCQ(canceled, x.QP, wc)
		ended("WaitCQ", n, context.Canceled, err)
		y.Must(y.PostSend(y.QP, y.MR, 8))
		require.Equal(t, id, x.Next(1)[0].WRID)

		for _, none := range [][]uapi.WC{nil, {}} {
			n, err = x.PollCQ(x.QP, none)
			ended("PollCQ", n, syscall.EINVAL, err)
			n, err = x.WaitCQ(t.Context(), x.QP, none)
			ended("WaitCQ", n, syscall.EINVAL, err)
			n, err = x.PollQueue(info.SendCQ, none)
			ended("PollQueue", n, syscall.EINVAL, err)
			n, err = x.WaitQueue(t.Context(), info.SendCQ, none)
			ended("WaitQueue", n, syscall.EINVAL, err)
		}
		n, err = x.WaitCQ(t.Context(), 0, wc)
		ended("WaitCQ", n, syscall.EBADF, err)
	})
}
