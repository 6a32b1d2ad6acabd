package uapi_test

import (
	"context"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/uapitest"
)

func TestWaitWR(t *testing.T) {
	t.Parallel()
	eachDevice(t, func(t *testing.T, a, b *uapi.Context) {
		x, y := uapitest.Connect(t, a, b)
		ctx := bounded(t)
		copy(x.Buf, "....message")
		in := y.Must(y.PostRecv(y.QP, y.MR, 0, 8))
		id := x.Must(x.PostSendAt(x.QP, x.MR, 4, 7))
		wc, err := x.WaitWR(ctx, x.QP, id)
		require.NoError(t, err)
		require.Equal(t, uapi.WCOpSend, wc.Opcode)
		wc, err = y.WaitWR(ctx, y.QP, in)
		require.NoError(t, err)
		require.Equal(t, "message", string(y.Buf[:wc.ByteLen]))

		first := x.Must(x.PostWrite(x.QP, x.MR, 0, x.Peer.Addr, x.Peer.RKey, 8))
		second := x.Must(x.PostWrite(x.QP, x.MR, 0, x.Peer.Addr, x.Peer.RKey, 8))
		wc, err = x.WaitWR(ctx, x.QP, second)
		require.ErrorIs(t, err, syscall.EBUSY)
		require.Equal(t, first, wc.WRID, "it is not lost")
		_, err = x.WaitWR(ctx, x.QP, second)
		require.NoError(t, err)

		require.NoError(t, x.WakeCQ(cqOf(t, x)))
		wc, err = x.WaitWR(ctx, x.QP, 9)
		require.ErrorIs(t, err, syscall.EINTR)
		require.NotEqual(t, uapi.WCSuccess, wc.Status)
		ended, cancel := context.WithCancel(ctx)
		cancel()
		_, err = x.WaitWR(ended, x.QP, 9)
		require.ErrorIs(t, err, context.Canceled)
		_, err = x.WaitWR(ctx, 0, 9)
		require.ErrorIs(t, err, syscall.EBADF)
		_, err = x.PostSendAt(x.QP, x.MR, uapitest.Size, 1)
		require.ErrorIs(t, err, syscall.EINVAL)

		id = x.Must(x.PostWrite(x.QP, x.MR, 0, x.Peer.Addr, x.Peer.RKey+1, 8))
		wc, err = x.WaitWR(ctx, x.QP, id)
		require.ErrorIs(t, err, uapi.WCRemAccessErr)
		require.Equal(t, uapi.WCRemAccessErr, wc.Status)
	})
}
