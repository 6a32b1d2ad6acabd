package uapi_test

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/uapitest"
)

func piece(mr uapi.MR, offset, length uint64) uapi.SGE {
	return uapi.SGE{MR: mr, Offset: offset, Length: length}
}

func TestReadAndWriteOfManySizes(t *testing.T) {
	t.Parallel()
	eachDevice(t, func(t *testing.T, a, b *uapi.Context) {
		x, y := uapitest.ConnectWith(t, a, b, uapi.QPConfig{SendDepth: 4}, 1<<20)
		random := rand.NewChaCha8([32]byte{1})
		for _, n := range []int{0, 1, 7, 255, 256, 257, 4095, 4096, 4097, 65536, 1 << 20} {
			random.Read(x.Buf)
			want := bytes.Clone(x.Buf[:n])
			clear(y.Buf)
			x.Must(x.PostWrite(x.QP, x.MR, 0, x.Peer.Addr, x.Peer.RKey, uint64(n)))
			require.NoError(t, x.Next(1)[0].Err())
			require.True(t, bytes.Equal(want, y.Buf[:n]), "%d bytes written", n)
			clear(x.Buf)
			x.Must(x.PostRead(x.QP, x.MR, 0, x.Peer.Addr, x.Peer.RKey, uint64(n)))
			require.NoError(t, x.Next(1)[0].Err())
			require.True(t, bytes.Equal(want, x.Buf[:n]), "%d bytes read", n)
		}
	})
}

func TestImmediates(t *testing.T) {
	t.Parallel()
	eachDevice(t, func(t *testing.T, a, b *uapi.Context) {
		x, y := uapitest.Connect(t, a, b)
		first := y.Must(y.PostRecv(y.QP, y.MR, 0, 100))
		second := y.Must(y.PostRecv(y.QP, y.MR, 100, 100))
		copy(x.Buf, "with immediate")
		x.Must(x.PostSendImm(x.QP, x.MR, 4, 0x01020304))
		x.Must(x.PostWriteImm(x.QP, x.MR, 0, x.Peer.Addr+1000, x.Peer.RKey, 14, 0xfffefdfc))
		for _, wc := range x.Next(2) {
			require.NoError(t, wc.Err())
			require.Zero(t, wc.Flags, "the sender has no immediate")
		}
		got := y.Next(2)
		require.Equal(t, uapi.WC{WRID: first, Opcode: uapi.WCOpRecv, ByteLen: 4, Imm: 0x01020304, Flags: uapi.WCWithImm, QP: y.QP, SrcQPN: uint32(x.QP)}, got[0])
		require.Equal(t, uapi.WC{WRID: second, Opcode: uapi.WCOpRecvWriteImm, ByteLen: 14, Imm: 0xfffefdfc, Flags: uapi.WCWithImm, QP: y.QP, SrcQPN: uint32(x.QP)}, got[1])
		require.Equal(t, "with", string(y.Buf[:4]))
		require.Equal(t, "with immediate", string(y.Buf[1000:1014]))
		require.Equal(t, make([]byte, 100), y.Buf[100:200], "the receive's memory was not used")
	})
}

func TestAtomics(t *testing.T) {
	t.Parallel()
	eachDevice(t, func(t *testing.T, a, b *uapi.Context) {
		x, y := uapitest.Connect(t, a, b)
		word, err := uapi.Uint64At(y.Buf, 64)
		require.NoError(t, err)
		old := func(at int) uint64 { return binary.NativeEndian.Uint64(x.Buf[at:]) }
		word.Store(40)
		x.Must(x.PostFetchAdd(x.QP, x.MR, 0, x.Peer.Addr+64, x.Peer.RKey, 2))
		x.Must(x.PostCompareSwap(x.QP, x.MR, 8, x.Peer.Addr+64, x.Peer.RKey, 42, 100))
		x.Must(x.PostCompareSwap(x.QP, x.MR, 16, x.Peer.Addr+64, x.Peer.RKey, 42, 200))
		for _, wc := range x.Next(3) {
			require.NoError(t, wc.Err())
			require.Equal(t, uint64(8), wc.ByteLen)
		}
		require.Equal(t, []uint64{40, 42, 100}, []uint64{old(0), old(8), old(16)})
		require.Equal(t, uint64(100), word.Load())

		x.Must(x.PostFetchAdd(x.QP, x.MR, 0, x.Peer.Addr+65, x.Peer.RKey, 2))
		require.Equal(t, uapi.WCRemInvReqErr, x.Next(1)[0].Status, "misaligned")
		require.Equal(t, uint64(100), word.Load())
	})
}

