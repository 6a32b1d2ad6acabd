package uapi_test

import (
	"encoding/binary"
	"errors"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/uapitest"
)

// TestUnreliableConnection: over a network that loses, doubles and reorders,
// the messages that arrive are a subsequence of those sent, in order and whole;
// a WRITE with immediate is there when its immediate is.
func TestUnreliableConnection(t *testing.T) {
	for _, options := range []string{"", "loss=3%&seed=1", "loss=1%&dup=3%&reorder=5%&corrupt=1%&seed=2"} {
		synctest.Test(t, func(t *testing.T) { unreliable(t, options) })
	}
}

func unreliable(t *testing.T, options string) {
	const messages, depth, size = 600, 16, 20000
	a, b := uapitest.Pair(t, options)
	x, y := uapitest.ConnectWith(t, a, b, uapi.QPConfig{Type: uapi.TypeUC, SendDepth: depth, RecvDepth: depth, MTU: 1024}, depth*size+size)
	for i := range uint64(depth) {
		y.Must(y.PostRecv(y.QP, y.MR, i*size, size))
	}
	arrived, last := 0, -1
	receive := func() (end bool) {
		for {
			var wc [1]uapi.WC
			n, err := y.PollCQ(y.QP, wc[:])
			require.NoError(t, err)
			if n == 0 {
				synctest.Wait() // all that was sent is there
				if n, err = y.PollCQ(y.QP, wc[:]); n == 0 {
					require.NoError(t, err)
					return false
				}
			}
			require.NoError(t, wc[0].Err())
			if wc[0].Imm == messages {
				return true
			}
			m := int(wc[0].Imm)
			require.Greater(t, m, last)
			require.EqualValues(t, m*31%size+4, wc[0].ByteLen)
			at := uint64(wc[0].WRID) % depth * size
			if wc[0].Opcode == uapi.WCOpRecvWriteImm {
				at = depth * size
			}
			for _, place := range []uint64{at, at + wc[0].ByteLen - 4} {
				require.EqualValues(t, m, binary.BigEndian.Uint32(y.Buf[place:]))
			}
			last = m
			arrived++
			y.Must(y.PostRecv(y.QP, y.MR, uint64(wc[0].WRID)%depth*size, size))
		}
	}
	send := func(m int) {
		n := uint64(m*31%size + 4)
		binary.BigEndian.PutUint32(x.Buf, uint32(m))
		binary.BigEndian.PutUint32(x.Buf[n-4:], uint32(m))
		if m%3 == 0 {
			x.Must(x.PostWriteImm(x.QP, x.MR, 0, x.Peer.Addr+depth*size, x.Peer.RKey, n, uint32(m)))
		} else {
			x.Must(x.PostSendImm(x.QP, x.MR, n, uint32(m)))
		}
		require.NoError(t, x.Next(1)[0].Err())
	}
	for m := range messages {
		send(m)
		receive()
	}
	for end := false; !end; end = receive() {
		send(messages)
	}
	if options == "" {
		require.Equal(t, messages, arrived)
	} else {
		require.Less(t, arrived, messages)
		require.Greater(t, arrived, messages/10)
	}
}

// TestUnreliableRefuses: requests that need an answer, and connecting by
// address.
func TestUnreliableRefuses(t *testing.T) {
	t.Parallel()
	c, l := uapitest.Listen(t, "")
	x, y := uapitest.ConnectWith(t, c, c, uapi.QPConfig{Type: uapi.TypeUC, SendDepth: 2, RecvDepth: 2}, 64)
	_, err := x.PostRead(x.QP, x.MR, 0, x.Peer.Addr, x.Peer.RKey, 8)
	require.ErrorIs(t, err, syscall.EINVAL)
	_, err = x.PostFetchAdd(x.QP, x.MR, 0, x.Peer.Addr, x.Peer.RKey, 1)
	require.ErrorIs(t, err, syscall.EINVAL)
	_, err = c.Dial(t.Context(), l.Addr().String(), uapi.DialConfig{QPConfig: uapi.QPConfig{Type: uapi.TypeUC}})
	require.ErrorIs(t, err, syscall.EINVAL)
	_, err = c.CreateQPWith(uapi.QPConfig{Type: uapi.TypeUC, QKey: 1})
	require.ErrorIs(t, err, syscall.EINVAL)

	info, err := y.QueryQP(y.QP)
	require.NoError(t, err)
	require.Equal(t, "UC", info.Type.String())
	require.Equal(t, uapi.StateRTS, info.State)
	x.Must(x.PostWrite(x.QP, x.MR, 0, x.Peer.Addr, x.Peer.RKey+1, 8)) // dropped there
	require.NoError(t, x.Next(1)[0].Err())
	y.Must(y.PostRecv(y.QP, y.MR, 0, 8))
	x.Must(x.PostSend(x.QP, x.MR, 8))
	require.NoError(t, errors.Join(x.Next(1)[0].Err(), y.Next(1)[0].Err()))
}
