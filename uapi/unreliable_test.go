package uapi_test

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/uapitest"
)

// TestUnreliableRefuses: requests that need an answer, and connecting by
// address.
func TestUnreliableRefuses(t *testing.T) {
	t.Parallel()
	d, l := uapitest.Listen(t, "")
	x, y := uapitest.ConnectWith(t, d, d, uapi.QPConfig{Type: uapi.TypeUC, SendDepth: 2, RecvDepth: 2}, 64)
	_, err := x.PostRead(x.QP, x.MR, 0, x.Peer.Addr, x.Peer.RKey, 8)
	require.ErrorIs(t, err, syscall.EINVAL)
	_, err = x.FetchAdd(x.QP, piece(x.MR, 0, 8), x.Peer, 1)
	require.ErrorIs(t, err, syscall.EINVAL)
	_, err = d.Dial(t.Context(), l.Addr().String(), uapi.DialConfig{QPConfig: uapi.QPConfig{Type: uapi.TypeUC}})
	require.ErrorIs(t, err, syscall.EINVAL)
	_, err = d.CreateQPWith(uapi.QPConfig{Type: uapi.TypeUC, QKey: 1})
	require.ErrorIs(t, err, syscall.EINVAL)

	info := must.Get(y.QueryQP(y.QP))(t)
	require.Equal(t, "UC", info.Type.String())
	require.Equal(t, uapi.StateRTS, info.State)
	x.Must(x.PostWrite(x.QP, x.MR, 0, x.Peer.Addr, x.Peer.RKey+1, 8)) // dropped there
	x.Next(1)
	y.Must(y.PostRecv(y.QP, y.MR, 0, 8))
	x.Must(x.PostSend(x.QP, x.MR, 8))
	x.Next(1)
	y.Next(1)
}
