package uapi_test

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/uapitest"
)

func TestWaitWR(t *testing.T) {
	t.Parallel()
	eachDevice(t, func(t *testing.T, a, b *uapi.Device) {
		x, y := uapitest.Connect(t, a, b)
		ctx := within(t)
		copy(x.Buf, "....message")
		in := y.Must(y.PostRecv(y.QP, y.MR, 0, 8))
		id := x.Must(x.PostSendAt(x.QP, x.MR, 4, 7))
		wc := must.Get(x.WaitWR(ctx, x.QP, id))(t)
		require.Equal(t, uapi.WCOpSend, wc.Opcode)
		wc = must.Get(y.WaitWR(ctx, y.QP, in))(t)
		require.Equal(t, "message", string(y.Buf[:wc.ByteLen]))

		first := x.Must(x.PostWrite(x.QP, x.MR, 0, x.Peer.Addr, x.Peer.RKey, 8))
		second := x.Must(x.PostWrite(x.QP, x.MR, 0, x.Peer.Addr, x.Peer.RKey, 8))
		wc, err := x.WaitWR(ctx, x.QP, second)
		require.ErrorIs(t, err, syscall.EBUSY)
		require.Equal(t, first, wc.WRID, "it is not lost")
		must.Get(x.WaitWR(ctx, x.QP, second))(t)

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
		require.Equal(t, uapi.WCRemAccessErr, uapi.StatusOf(err))
		require.Equal(t, uapi.WCRemAccessErr, wc.Status)
	})
}

// TestWaitWRSays: a wait that ends in vain says what the device knows.
func TestWaitWRSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := uapitest.Pair(t, "")
		x, y := uapitest.ConnectWith(t, a, b, uapi.QPConfig{SendDepth: 4, RecvDepth: 4, MinRNRTimer: 20 * time.Millisecond}, uapitest.Size)
		wait := func(e *uapitest.End, id uapi.WRID) string {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := e.WaitWR(ctx, e.QP, id)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			return err.Error()
		}
		text := wait(y, y.Must(y.PostRecv(y.QP, y.MR, 0, 1)))
		require.Contains(t, text, "state RTS, its peer qp ")
		require.Contains(t, text, " 0 sends outstanding")
		x.Must(x.PostSend(x.QP, x.MR, 1))
		x.Next(1)
		y.Next(1)
		text = wait(x, x.Must(x.PostSend(x.QP, x.MR, 1)))
		require.Regexp(t, `work request 1 has not completed: .* 1 sends outstanding; the peer had no receive posted, \d+ times$`, text)
		require.Regexp(t, `a message of the peer's found no receive, \d+ times$`, wait(y, 9))
		alone := must.Get(a.CreateQP(1, 1))(t)
		defer a.DestroyQP(alone)
		require.Contains(t, wait(&uapitest.End{Device: a, QP: alone}, 1), "state RESET")
	})
}

// TestErrorsNameThePeer: a failed completion says which operation it was, and
// with whom, flushed ones included.
func TestErrorsNameThePeer(t *testing.T) {
	t.Parallel()
	a, b := uapitest.Pair(t, "")
	x, y := uapitest.Connect(t, a, b)
	remote := must.Get(y.LocalEndpoint(y.QP))(t)
	x.Must(x.PostWrite(x.QP, x.MR, 0, x.Peer.Addr, x.Peer.RKey+1, 8))
	x.Must(x.PostRecv(x.QP, x.MR, 0, 8))
	for i, want := range []string{"RDMA_WRITE", "RECV"} {
		var failed *uapi.WCError
		require.ErrorAs(t, x.NextUnchecked(1)[0].Err(), &failed)
		text := fmt.Sprintf("work request %d, %s, peer %v qp %d: %v",
			i, want, remote.Addr, remote.QPN, failed.WC.Status)
		require.Contains(t, failed.Error(), text)
		require.Equal(t, []any{remote.Addr, remote.QPN}, []any{failed.Peer, failed.PeerQPN})
	}
}
