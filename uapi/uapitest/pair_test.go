package uapitest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/uapitest"
)

func TestPairWrites(t *testing.T) {
	t.Parallel()
	a, b := uapitest.Pair(t, "")
	x, y := uapitest.Connect(t, a, b)
	copy(x.Buf, "hello")
	id := x.Must(x.PostWrite(x.QP, x.MR, 0, x.Peer.Addr, x.Peer.RKey, 5))
	wc := x.Next(1)[0]
	require.NoError(t, wc.Err())
	require.Equal(t, id, wc.WRID)
	require.Equal(t, uapi.WCOpWrite, wc.Opcode)
	require.Equal(t, "hello", string(y.Buf[:5]))
}
