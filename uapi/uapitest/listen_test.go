package uapitest_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/uapitest"
)

func TestDial(t *testing.T) {
	for _, options := range []string{"", "loss=10%&dup=2%&seed=4"} {
		synctest.Test(t, func(t *testing.T) {
			c, l := uapitest.Listen(t, options)
			x, y := uapitest.Dial(t, c, l)
			require.NotSame(t, x.Context, y.Context)
			info, err := x.QueryConn(x.QP)
			require.NoError(t, err)
			require.Equal(t, l.Addr(), info.RemoteAddr)
			for i := range x.Buf {
				x.Buf[i] = byte(i)
			}
			x.Must(x.PostWrite(x.QP, x.MR, 0, x.Peer.Addr, x.Peer.RKey, uapitest.Size))
			require.NoError(t, x.Next(1)[0].Err())
			require.Equal(t, x.Buf, y.Buf)

			again, _ := uapitest.Dial(t, c, l)
			require.NotEqual(t, x.QP, again.QP)
			require.NoError(t, x.DestroyQP(x.QP))
			<-y.Done(y.QP)
			require.ErrorIs(t, y.Cause(y.QP), uapi.ErrPeerDisconnected)
		})
	}
}

func TestCleanListenTestsPass(t *testing.T) {
	t.Parallel()
	require.Empty(t, new(fakeT).run(func(t uapitest.T) {
		c, l := uapitest.Listen(t, "")
		uapitest.Dial(t, c, l)
	}))
}

func TestMistakesOfDialFail(t *testing.T) {
	t.Parallel()
	errs := new(fakeT).run(func(t uapitest.T) {
		c, l := uapitest.Listen(t, "")
		uapitest.DialWith(t, c, l, uapi.QPConfig{SendDepth: -1}, 64)
	})
	require.Len(t, errs, 1)
	require.Contains(t, errs[0], "-1 sends")
	errs = new(fakeT).run(func(t uapitest.T) {
		c, l := uapitest.Listen(t, "")
		_, other := uapitest.Listen(t, "")
		uapitest.Dial(t, c, other) // on a network of its own
		_ = l
	})
	require.Len(t, errs, 1)
}