func TestScatterGather(t *testing.T) {
	t.Parallel()
	a, b := uapitest.Pair(t, "")
	x, y := uapitest.ConnectWith(t, a, b, uapi.QPConfig{SendDepth: 8, RecvDepth: 8, SendSGE: 3, RecvSGE: 3, Inline: 64}, 4096)
	copy(x.Buf, "abcdefghij")
	second, _ := mustMR(t, x.Context, []byte("0123456789"), 0)
	n, err := y.Post(y.QP, []uapi.WR{{ID: -5, Op: uapi.OpRecv, SGE: []uapi.SGE{piece(y.MR, 0, 2), piece(y.MR, 100, 3), piece(y.MR, 200, 50)}}})
	require.NoError(t, err)
	require.Equal(t, 1, n)
	const own = uapi.WRID(-1 << 63)
	n, err = x.Post(x.QP, []uapi.WR{
		{ID: own, Op: uapi.OpSend, Flags: uapi.Signaled, SGE: []uapi.SGE{piece(x.MR, 1, 2), piece(second, 0, 10), piece(x.MR, 5, 0)}},
	})
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.Equal(t, own, x.Next(1)[0].WRID, "all 64 bits of the caller's id")
	wc := y.Next(1)[0]
	require.Equal(t, uapi.WRID(-5), wc.WRID)
	require.Equal(t, uint64(12), wc.ByteLen)
	require.Equal(t, "bc"+"012"+"3456789", string(y.Buf[0:2])+string(y.Buf[100:103])+string(y.Buf[200:207]))

	// Inline: the memory may change as soon as Post returns.
	_, err = y.Post(y.QP, []uapi.WR{{Op: uapi.OpRecv, SGE: []uapi.SGE{piece(y.MR, 0, 100)}}})
	require.NoError(t, err)
	_, err = x.Post(x.QP, []uapi.WR{{Op: uapi.OpSend, Flags: uapi.Signaled | uapi.Inline, SGE: []uapi.SGE{piece(x.MR, 0, 3), piece(second, 8, 2)}}})
	require.NoError(t, err)
	clear(x.Buf)
	require.NoError(t, x.Next(1)[0].Err())
	require.Equal(t, uint64(5), y.Next(1)[0].ByteLen)
	require.Equal(t, "abc89", string(y.Buf[:5]))
}

func TestPostRefuses(t *testing.T) {
	t.Parallel()
	a, b := uapitest.Pair(t, "")
	x, _ := uapitest.ConnectWith(t, a, b, uapi.QPConfig{SendDepth: 8, RecvDepth: 8, SendSGE: 2, Inline: 16}, 4096)
	one := []uapi.SGE{piece(x.MR, 0, 8)}
	for name, wr := range map[string]uapi.WR{
		"unknown operation":    {Op: 7, SGE: one},
		"wild operation":       {Op: 1 << 31, SGE: one},
		"unknown flag":         {Op: uapi.OpSend, Flags: 1 << 10, SGE: one},
		"too many pieces":      {Op: uapi.OpSend, SGE: []uapi.SGE{piece(x.MR, 0, 1), piece(x.MR, 0, 1), piece(x.MR, 0, 1)}},
		"recv too many pieces": {Op: uapi.OpRecv, SGE: []uapi.SGE{piece(x.MR, 0, 1), piece(x.MR, 0, 1)}},
		"inline too long":      {Op: uapi.OpSend, Flags: uapi.Inline, SGE: []uapi.SGE{piece(x.MR, 0, 17)}},
		"inline read":          {Op: uapi.OpRead, Flags: uapi.Inline, SGE: one},
		"inline atomic":        {Op: uapi.OpFetchAdd, Flags: uapi.Inline, SGE: one},
		"atomic of 4":          {Op: uapi.OpFetchAdd, SGE: []uapi.SGE{piece(x.MR, 0, 4)}},
		"atomic of nothing":    {Op: uapi.OpCompareSwap},
		"out of bounds":        {Op: uapi.OpSend, SGE: []uapi.SGE{piece(x.MR, 4090, 7)}},
		"wraps over":           {Op: uapi.OpSend, SGE: []uapi.SGE{piece(x.MR, 1<<64-1, 2)}},
		"recv out of bounds":   {Op: uapi.OpRecv, SGE: []uapi.SGE{piece(x.MR, 4090, 7)}},
	} {
		n, err := x.Post(x.QP, []uapi.WR{{ID: 1, Op: uapi.OpWrite, Flags: uapi.Signaled, SGE: one, RemoteAddr: x.Peer.Addr, RKey: x.Peer.RKey}, wr})
		require.ErrorIs(t, err, syscall.EINVAL, name)
		require.Equal(t, 1, n, "%s: the one before it was posted", name)
		require.Equal(t, uapi.WRID(1), x.Next(1)[0].WRID, name)
	}
	n, err := x.Post(x.QP, nil)
	require.NoError(t, err)
	require.Zero(t, n)
}

func TestMessageLongerThanTheDeviceAllows(t *testing.T) {
	t.Parallel()
	a, b := uapitest.Pair(t, "")
	info, err := a.QueryDevice()
	require.NoError(t, err)
	require.GreaterOrEqual(t, info.MaxMessage, uint64(8<<20))
	x, y := uapitest.ConnectWith(t, a, b, uapi.QPConfig{SendDepth: 2, SendSGE: 2}, int(info.MaxMessage)+1)
	_, err = x.PostWrite(x.QP, x.MR, 0, x.Peer.Addr, x.Peer.RKey, info.MaxMessage+1)
	require.ErrorIs(t, err, syscall.EINVAL)
	_, err = x.Post(x.QP, []uapi.WR{{Op: uapi.OpWrite, SGE: []uapi.SGE{piece(x.MR, 0, info.MaxMessage), piece(x.MR, 0, 1)}}})
	require.ErrorIs(t, err, syscall.EINVAL, "also in pieces")
	for i := range x.Buf {
		x.Buf[i] = byte(i * 7)
	}
	x.Must(x.PostWrite(x.QP, x.MR, 1, x.Peer.Addr, x.Peer.RKey, info.MaxMessage))
	require.NoError(t, x.Next(1)[0].Err())
	require.True(t, bytes.Equal(x.Buf[1:], y.Buf[:info.MaxMessage]))
}

func TestSendMeetsShortReceive(t *testing.T) {
	t.Parallel()
	a, b := uapitest.Pair(t, "")
	x, y := uapitest.Connect(t, a, b)
	y.Must(y.PostRecv(y.QP, y.MR, 0, 10))
	x.Must(x.PostSend(x.QP, x.MR, 11))
	require.Equal(t, uapi.WCRemInvReqErr, x.Next(1)[0].Status)
	require.Equal(t, uapi.WCLocLenErr, y.Next(1)[0].Status)
}

// One completion queue for both directions: completions come in the order in
// which the requests completed.
func TestCompletionOrder(t *testing.T) {
	t.Parallel()
	eachDevice(t, func(t *testing.T, a, b *uapi.Context) {
		x, y := uapitest.Connect(t, a, b)
		var receives, sends []uapi.WRID
		for i := range 20 {
			// y sends to x and waits, then x writes and sends. Its queues are
			// two: between a send and a receive there is no order.
			if i%2 == 0 {
				receives = append(receives, x.Must(x.PostRecv(x.QP, x.MR, 0, 8)))
				y.Must(y.PostSend(y.QP, y.MR, 8))
				require.NoError(t, y.Next(1)[0].Err())
			} else {
				sends = append(sends, x.Must(x.PostWrite(x.QP, x.MR, 0, x.Peer.Addr, x.Peer.RKey, 8)))
				y.Must(y.PostRecv(y.QP, y.MR, 0, 8))
				sends = append(sends, x.Must(x.PostSend(x.QP, x.MR, 8)))
				require.NoError(t, y.Next(1)[0].Err())
			}
		}
		for i, wc := range x.Next(len(receives) + len(sends)) {
			require.NoError(t, wc.Err())
			list := &sends
			if wc.Opcode == uapi.WCOpRecv {
				list = &receives
			}
			require.NotEmpty(t, *list, "completion %d", i)
			require.Equal(t, (*list)[0], wc.WRID, "completion %d", i)
			*list = (*list)[1:]
		}
	})
}
